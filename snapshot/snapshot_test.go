package snapshot

import (
	"encoding/json"
	"errors"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
)

func TestQuantilesAreOfWhatWasTimed(t *testing.T) {
	times := Times{Buckets: make([]uint64, 24)}
	_, ok := times.Quantile(0.5)
	assert.False(t, ok)
	before := times.Since(times)
	times.Buckets[3], times.Buckets[10] = 98, 2
	for q, want := range map[float64]time.Duration{0: 8 * time.Microsecond, 0.5: 8 * time.Microsecond, 0.98: 8 * time.Microsecond,
		0.99: 1024 * time.Microsecond, 1: 1024 * time.Microsecond} {
		got, ok := times.Quantile(q)
		assert.True(t, ok)
		assert.Equal(t, want, got, "%v", q)
	}
	assert.EqualValues(t, 100, times.Since(before).Count())
	assert.EqualValues(t, 0, times.Since(times).Count())
	assert.EqualValues(t, 100, times.Since(Times{Buckets: append(make([]uint64, 23), 1)}).Count(), "the node has begun anew")
	assert.EqualValues(t, 100, times.Since(Times{}).Count())
}

func TestAFailoverIsFollowed(t *testing.T) {
	var l Log
	at := time.Unix(1000, 0)
	say := func(e rail.Event) {
		at = at.Add(time.Second)
		e.At, e.Peer, e.Local, e.Remote = at, "peer", "card", "its card"
		l.Take(e)
	}
	shown := func() Node {
		var n Node
		l.Fill(&n)
		return n
	}
	assert.NotNil(t, shown().Events)
	say(rail.Event{Kind: rail.RailUp, Rail: 1, Generation: 1})
	say(rail.Event{Kind: rail.RailDown, Rail: 1, Generation: 1, InFlight: 900, Cause: errors.New("cable")})
	n := shown()
	require.Len(t, n.Failovers, 1)
	f := n.Failovers[0]
	assert.Equal(t, "cable", f.Cause)
	assert.Nil(t, f.GapMs)
	say(rail.Event{Kind: rail.RailRejoined, Rail: 2, Outage: time.Second})
	say(rail.Event{Kind: rail.RailRetired, Rail: 1, Generation: 1, Gap: 70 * time.Millisecond, Rerouted: 500})
	say(rail.Event{Kind: rail.RailRejoined, Rail: 1, Generation: 3, Outage: 2500 * time.Millisecond})
	f = shown().Failovers[0]
	assert.InDelta(t, 70, *f.GapMs, 1e-9)
	assert.InDelta(t, 2500, *f.OutageMs, 1e-9)
	assert.EqualValues(t, 500, f.Rerouted)
	assert.Empty(t, l.open)

	say(rail.Event{Kind: rail.RailDown, Rail: 1, Generation: 3})
	say(rail.Event{Kind: rail.RailDown, Rail: 2, Generation: 1})
	say(rail.Event{Kind: rail.EndpointDown})
	n = shown()
	require.Len(t, n.Failovers, 3)
	assert.True(t, n.Failovers[1].Ended)
	assert.True(t, n.Failovers[2].Ended)
	assert.Empty(t, l.open)
	assert.EqualValues(t, len(n.Events), n.Events[len(n.Events)-1].Sequence)
}

func TestALogIsBounded(t *testing.T) {
	var l Log
	for range 3 * keptEvents {
		l.Take(rail.Event{Kind: rail.RailDown, Peer: "peer"})
	}
	assert.LessOrEqual(t, len(l.events), keptEvents)
	assert.LessOrEqual(t, len(l.failovers), keptFailovers)
	assert.Len(t, l.open, 1)
	l.Take(rail.Event{Kind: rail.RailUp, Missed: 7})
	assert.Empty(t, l.open, "what was missed may have ended it")
	var n Node
	l.Fill(&n)
	assert.Len(t, n.Events, ShownEvents)
	assert.Len(t, n.Failovers, ShownFailovers)
	assert.EqualValues(t, 3*keptEvents+1, n.Events[ShownEvents-1].Sequence)
}

func TestRailsAsJSON(t *testing.T) {
	r := OfRail(rail.Status{Local: "a", State: rail.Probation, RoundTrip: time.Millisecond, Since: time.Second, BytesIn: 7, ID: 3})
	assert.True(t, r.Working())
	b, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"state":"probation"`)
	assert.Contains(t, string(b), `"round_trip_us":1000`)
	var back Rail
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, r, back, "what is written can be read")
	assert.Error(t, json.Unmarshal([]byte(`{"state":"gone"}`), &back))
}

func TestBuilds(t *testing.T) {
	assert.Equal(t, "unknown", buildOf(nil, false).Version)
	own := &debug.BuildInfo{Main: debug.Module{Path: "railyard", Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "then"}}}
	assert.Equal(t, "0123456789ab+changes", buildOf(own, true).Version)
	user := &debug.BuildInfo{Main: debug.Module{Path: "example.org/app", Version: "v9.0.0"},
		Deps: []*debug.Module{{Path: "railyard", Version: "v1.2.3"}}}
	assert.Equal(t, "v1.2.3", buildOf(user, true).Version)
	assert.NotEmpty(t, ThisBuild().Go)
}
