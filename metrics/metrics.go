package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"railyard/rail"
	"railyard/wire"
)

// ErrRegister is wrapped by the error of a registry that does not take the metrics: is another node watched with the same one?
// Give each a registry of its own, or wrap it (prometheus.WrapRegistererWith).
var ErrRegister = errors.New("the registry does not take a node's metrics: give each node a registry, or labels, of its own")

// buckets are in seconds: from what no user notices to what everybody does.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.35, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// The stages of a failover.
const (
	suspicion = "suspicion"
	settling  = "settling"
	outage    = "outage"
	probation = "probation"
)

// Watcher keeps the metrics of one node.
type Watcher struct {
	registry prometheus.Registerer
	gap      *prometheus.HistogramVec
	stages   *prometheus.HistogramVec
	rerouted *prometheus.CounterVec
	kinds    *prometheus.CounterVec
	missed   prometheus.Counter

	rails   map[railName]*moments // Owner: the watcher's goroutine
	stop    context.CancelFunc
	running sync.WaitGroup
}

// railName tells one rail of the node from all others.
type railName struct {
	peer string
	rail wire.RailID
}

// moments are those of a rail that a later event is measured from; zero: did not happen, or is over.
type moments struct {
	suspected, lost, rejoined time.Time
	generation                wire.Generation // of lost
}

// Watch keeps metrics of a node's events until Close, or until the node ends. The error wraps ErrRegister.
func Watch(events *rail.Events, registry prometheus.Registerer) (*Watcher, error) {
	w := &Watcher{
		registry: registry, rails: map[railName]*moments{},
		gap: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "railyard_failover_gap_seconds", Buckets: buckets,
			Help: "How long what a lost rail carried stood still, in seconds."}, []string{"local"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "railyard_failover_stage_seconds", Buckets: buckets,
			Help: "How long each stage of a failover took, in seconds."}, []string{"local", "stage"}),
		rerouted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "railyard_rerouted_bytes_total",
			Help: "Bytes that other rails had to carry again."}, []string{"local"}),
		kinds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "railyard_events_total",
			Help: "Events of rails and endpoints."}, []string{"kind"}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{Name: "railyard_events_missed_total",
			Help: "Events that were lost before they were counted."}),
	}
	for i, c := range w.all() {
		if err := registry.Register(c); err != nil {
			for _, done := range w.all()[:i] {
				registry.Unregister(done)
			}
			return nil, fmt.Errorf("%w: %w", ErrRegister, err)
		}
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	subscription := events.Subscribe(ctx)
	w.running.Go(func() {
		for e := range subscription {
			w.take(e)
		}
	})
	return w, nil
}

func (w *Watcher) all() []prometheus.Collector {
	return []prometheus.Collector{w.gap, w.stages, w.rerouted, w.kinds, w.missed}
}

// Close ends the watch and takes the metrics out of the registry. Once is enough.
func (w *Watcher) Close() {
	w.stop()
	w.running.Wait()
	for _, c := range w.all() {
		w.registry.Unregister(c)
	}
}

// take counts one event.
func (w *Watcher) take(e rail.Event) {
	w.kinds.WithLabelValues(e.Kind.String()).Inc()
	if e.Missed > 0 { // among what was missed may be the end of a stage, or of a peer
		w.missed.Add(float64(e.Missed))
		clear(w.rails)
	}
	if e.Kind == rail.EndpointDown {
		for name := range w.rails {
			if name.peer == e.Peer {
				delete(w.rails, name)
			}
		}
		return
	}
	m := w.moments(e)
	if m == nil {
		return
	}
	switch e.Kind {
	case rail.RailSuspect:
		m.suspected = e.At
	case rail.RailTrusted:
		m.suspected = time.Time{}
	case rail.RailDown:
		w.stage(e, suspicion, &m.suspected)
		m.lost, m.generation, m.rejoined = e.At, e.Generation, time.Time{}
	case rail.RailRetired:
		w.gap.WithLabelValues(e.Local).Observe(e.Gap.Seconds())
		w.rerouted.WithLabelValues(e.Local).Add(float64(e.Rerouted))
		if m.generation == e.Generation {
			w.stage(e, settling, &m.lost)
		}
	case rail.RailRejoined:
		w.stages.WithLabelValues(e.Local, outage).Observe(e.Outage.Seconds())
		m.rejoined = e.At
	case rail.RailUp:
		w.stage(e, probation, &m.rejoined)
	default: // the others are counted, that is all
	}
}

// moments gives those of the event's rail; nil: it is no rail's event.
func (w *Watcher) moments(e rail.Event) *moments {
	switch e.Kind {
	case rail.RailSuspect, rail.RailTrusted, rail.RailDown, rail.RailRetired, rail.RailRejoined, rail.RailUp:
	default:
		return nil
	}
	name := railName{e.Peer, e.Rail}
	m := w.rails[name]
	if m == nil {
		m = &moments{}
		w.rails[name] = m
	}
	return m
}

// stage measures from a moment to the event, and ends it.
func (w *Watcher) stage(e rail.Event, stage string, from *time.Time) {
	if from.IsZero() {
		return
	}
	w.stages.WithLabelValues(e.Local, stage).Observe(max(e.At.Sub(*from), 0).Seconds())
	*from = time.Time{}
}
