package endpoint

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"railyard/metrics"
	"railyard/rail"
)

// A failover tells each of its moments once and in order, how much was carried again, and how long that had stood still; metrics say
// the same.
func TestAFailoverTellsItsMoments(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{})
		registry := prometheus.NewRegistry()
		w, err := metrics.Watch(bd.a.cfg.Events, registry)
		require.NoError(t, err)
		defer w.Close()
		work := newChores(t, bd.a)
		for _, c := range bd.cables {
			c.Slow(bothWays, 1<<20)
		}
		work.add(bd.ab, bd.b, 12)
		pass(300 * time.Millisecond)
		cut := time.Now()
		bd.cables[1].BlackHole(bothWays)
		pass(10 * time.Second)
		healed := time.Now()
		bd.heal()
		bd.allUp()
		pass(10 * time.Second)
		work.well()

		since := func(p *peer, kind rail.EventKind, since time.Time) (list []rail.Event) {
			for _, e := range p.events.of(kind) {
				if e.Rail == 1 && !e.At.Before(since) {
					list = append(list, e)
				}
			}
			return list
		}
		one := func(kind rail.EventKind, from time.Time) rail.Event {
			t.Helper()
			list := since(bd.a, kind, from)
			require.Len(t, list, 1, "%s", kind)
			return list[0]
		}
		// Both ends notice at the same moment: where the peer says so first, nothing is left to suspect here.
		suspects := since(bd.a, rail.RailSuspect, cut)
		if len(suspects) == 0 {
			suspects = since(bd.b, rail.RailSuspect, cut)
		}
		require.Len(t, suspects, 1)
		suspect := suspects[0]
		down, retired := one(rail.RailDown, cut), one(rail.RailRetired, cut)
		back, up := one(rail.RailRejoined, healed), one(rail.RailUp, healed)
		require.False(t, down.At.Before(suspect.At))
		require.False(t, retired.At.Before(suspect.At))
		require.True(t, back.At.After(retired.At))
		require.True(t, up.At.After(back.At), "full weight")
		require.Positive(t, retired.Rerouted)
		require.GreaterOrEqual(t, retired.InFlight, retired.Rerouted)
		require.Equal(t, down.InFlight, retired.InFlight)
		require.InDelta(t, retired.At.Sub(cut), retired.Gap, float64(500*time.Millisecond), "nothing was heard since the cut")
		require.Contains(t, retired.String(), "rerouted=")
		families, err := registry.Gather()
		require.NoError(t, err)
		seen := false
		for _, f := range families {
			if f.GetName() == "railyard_failover_gap_seconds" {
				h := f.GetMetric()[0].GetHistogram()
				require.EqualValues(t, 1, h.GetSampleCount())
				require.InDelta(t, retired.Gap.Seconds(), h.GetSampleSum(), 1e-9)
				seen = true
			}
		}
		require.True(t, seen)
	})
}
