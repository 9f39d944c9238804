package load

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/internal/clock"
	"railyard/rma"
)

// TestADeathIsNoFault has puts fail as they do when the other node dies.
func TestADeathIsNoFault(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Mortal, c.RevokeShare = true, 0 })
	sum, notes := w.run(time.Second, func() { w.air[0].fail.Store(3) })
	assert.EqualValues(t, 3, sum.Unknown)
	assert.Zero(t, sum.EndpointErrors, notes)
	assert.Equal(t, sum.Puts, sum.Completed+sum.Canceled+sum.Unknown)
	assert.Contains(t, fmt.Sprint(sum.Broken()), "puts: ", "it is no clean end all the same")
}

// TestTheMemoryOfTheDead: what a dead node had half written is no late write, what comes after it is.
func TestTheMemoryOfTheDead(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Mortal = true })
	side := w.sides[0]
	region := side.target.slots[2].region
	require.True(t, region.Write(100, []byte("half a put")))
	require.NoError(t, side.Orphaned())
	require.NoError(t, side.Finish())
	assert.Zero(t, side.Report(0, 0).Counters.LateWrites)
	require.True(t, region.Write(100, []byte("half a put")))
	require.NoError(t, side.Finish())
	assert.EqualValues(t, 1, side.Report(0, 0).Counters.LateWrites)
	for _, s := range w.sides {
		s.Close()
	}
}

func TestPartingComparesReportsWithArrivals(t *testing.T) {
	s := &Side{config: Config{Name: "a", Mortal: true, Now: clock.Now}, sent: []uint64{10, 5}, reported: make([]map[uint64]bool, 2)}
	for n := uint64(6); n <= 9; n++ {
		s.Undelivered(&Numbered{Pair: 0, Sequence: n}, fmt.Errorf("x: %w", rma.ErrOutcomeUnknown))
	}
	s.Undelivered(&Numbered{Pair: 1, Sequence: 4}, rma.ErrEndpointDown)
	s.Undelivered(&Numbered{Pair: 1, Sequence: 5}, rma.ErrEndpointDown)
	s.Undelivered(&Numbered{Pair: 9, Sequence: 5}, rma.ErrEndpointDown) // nobody's
	assert.Equal(t, Parting{Silent: 1, Lies: 1, Reported: 6}, s.Part([]uint64{7, 4}), "10 of pair 0 is missing, 4 of pair 1 had come")
	assert.Zero(t, s.counters)
	s.Undelivered(&Numbered{Pair: 1, Sequence: 5}, rma.ErrEndpointDown)
	s.Undelivered(&Numbered{Pair: 0, Sequence: 1}, errors.New("no room"))
	assert.EqualValues(t, 1, s.counters.Doubled)
	assert.EqualValues(t, 1, s.counters.EndpointErrors, "that was nobody's death")
}

func TestASinkTellsHowFarItIs(t *testing.T) {
	last := [2]uint64{}
	w := newWorld(t, nil)
	s := w.sides[1]
	s.mu.Lock()
	s.config.Arrived = func(pair int, sequence uint64) { last[pair] = sequence }
	s.mu.Unlock()
	for _, n := range []uint64{1, 2, 5} {
		m := &Numbered{Pair: 1, Sequence: n}
		m.Sum = sumOf(m)
		w.sys.Root.RequestWithCustomSender(s.own("sink-1"), m, w.sides[0].own("source-1"))
	}
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return last[1] == 5 && s.holes == 2
	}, patience, time.Millisecond)
	assert.Equal(t, uint64(2), s.Part(nil).Holes)
	for _, s := range w.sides {
		s.Close()
	}
}
