package bars

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// settings are those in force, for whoever reads the numbers.
type settings struct {
	Rounds     int     `json:"rounds"`
	TimeS      float64 `json:"time_s"` // of one measurement
	GOGC       int     `json:"GOGC"`   // of all contenders
	Go         string  `json:"go"`
	Processors int     `json:"processors"`
	Kernel     string  `json:"kernel"`
	Congestion string  `json:"congestion_control"` // of the system; raw and ours take cubic instead of bbr
	Load       string  `json:"load_average"`       // when it began: what else the machine was doing
}

func currentSettings(o Options) settings {
	return settings{
		Rounds: o.Rounds, TimeS: o.Time.Seconds(), GOGC: 100, Go: runtime.Version(), Processors: runtime.NumCPU(),
		Kernel:     runtime.GOOS + " " + read("/proc/sys/kernel/osrelease"),
		Congestion: read("/proc/sys/net/ipv4/tcp_congestion_control"), Load: read("/proc/loadavg"),
	}
}

// read gives the first word of a file; nothing where there is none.
func read(file string) string {
	b, err := os.ReadFile(file)
	words := strings.Fields(string(b))
	if err != nil || len(words) == 0 {
		return "unknown"
	}
	return words[0]
}

// String is one sentence for a page.
func (s settings) String() string {
	return fmt.Sprintf("%d rounds of %g s each, %d processors, %s, %s, GOGC=%d for all, congestion control %s (raw and ours: cubic "+
		"instead of bbr), load average at the beginning %s.", s.Rounds, s.TimeS, s.Processors, s.Kernel, s.Go, s.GOGC, s.Congestion, s.Load)
}
