package metrics

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/rail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// gathered gives the metrics of a name and a label's value; "": whatever the labels are.
func gathered(t *testing.T, from prometheus.Gatherer, name, value string) (list []*dto.Metric) {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			fits := f.GetName() == name && value == ""
			for _, l := range m.GetLabel() {
				fits = fits || f.GetName() == name && l.GetValue() == value
			}
			if fits {
				list = append(list, m)
			}
		}
	}
	return list
}

// sum is that of a histogram, in seconds, and how often something was observed.
func sum(t *testing.T, from prometheus.Gatherer, name, value string) (total float64, times uint64) {
	for _, m := range gathered(t, from, name, value) {
		total += m.GetHistogram().GetSampleSum()
		times += m.GetHistogram().GetSampleCount()
	}
	return total, times
}

func TestAFailoverIsMeasured(t *testing.T) {
	events, registry := rail.NewEvents(), prometheus.NewRegistry()
	w, err := Watch(events, registry)
	require.NoError(t, err)
	at := time.Unix(1000, 0)
	say := func(after time.Duration, e rail.Event) {
		at = at.Add(after)
		e.At, e.Peer, e.Rail, e.Local = at, "peer", 1, "card"
		events.Publish(e)
	}
	say(0, rail.Event{Kind: rail.RailUp, Generation: 1})
	say(time.Second, rail.Event{Kind: rail.RailSuspect, Generation: 1})
	say(time.Second, rail.Event{Kind: rail.RailTrusted, Generation: 1})
	say(time.Second, rail.Event{Kind: rail.RailSuspect, Generation: 1})
	say(2*time.Second, rail.Event{Kind: rail.RailDown, Generation: 1, InFlight: 900})
	say(4*time.Second, rail.Event{Kind: rail.RailRetired, Generation: 1, InFlight: 900, Rerouted: 700, Gap: 7 * time.Second})
	say(8*time.Second, rail.Event{Kind: rail.RailRejoined, Generation: 2, Outage: 12 * time.Second})
	say(16*time.Second, rail.Event{Kind: rail.RailUp, Generation: 2})
	require.Eventually(t, func() bool {
		_, n := sum(t, registry, "railyard_failover_stage_seconds", probation)
		return n == 1
	}, patience, time.Millisecond)
	for stage, want := range map[string]float64{suspicion: 2, settling: 4, outage: 12, probation: 16} {
		total, n := sum(t, registry, "railyard_failover_stage_seconds", stage)
		assert.EqualValues(t, 1, n, stage)
		assert.InDelta(t, want, total, 1e-9, stage)
	}
	total, n := sum(t, registry, "railyard_failover_gap_seconds", "card")
	assert.EqualValues(t, 1, n)
	assert.InDelta(t, 7, total, 1e-9)
	assert.InDelta(t, 700, gathered(t, registry, "railyard_rerouted_bytes_total", "card")[0].GetCounter().GetValue(), 0)
	assert.InDelta(t, 2, gathered(t, registry, "railyard_events_total", "RailSuspect")[0].GetCounter().GetValue(), 0)
	events.Publish(rail.Event{Kind: rail.EndpointDown, Peer: "peer"})
	events.Close()
	w.Close()
	assert.Empty(t, w.rails, "what is known of a peer ends with it")
	assert.Empty(t, gathered(t, registry, "railyard_events_total", ""), "the metrics are gone with the watcher")
}

// Nothing is measured across a hole in the events, and what may have ended in it is not remembered.
func TestWhatWasMissedIsNotMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	w, err := Watch(rail.NewEvents(), registry)
	require.NoError(t, err)
	w.Close()
	require.NoError(t, registry.Register(w.stages))
	at := time.Unix(1000, 0)
	w.take(rail.Event{Kind: rail.RailSuspect, Peer: "gone", At: at})
	w.take(rail.Event{Kind: rail.RailSuspect, Peer: "peer", At: at})
	w.take(rail.Event{Kind: rail.RailDown, Peer: "peer", At: at.Add(time.Minute), Missed: 3})
	assert.Len(t, w.rails, 1)
	assert.Empty(t, gathered(t, registry, "railyard_failover_stage_seconds", suspicion))
	w.take(rail.Event{Kind: rail.RailRetired, Peer: "peer", At: at.Add(2 * time.Minute)})
	total, n := sum(t, registry, "railyard_failover_stage_seconds", settling)
	assert.EqualValues(t, 1, n)
	assert.InDelta(t, 60, total, 1e-9)
}

func TestTwoNodesNeedTwoRegistries(t *testing.T) {
	registry := prometheus.NewRegistry()
	w, err := Watch(rail.NewEvents(), registry)
	require.NoError(t, err)
	_, err = Watch(rail.NewEvents(), registry)
	require.ErrorIs(t, err, ErrRegister)
	var twice prometheus.AlreadyRegisteredError
	assert.True(t, errors.As(err, &twice))
	w.Close()
	labeled := prometheus.NewRegistry()
	for _, name := range []string{"a", "b"} {
		w, err := Watch(rail.NewEvents(), prometheus.WrapRegistererWith(prometheus.Labels{"node": name}, labeled))
		require.NoError(t, err, "or labels of its own")
		defer w.Close()
	}
}
