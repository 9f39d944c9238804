package cell

import (
	"errors"
	"fmt"
)

// Result is what a cell came to.
type Result struct {
	Seconds  float64 `json:"seconds"`
	Bytes    uint64  `json:"bytes"`
	OpsPerS  float64 `json:"ops_per_s"`
	MBps     float64 `json:"MBps"` // 10^6 bytes a second
	P50      float64 `json:"p50_us,omitempty"`
	P99      float64 `json:"p99_us,omitempty"`
	P999     float64 `json:"p999_us,omitempty"`
	CPUPerGB float64 `json:"cpu_s_per_GB,omitempty"` // of both ends together, for 10^9 bytes
	Beside   float64 `json:"beside_MBps,omitempty"`  // of the puts beside
	// Of idle rails.
	Cores  float64 `json:"cores,omitempty"`        // CPU seconds of both ends together, in a second
	Weight float64 `json:"bytes_a_rail,omitempty"` // memory, at the end that needs more
}

// ErrNothing says that a cell measured nothing.
var ErrNothing = errors.New("not one operation ended in the time")

// between compares the marks of driver and server at the beginning with those at the end.
func between(s Spec, before, after [2]Mark) (r Result, err error) {
	counts := 0 // which side does
	if after[0].Bytes == before[0].Bytes {
		counts = 1
	}
	a, b := before[counts], after[counts]
	if b.Bytes == a.Bytes || b.At <= a.At {
		return r, fmt.Errorf("%s: %w", s, ErrNothing)
	}
	r.Bytes, r.Seconds = b.Bytes-a.Bytes, float64(b.At-a.At)/1e9
	r.MBps = float64(r.Bytes) / r.Seconds / 1e6
	r.OpsPerS = float64(r.Bytes) / float64(s.Size) / r.Seconds
	times := after[0]
	r.P50, r.P99, r.P999 = times.P50, times.P99, times.P999
	// CPU time is between the marks themselves, so it is compared with what the same time has moved.
	cpu := after[0].CPU - before[0].CPU + after[1].CPU - before[1].CPU
	r.CPUPerGB = cpu / (r.MBps * 1e6 * float64(b.Now-a.Now) / 1e9) * 1e9
	for i := range before {
		if moved := after[i].Beside - before[i].Beside; moved > 0 {
			r.Beside = float64(moved) / (float64(after[i].Now-before[i].Now) / 1e9) / 1e6
		}
	}
	if s.Beside > 0 && r.Beside == 0 {
		return r, fmt.Errorf("%s: of the puts beside %w", s, ErrNothing)
	}
	return r, nil
}

// rest is the result of doing nothing.
func rest(before, after, weights [2]Mark) Result {
	r := Result{Seconds: float64(after[0].Now-before[0].Now) / 1e9, Weight: max(weights[0].Weight, weights[1].Weight)}
	for i := range before {
		r.Cores += (after[i].CPU - before[i].CPU) / (float64(after[i].Now-before[i].Now) / 1e9)
	}
	return r
}
