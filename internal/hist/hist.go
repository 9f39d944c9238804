// Package hist collects durations and gives their quantiles. It is pure, of fixed size, and exact to within 3 %.
//
// Owner: whoever fills it; it has no lock. Several are merged with Add.
package hist

import (
	"math/bits"
	"time"
)

// Between two powers of two lie so many buckets: 1/32 is the relative error.
const (
	subBits = 5
	sub     = 1 << subBits
	buckets = (64 - subBits + 1) * sub
)

// Histogram is ready to use.
type Histogram struct {
	counts [buckets]uint64
	n      uint64
	max    time.Duration
}

// Record counts a duration; one below 0 counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[index(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

func index(v uint64) int {
	if v < sub {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return (shift+1)*sub + int(v>>shift) - sub
}

// upper is the largest value that falls into a bucket.
func upper(i int) uint64 {
	if i < sub {
		return uint64(i)
	}
	shift := i/sub - 1
	return (uint64(i%sub+sub)+1)<<shift - 1
}

// Add counts everything that another histogram has.
func (h *Histogram) Add(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the longest, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile gives the duration that the share q (0 to 1) of all does not exceed; 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q * float64(h.n))
	if float64(rank) < q*float64(h.n) || rank == 0 {
		rank++
	}
	var sum uint64
	for i, c := range h.counts {
		if sum += c; sum >= rank {
			return min(time.Duration(upper(i)), h.max)
		}
	}
	return h.max
}
