package hist

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestQuantilesAreCloseToTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 200).Draw(t, "values")
		var a, b Histogram
		for i, v := range values {
			if i%2 == 0 {
				a.Record(time.Duration(v))
			} else {
				b.Record(time.Duration(v))
			}
		}
		a.Add(&b)
		slices.Sort(values)
		assert.EqualValues(t, len(values), a.Count())
		assert.EqualValues(t, values[len(values)-1], a.Max())
		assert.Equal(t, a.Max(), a.Quantile(1))
		for _, q := range []float64{0.5, 0.99, 0.999} {
			rank := max(int(math.Ceil(q*float64(len(values)))), 1)
			truth := float64(values[rank-1])
			got := float64(a.Quantile(q))
			assert.GreaterOrEqual(t, got, truth)
			assert.LessOrEqual(t, got, truth*(1+1.0/sub)+1)
		}
	})
}

func TestEmptyAndOdd(t *testing.T) {
	var h Histogram
	assert.Zero(t, h.Quantile(0.5))
	h.Record(-5)
	assert.Zero(t, h.Max())
	assert.EqualValues(t, 1, h.Count())
	h.Record(math.MaxInt64)
	assert.Equal(t, time.Duration(math.MaxInt64), h.Quantile(0.99))
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Record(12345)
	}
}
