package perf

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
)

func TestDiaryTellsWhatHappenedToTheRails(t *testing.T) {
	var d diary
	at := time.Unix(7, 0)
	d.write(rail.Event{Kind: rail.RailUp, At: at})
	d.write(rail.Event{Kind: rail.RailDown, At: at, Local: "a", Remote: "b", Generation: 3, Cause: errors.New("cut"), InFlight: 9, Missed: 2})
	d.write(rail.Event{Kind: rail.RailRejoined, At: at.Add(time.Second), Outage: time.Second})
	var r Result
	d.tell(&r)
	assert.EqualValues(t, 1, r.Lives)
	require.Len(t, r.Trouble, 2, "a rail that comes up is no trouble")
	assert.Equal(t, Trouble{At: at.UnixNano(), Kind: "RailDown", Local: "a", Remote: "b", Generation: 3, Cause: "cut", InFlight: 9,
		Missed: 2}, r.Trouble[0])
	assert.EqualValues(t, 1_000_000, r.Trouble[1].OutageUS)
	assert.Contains(t, r.Text(), "1 lives lost")
}

func TestDiaryIsBounded(t *testing.T) {
	var d diary
	for range maxTrouble + 5 {
		d.write(rail.Event{Kind: rail.RailDown, Missed: 1})
	}
	var r Result
	d.tell(&r)
	assert.EqualValues(t, maxTrouble+5, r.Lives)
	require.Len(t, r.Trouble, maxTrouble)
	assert.EqualValues(t, 11, r.Trouble[maxTrouble-1].Missed, "its own one, and two for each of the five")
}
