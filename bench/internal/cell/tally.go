package cell

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"railyard/internal/hist"
)

// exactFrom is the size from which on operations are so few that a mark in the middle of one would show: time is then counted from the
// end of one to the end of another.
const exactFrom = 64 << 10

// Tally is what one side counts. All methods may be called from any goroutine.
type Tally struct {
	begin time.Time
	fatal chan error

	mu sync.Mutex
	// counters is only ever added to. Owner: mu.
	counters []*Counter
	// times are those since the last mark. Owner: mu.
	times hist.Histogram
	// rails and before say since when memory counts, and for how many. Owner: mu.
	rails  int
	before int64
}

func newTally() *Tally { return &Tally{begin: time.Now(), fatal: make(chan error, 1)} }

// Counter counts the bytes of one sender or sink; others' counters are on other cache lines.
//
// Invariant: of an exact counter, last is when the newest byte was counted.
type Counter struct {
	begin  time.Time
	exact  bool
	beside bool
	bytes  atomic.Uint64
	last   atomic.Int64 // nanoseconds since begin
	_      [128]byte
}

// Counter gives a new one, for operations of the size.
func (t *Tally) Counter(size int64) *Counter {
	return t.add(&Counter{begin: t.begin, exact: size >= exactFrom})
}

// Beside gives a counter for what goes on beside the load.
func (t *Tally) Beside() *Counter { return t.add(&Counter{begin: t.begin, beside: true}) }

func (t *Tally) add(c *Counter) *Counter {
	c.last.Store(int64(time.Since(t.begin)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counters = append(t.counters, c)
	return c
}

// Add counts bytes that have just come to their end.
func (c *Counter) Add(bytes int64) {
	c.bytes.Add(uint64(bytes))
	if c.exact {
		c.last.Store(int64(time.Since(c.begin)))
	}
}

// Took records how long one operation took.
func (t *Tally) Took(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times.Record(d)
}

// Fail ends this side with an error; only the first counts.
func (t *Tally) Fail(err error) {
	select {
	case t.fatal <- err:
	default:
	}
}

// Weigh has the process's memory count from here on, as what so many rails need.
func (t *Tally) Weigh(rails int) {
	before := resident()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rails, t.before = rails, before
}

// weight is what has come since for each rail, in bytes.
func (t *Tally) weight() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rails == 0 {
		return 0
	}
	return float64(resident()-t.before) / float64(t.rails)
}

// resident is the process's memory without garbage, in bytes.
func resident() int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if words := strings.Fields(string(b)); err == nil && len(words) > 1 {
		if pages, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// Mark is what one side has counted so far.
type Mark struct {
	At     int64   `json:"at_ns"` // on a clock of this side's own: when the last of Bytes was counted
	Now    int64   `json:"now_ns"`
	Bytes  uint64  `json:"bytes"`
	Beside uint64  `json:"beside,omitempty"` // bytes of what goes on beside the load
	CPU    float64 `json:"cpu_s"`            // of the process, in user and kernel mode
	Weight float64 `json:"weight,omitempty"` // bytes of memory a rail, where that was asked for
	// Since the mark before.
	Times uint64  `json:"times,omitempty"` // how many
	P50   float64 `json:"p50_us,omitempty"`
	P99   float64 `json:"p99_us,omitempty"`
	P999  float64 `json:"p999_us,omitempty"`
}

func (t *Tally) mark() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := Mark{CPU: cpuSeconds(), Now: int64(time.Since(t.begin))}
	for _, c := range t.counters {
		switch {
		case c.beside:
			m.Beside += c.bytes.Load()
		case c.exact:
			bytes, at := c.read()
			m.Bytes += bytes
			m.At = max(m.At, at)
		default:
			m.Bytes += c.bytes.Load()
			m.At = m.Now
		}
	}
	us := func(q float64) float64 { return float64(t.times.Quantile(q).Nanoseconds()) / 1e3 }
	m.Times, m.P50, m.P99, m.P999 = t.times.Count(), us(0.5), us(0.99), us(0.999)
	t.times = hist.Histogram{}
	return m
}

// read gives a count and the time that belongs to it.
func (c *Counter) read() (bytes uint64, at int64) {
	for {
		at = c.last.Load()
		bytes = c.bytes.Load()
		if c.last.Load() == at {
			return bytes, at
		}
	}
}
