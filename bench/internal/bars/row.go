package bars

import (
	"fmt"

	"railyard/bench/internal/cell"
)

// Side is one side of a ratio: a contender with a load.
type Side struct {
	Contender string // the name of its program, a folder below bench/
	Spec      cell.Spec
}

// Metric is what a row compares.
type Metric struct {
	Of     func(cell.Result) float64
	Format func(float64) string
}

// The metrics that rows have in common.
var (
	Bandwidth = Metric{func(r cell.Result) float64 { return r.MBps }, Megabytes}
	Rate      = Metric{func(r cell.Result) float64 { return r.OpsPerS }, perSecond}
	Median    = Metric{func(r cell.Result) float64 { return r.P50 }, micros}
	P99       = Metric{func(r cell.Result) float64 { return r.P99 }, micros}
	CPU       = Metric{func(r cell.Result) float64 { return r.CPUPerGB }, seconds}
	Beside    = Metric{func(r cell.Result) float64 { return r.Beside }, Megabytes}
)

// Bar is what a ratio must reach.
type Bar struct {
	Against Side // nobody: the value itself is held against Limit, not a ratio
	Limit   float64
	AtMost  bool // the ratio must not be above Limit; else not below
	Aim     float64
	Theirs  *Metric // of Against, where that is not the row's
}

// AtLeast is a bar from below.
func AtLeast(limit float64, contender string, s cell.Spec) Bar {
	return Bar{Against: Side{contender, s}, Limit: limit}
}

// AtMost is a bar from above.
func AtMost(limit float64, contender string, s cell.Spec) Bar {
	return Bar{Against: Side{contender, s}, Limit: limit, AtMost: true}
}

// Aiming says what would be better still.
func (b Bar) Aiming(at float64) Bar {
	b.Aim = at
	return b
}

// Holds tells whether a ratio is on the right side.
func (b Bar) Holds(ratio float64) bool {
	if b.AtMost {
		return ratio <= b.Limit
	}
	return ratio >= b.Limit
}

// String is as in the table: what the ratio must be.
func (b Bar) String() string {
	text := fmt.Sprintf(">= %g", b.Limit)
	if b.AtMost {
		text = fmt.Sprintf("<= %g", b.Limit)
	}
	if b.Aim > 0 {
		text += fmt.Sprintf(" (aim %g)", b.Aim)
	}
	return text
}

// Row is one load with its bars.
type Row struct {
	Load   string
	Ours   Side
	Metric Metric
	Bars   []Bar
	Others []Side // for comparison
	Quoted string // what others have measured elsewhere
	// Thorough rows are measured in 9 rounds where others are in 5, and once more if they miss.
	Thorough bool
	// Missing says why the row cannot be measured; it fails.
	Missing string
}

// theirs is the metric of the other side.
func (r Row) theirs(b Bar) Metric {
	if b.Theirs != nil {
		return *b.Theirs
	}
	return r.Metric
}

// With changes a load.
func With(s cell.Spec, change func(*cell.Spec)) cell.Spec {
	change(&s)
	return s
}

// Units.

// Megabytes are 10^6 bytes a second.
func Megabytes(v float64) string { return fmt.Sprintf("%.0f MB/s", v) }

func micros(v float64) string  { return fmt.Sprintf("%.1f us", v) }
func seconds(v float64) string { return fmt.Sprintf("%.2f s", v) }

func perSecond(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%.2f M/s", v/1e6)
	}
	return fmt.Sprintf("%.0f k/s", v/1e3)
}
