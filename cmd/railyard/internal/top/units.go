package top

import (
	"fmt"
	"time"
)

// scaled writes a number with a decimal prefix.
func scaled(v float64) (string, string) {
	for _, step := range []struct {
		size   float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= step.size {
			if v /= step.size; v >= 100 {
				return fmt.Sprintf("%.0f", v), step.prefix
			}
			return fmt.Sprintf("%.1f", v), step.prefix
		}
	}
	return fmt.Sprintf("%.0f", v), ""
}

func size(v float64) string {
	n, prefix := scaled(v)
	return n + " " + prefix + "B"
}

func rate(v float64) string {
	n, prefix := scaled(v)
	return n + " " + prefix + "B/s"
}

func count(v float64) string {
	n, prefix := scaled(v)
	return n + prefix
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// span writes a time with two or three digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
