package metrics

import (
	"bytes"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/snapshot"
)

// sample is a node with two peers of two rails each.
func sample() snapshot.Node {
	times := snapshot.Times{Buckets: make([]uint64, 24), Sum: 3 * time.Millisecond}
	times.Buckets[10], times.Buckets[23] = 3, 1
	n := snapshot.Node{Totals: snapshot.Totals{MessagesSent: 7, BytesIn: 9, Completed: 4, Puts: times, Gets: times, Messages: times},
		Regions: snapshot.Regions{Live: 2, Limit: 10}}
	for _, peer := range []string{"a:1", "b:1"} {
		e := snapshot.Endpoint{Peer: peer, Window: 100, UnderWay: 30, Full: 1, Open: 2}
		for i, state := range []rail.State{rail.Up, rail.Down} {
			e.Rails = append(e.Rails, snapshot.Rail{ID: uint32(i), Local: "card", Remote: "its", State: state, BytesOut: 1000, RoundTrip: 1500})
		}
		n.Endpoints = append(n.Endpoints, e)
	}
	return n
}

func TestANodeAsMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(Collector(sample)))
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Len(t, families, len(described), "what is described is there")
	get := func(name, value string) float64 {
		list := gathered(t, registry, name, value)
		require.NotEmpty(t, list, name)
		return list[0].GetGauge().GetValue() + list[0].GetCounter().GetValue()
	}
	assert.InDelta(t, 7, get("railyard_messages_total", "out"), 0)
	assert.InDelta(t, 9, get("railyard_bytes_total", "in"), 0)
	assert.InDelta(t, 2, get("railyard_rails", "up"), 0)
	assert.InDelta(t, 1, get("railyard_rail_up", "0"), 0)
	assert.InDelta(t, 0, get("railyard_rail_up", "1"), 0)
	assert.InDelta(t, 0.0015, get("railyard_rail_round_trip_seconds", ""), 1e-12)
	puts := gathered(t, registry, "railyard_put_seconds", "")[0].GetHistogram()
	assert.EqualValues(t, 4, puts.GetSampleCount())
	assert.InDelta(t, 0.003, puts.GetSampleSum(), 1e-12)
	last := puts.GetBucket()[len(puts.GetBucket())-1]
	assert.EqualValues(t, 3, last.GetCumulativeCount(), "what took longest is under no limit")
}

// Prometheus's own parser and linter have nothing to say.
func TestMetricsAreConventional(t *testing.T) {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(Collector(sample)))
	events := rail.NewEvents()
	w, err := Watch(events, registry)
	require.NoError(t, err)
	events.Close()
	w.Close()
	for _, c := range w.all() { // they outlive the watch in this registry
		require.NoError(t, registry.Register(c))
	}
	w.take(rail.Event{Kind: rail.RailRetired, Peer: "a:1", Local: "card"})
	w.take(rail.Event{Kind: rail.RailRejoined, Peer: "a:1", Local: "card"})
	families, err := registry.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	problems, err := promlint.New(bytes.NewReader(text.Bytes())).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}
