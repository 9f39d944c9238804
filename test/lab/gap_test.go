package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// story makes a timeline of two rails with a sample every 10 ms; rate says how many bytes a sample each has brought.
func story(d time.Duration, rate func(at time.Duration, rail int) uint64) Timeline {
	var t Timeline
	var rails [2]uint64
	for at := time.Duration(0); at <= d; at += 10 * time.Millisecond {
		for r := range rails {
			rails[r] += rate(at, r)
		}
		t = append(t, Sample{At: int64(time.Hour + at), Total: rails[0] + rails[1], Rails: []uint64{rails[0], rails[1]}})
	}
	return t
}

const ms = time.Millisecond

func TestGapTellsStallFullAndBack(t *testing.T) {
	const cut, heal = 2000 * ms, 6000 * ms
	line := story(10*time.Second, func(at time.Duration, rail int) uint64 {
		switch {
		case at <= cut || at > heal+700*ms:
			return 1000
		case rail == 1 || at <= cut+150*ms:
			return 0
		case at <= cut+400*ms:
			return 100
		}
		return 1000
	})
	g, err := line.Gap(1, int64(time.Hour+cut), int64(time.Hour+heal))
	require.NoError(t, err)
	assert.Equal(t, 150*ms, g.Stall)
	assert.Equal(t, 0*ms, g.StallAt)
	assert.InDelta(t, 380*ms, g.Full, float64(20*ms), "80 % over the 100 ms from then on")
	assert.InDelta(t, 610*ms, g.Back, float64(50*ms), "half of the 100 ms from then on")
	assert.InDelta(t, 375*ms, g.Lost, float64(10*ms))
	assert.InDelta(t, 200_000, g.Before, 1)
	assert.InDelta(t, 100_000, g.Survivor, 1)
	assert.InDelta(t, 200_000, g.After, 1)
}

func TestALaterStallIsNotWhatFullWaitsFor(t *testing.T) {
	line := story(10*time.Second, func(at time.Duration, rail int) uint64 {
		stalled := at > 2*time.Second && at <= 2100*ms || at > 5800*ms && at <= 5950*ms
		if stalled || rail == 1 && at > 2*time.Second && at <= 6*time.Second {
			return 0
		}
		return 1000
	})
	g, err := line.Gap(1, int64(time.Hour+2*time.Second), int64(time.Hour+6*time.Second))
	require.NoError(t, err)
	assert.Equal(t, 150*ms, g.Stall, "the longest counts")
	assert.InDelta(t, 80*ms, g.Full, float64(20*ms))
}

func TestGapSaysNever(t *testing.T) {
	line := story(10*time.Second, func(at time.Duration, rail int) uint64 {
		if at > 2*time.Second && (rail == 1 || at < 5*time.Second) {
			return 0
		}
		return 1000
	})
	g, err := line.Gap(1, int64(time.Hour+2*time.Second), int64(time.Hour+6*time.Second))
	require.NoError(t, err)
	assert.Equal(t, Never, g.Back)
	assert.InDelta(t, 3*time.Second, g.Stall, float64(20*ms))
	assert.InDelta(t, 3*time.Second, g.Full, float64(50*ms))
}

func TestGapNeedsSamplesAround(t *testing.T) {
	line := story(4*time.Second, func(time.Duration, int) uint64 { return 1 })
	for _, at := range [][2]time.Duration{{500 * ms, 2 * time.Second}, {2 * time.Second, time.Second}, {2 * time.Second, 3500 * ms}} {
		_, err := line.Gap(1, int64(time.Hour+at[0]), int64(time.Hour+at[1]))
		assert.ErrorIs(t, err, ErrTimeline, "%v", at)
	}
	_, err := line.Gap(2, int64(time.Hour+2*time.Second), int64(time.Hour+3*time.Second))
	assert.ErrorIs(t, err, ErrTimeline)
	_, err = Timeline(nil).Gap(0, 1, 2)
	assert.ErrorIs(t, err, ErrTimeline)
}

func TestReadTimeline(t *testing.T) {
	line, err := ReadTimeline(strings.NewReader("10 5 2 3\n20 7 3 4\n30 9 "))
	require.NoError(t, err, "the last line was being written")
	assert.Equal(t, Timeline{{10, 5, []uint64{2, 3}}, {20, 7, []uint64{3, 4}}}, line)
	for _, bad := range []string{"10\n", "a b\n", "10 -1\n"} {
		_, err := ReadTimeline(strings.NewReader(bad))
		assert.ErrorIs(t, err, ErrTimeline, "%q", bad)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []time.Duration
		want time.Duration
	}{
		{nil, Never}, {[]time.Duration{3}, 3}, {[]time.Duration{5, 1, 3}, 3}, {[]time.Duration{Never, 1, 2}, 2},
		{[]time.Duration{Never, Never, 2}, Never}, {[]time.Duration{4, 2, 1, 3}, 3},
	} {
		assert.Equal(t, c.want, Median(c.of), fmt.Sprint(c.of))
	}
}
