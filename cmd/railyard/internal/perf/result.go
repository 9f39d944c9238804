package perf

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"railyard/cmd/railyard/internal/units"
	"railyard/internal/hist"
)

// Result is what a test came to. Times are in microseconds, of one operation: of a put or get from its start until the
// initiator has seen its end; of msg-lat there and back. Streams of messages have none: they are null.
type Result struct {
	Test     string   `json:"test"`
	Size     int64    `json:"size"`  // bytes of an operation
	Rails    int      `json:"rails"` // that really carried the test
	Seconds  float64  `json:"seconds"`
	Ops      uint64   `json:"ops"`
	Bytes    uint64   `json:"bytes"`
	MBps     float64  `json:"MBps"` // 10^6 bytes a second
	OpsPerS  float64  `json:"ops_per_s"`
	P50      *float64 `json:"p50_us"`
	P99      *float64 `json:"p99_us"`
	P999     *float64 `json:"p999_us"`
	Max      *float64 `json:"max_us"`
	Errors   uint64   `json:"errors"`
	FirstErr string   `json:"first_error,omitempty"`
	// CPU seconds that each side spent for 10^9 bytes, and both together.
	CPUPerGB       float64 `json:"cpu_s_per_GB"`
	CPUPerGBSource float64 `json:"cpu_s_per_GB_initiator"`
	CPUPerGBTarget float64 `json:"cpu_s_per_GB_target"`
	// CPUSeconds and the same of the target, for tests whose bytes are not the point.
	CPUSeconds       float64 `json:"cpu_s_initiator"`
	CPUSecondsTarget float64 `json:"cpu_s_target"`
	// Verified counts the pieces of memory or messages that were compared, Bad those that differed.
	Verified uint64 `json:"verified"`
	Bad      uint64 `json:"bad"`
	// Lost counts the puts that ended well and of which the target was not told by their Notify, Doubled those that it was
	// told of again. Both are counted where puts are verified.
	Lost    uint64 `json:"lost"`
	Doubled uint64 `json:"doubled"`
	// Lives counts the generations that rails of this side lost, Trouble tells of each, and of suspicions that came to nothing.
	Lives    uint64    `json:"lives_lost"`
	Trouble  []Trouble `json:"trouble,omitempty"`
	Settings Settings  `json:"settings"`
}

// Settings are those in force.
type Settings struct {
	Transport  string  `json:"transport"`
	To         string  `json:"to"`
	RailsAsked int     `json:"rails_asked"`
	Window     int     `json:"window"`
	Senders    int     `json:"senders"`
	TimeS      float64 `json:"time_s"`
	Verify     bool    `json:"verify"`
	GOMAXPROCS int     `json:"GOMAXPROCS"`
	GOGC       int     `json:"GOGC"`
	Go         string  `json:"go"`
	OS         string  `json:"os"`
}

func settings(o *Options, to string, rails int) Settings {
	gogc := debug.SetGCPercent(100)
	debug.SetGCPercent(gogc)
	return Settings{
		Transport: "tcp", To: to, RailsAsked: rails, Window: o.Window, Senders: o.Senders, TimeS: o.Time.Seconds(),
		Verify: o.Verify, GOMAXPROCS: runtime.GOMAXPROCS(0), GOGC: gogc, Go: runtime.Version(), OS: runtime.GOOS,
	}
}

// times fills in the quantiles, if there are any.
func (r *Result) times(h *hist.Histogram) {
	if h.Count() == 0 {
		return
	}
	us := func(d time.Duration) *float64 {
		v := float64(d.Nanoseconds()/10) / 100
		return &v
	}
	r.P50, r.P99, r.P999 = us(h.Quantile(0.5)), us(h.Quantile(0.99)), us(h.Quantile(0.999))
	r.Max = us(h.Max())
}

// rates fills in what follows from ops, bytes and seconds.
func (r *Result) rates() {
	if r.Seconds <= 0 {
		return
	}
	r.OpsPerS = round(float64(r.Ops)/r.Seconds, 1)
	r.MBps = round(float64(r.Bytes)/r.Seconds/1e6, 2)
	if r.Bytes > 0 {
		gb := float64(r.Bytes) / 1e9
		r.CPUPerGBSource = round(r.CPUSeconds/gb, 4)
		r.CPUPerGBTarget = round(r.CPUSecondsTarget/gb, 4)
		r.CPUPerGB = round((r.CPUSeconds+r.CPUSecondsTarget)/gb, 4)
	}
}

func round(v float64, digits int) float64 {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	return float64(int64(v*scale+0.5)) / scale
}

// enoughBytes make the CPU time of a GB worth printing.
const enoughBytes = 100e6

// Text is the result for people.
func (r *Result) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("test", "%s, %s, window %d, senders %d, rails %d", r.Test, units.Bytes(r.Size), r.Settings.Window,
		r.Settings.Senders, r.Rails)
	line("bandwidth", "%.2f MB/s", r.MBps)
	line("operations", "%.1f/s (%d in %.2f s)", r.OpsPerS, r.Ops, r.Seconds)
	if r.P50 != nil {
		line("time", "p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us", *r.P50, *r.P99, *r.P999, *r.Max)
	}
	line("cpu", "%.3f s here, %.3f s at the target", r.CPUSeconds, r.CPUSecondsTarget)
	if r.Bytes >= enoughBytes {
		line("", "%.3f s for each GB", r.CPUPerGB)
	}
	if r.Settings.Verify {
		line("verified", "%d pieces, %d of them wrong; %d lost, %d doubled", r.Verified, r.Bad, r.Lost, r.Doubled)
	}
	if len(r.Trouble) > 0 {
		line("rails", "%d lives lost; --json tells of each", r.Lives)
	}
	line("errors", "%d", r.Errors)
	return b.String()
}
