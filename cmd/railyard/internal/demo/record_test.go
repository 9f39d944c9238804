package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/cmd/railyard/internal/cable"
	"railyard/internal/load"
)

const ms = time.Millisecond

// rails gives what the monitor sees of two rails, of which the second is looked at.
func rails(works bool, carried uint64) []seen { return []seen{{}, {works, carried}} }

func TestCutIsCompleteWhenTheRailCarriesAgain(t *testing.T) {
	b := newBook(2)
	c := &cut{at: 90 * ms}
	c.record.Rail = 1
	require.Nil(t, b.begin(c))
	b.struck(c, 100*ms, cable.Blow{InFlight: 77})
	require.Empty(t, b.look(200*ms, rails(true, 0)), "still cut")
	b.healed(1, 1000*ms)
	b.healed(1, 1100*ms) // the first heal counts
	b.healed(0, 1100*ms) // not cut at all
	require.Empty(t, b.look(1050*ms, rails(false, 1<<20)))
	require.Empty(t, b.look(1060*ms, rails(true, 1<<20)))
	require.Empty(t, b.look(1070*ms, rails(false, 1<<21)), "up and down again")
	require.Empty(t, b.look(1080*ms, rails(true, 1<<21)))
	require.Empty(t, b.look(1090*ms, rails(true, 1<<21+carriedEnough-1)), "a handshake is no work")
	require.Empty(t, b.look(1100*ms, rails(true, 1<<21+carriedEnough)))
	require.True(t, b.isOpen(1), "it still answers for standstills")
	done := b.look(1100*ms+settle, rails(true, 1<<22))
	require.Equal(t, []*cut{c}, done)
	require.False(t, b.isOpen(1))

	r := c.complete(nil, nil)
	assert.EqualValues(t, 77, r.InFlight)
	assert.InDelta(t, 100, *r.RejoinMs, 0)
	assert.InDelta(t, 900, r.CutMs, 0)
	assert.Nil(t, r.DetectedMs)
	assert.False(t, c.late)
}

func TestRailThatDoesNotComeBackIsGivenUp(t *testing.T) {
	for name, look := range map[string]func(i int) seen{
		"down":              func(int) seen { return seen{} },
		"up but idle":       func(int) seen { return seen{works: true} },
		"flapping for ever": func(i int) seen { return seen{works: i%2 == 0, carried: uint64(i)} },
	} {
		b := newBook(1)
		c := &cut{}
		b.begin(c)
		b.healed(0, 1*ms)
		var done []*cut
		for i := range 20 {
			done = append(done, b.look(time.Duration(i)*time.Second, []seen{look(i)})...)
		}
		require.Equal(t, []*cut{c}, done, name)
		assert.True(t, c.late, name)
		var s Summary
		s.add(c.complete(nil, nil), c.late)
		require.Len(t, s.Broken, 1, name)
		assert.Contains(t, s.Broken[0], "rejoin")
	}
}

func TestSecondCutEndsTheFirst(t *testing.T) {
	b := newBook(1)
	first, second := &cut{at: 10 * ms}, &cut{at: 50 * ms}
	require.Nil(t, b.begin(first))
	require.Equal(t, first, b.begin(second))
	r := first.complete(nil, nil)
	assert.Nil(t, r.RejoinMs)
	assert.InDelta(t, 40, r.CutMs, 0)
	assert.False(t, first.late)
}

func TestRecordTakesTheFirstSignAndTheWorstGap(t *testing.T) {
	c := &cut{at: 100 * ms, healed: 500 * ms, rejoined: 700 * ms}
	halves := []report{
		{
			Report: load.Report{Worst: load.Span{Stream: "pair 1", From: 100 * ms, To: 250 * ms}},
			Signs: []sign{
				{At: 90 * ms, Kind: "RailSuspect", Local: "mine", Cause: "before the cut"},
				{At: 120 * ms, Kind: "RailDown", Local: "other"},
				{At: 170 * ms, Kind: "RailDown", Local: "mine", Remote: "theirs", Cause: "later"},
			},
		},
		{
			Report: load.Report{Worst: load.Span{Stream: "put 2", From: 100 * ms, To: 300 * ms}},
			Signs: []sign{
				{At: 110 * ms, Kind: "RailUp", Local: "mine"},
				{At: 150 * ms, Kind: "RailSuspect", Local: "mine", Remote: "theirs", Cause: "silence"},
			},
		},
	}
	r := c.complete(halves, func(s sign) bool { return s.Local == "mine" })
	assert.InDelta(t, 50, *r.DetectedMs, 0)
	assert.Equal(t, "RailSuspect", r.DetectedBy)
	assert.Equal(t, "silence", r.Cause)
	assert.Equal(t, "theirs", r.Remote)
	assert.InDelta(t, 200, r.GapMs, 0)
	assert.Equal(t, "put 2", r.GapOf)
	assert.InDelta(t, 200, *r.RejoinMs, 0)
}

func TestSummaryKeepsTheWorst(t *testing.T) {
	s := Summary{Broken: []string{}}
	s.add(Record{RailsLeft: 2, GapMs: 100, RejoinMs: millis(300 * ms)}, false)
	s.add(Record{RailsLeft: 1, GapMs: 150}, false)
	s.add(Record{RailsLeft: 0, GapMs: 3100, RejoinMs: millis(20 * ms)}, false)
	assert.Equal(t, 3, s.Cuts)
	assert.InDelta(t, 150, s.MaxGapMs, 0)
	assert.InDelta(t, 3100, s.MaxGapAllMs, 0)
	assert.InDelta(t, 300, s.MaxRejoinMs, 0)

	s.take(load.Counters{Sent: 10, Delivered: 9, Puts: 4, Completed: 3, Canceled: 1, Checked: 3, PutBytes: 5e6}, 2*time.Second)
	assert.EqualValues(t, 1, s.Lost)
	assert.InDelta(t, 4, s.MsgsPerS, 0)
	assert.InDelta(t, 2.5, s.PutMBps, 0)
	assert.InDelta(t, 2, s.Seconds, 0)
	require.Len(t, s.Broken, 1)
	assert.Contains(t, s.Broken[0], "lost")
}
