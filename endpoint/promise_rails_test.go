package endpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
	"railyard/wire"
)

// P5: a rail's death at any instant loses nothing, doubles nothing, and shows only as events.
func TestPromise5RailDeathIsOnlyAnEvent(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{rails: 3, both: hasty(t)})
		there := startTalk(t, bd.a, bd.b, talkSpec{targets: 3, seed: rnd.Uint64()})
		back := startTalk(t, bd.b, bd.a, talkSpec{targets: 3, seed: rnd.Uint64()})
		load := startPuts(t, bd.ab, bd.b, putSpec{workers: 3, seed: rnd.Uint64()})
		resets := sized(24, 300)
		for i := range resets {
			k := rnd.IntN(len(bd.cables))
			before := bd.generations()[k]
			time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond) // the random instant
			bd.cables[k].Reset()
			eventually(t, fmt.Sprintf("rail %d is back after reset %d", k, i), func() (bool, any) {
				r := bd.ab.Rails()[k]
				return r.Generation > before && (r.State == rail.Up || r.State == rail.Probation), r
			})
		}
		there.finish()
		back.finish()
		load.finish()
		bd.allUp()
		bd.nobodyDown()
		for _, p := range []*peer{bd.a, bd.b} {
			require.Empty(t, p.undelivered())
		}
		// One that comes before the rail has taken its new connection up is no death.
		bd.deathsAreTold(resets * 9 / 10)
	})
}

// hasty makes rails come back at once, however often they broke: more breaks in less time.
func hasty(t testing.TB) func(*Config) {
	return func(c *Config) {
		var err error
		c.Policy, err = supervision.Default(supervision.DefaultConfig{Base: time.Millisecond, Max: 10 * time.Millisecond,
			BugLimit: supervision.MaxRecent - 1}, rand.NewPCG(1, 2))
		require.NoError(t, err)
	}
}

// deathsAreTold checks the events of a's rails: which card, which generation, why, and that each rail came back.
func (bd *bed) deathsAreTold(least int) {
	t := bd.t
	downs := bd.a.events.of(rail.RailDown)
	require.GreaterOrEqual(t, len(downs), least)
	eventually(t, "each death is followed by a return", func() (bool, any) {
		back := bd.a.events.of(rail.RailRejoined)
		return len(back) == len(downs), []int{len(back), len(downs)}
	})
	near, far := bd.a.Listening(), bd.b.cards.current.Load().told
	seen := make(map[string]bool)
	for _, ev := range downs {
		require.Equal(t, near[ev.Rail].Address, ev.Local)
		require.Equal(t, far[ev.Rail].GetAddress(), ev.Remote)
		require.Equal(t, bd.b.Address(), ev.Peer)
		require.Error(t, ev.Cause)
		name := fmt.Sprint(ev.Rail, "/", ev.Generation)
		require.False(t, seen[name], "generation %s died twice", name)
		seen[name] = true
	}
	for _, ev := range bd.a.events.of(rail.RailRejoined) {
		require.Equal(t, near[ev.Rail].Address, ev.Local)
		require.Positive(t, ev.Outage)
	}
}

// The late-write test's puts: how many at once, of what size, in chunks of what size, and the rails' bytes a second, which
// keep the puts under way for long enough to be cut.
const (
	latePuts  = 8
	lateSize  = 256 << 10
	lateChunk = 4 << 10
	lateRate  = 16 << 20
)

// P6: a rail whose card stalls, swallows chunks, and wakes up when they have been written another way and overwritten
// with newer data, changes nothing.
func TestPromise6NoLateWrite(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{both: func(c *Config) {
			hasty(t)(c)
			c.Session = session.Config{MinChunk: lateChunk, MaxChunk: lateChunk}
		}})
		region := bd.b.register(t, latePuts*lateSize, rma.RemoteWrite)
		swallowed, cuts, rounds := uint64(0), 0, 0
		for want := uint64(sized(100, 1000)); cuts < sized(5, 20) || swallowed < want; rounds++ {
			require.Less(t, rounds, 200, "only %d chunks were swallowed, in %d cuts", swallowed, cuts)
			// A cut that comes between two chunks holds nothing back, and does not count.
			if n := bd.lateRound(region, rounds) / (lateChunk + wire.HeaderSize); n > 0 {
				swallowed += n
				cuts++
			}
		}
		time.Sleep(200 * time.Millisecond) // whatever is later still
		bd.unchanged(region, hash(fmt.Sprint("new", rounds-1)))
		t.Logf("%d chunks were swallowed in %d of %d cuts", swallowed, cuts, rounds)
		bd.nobodyDown()
	})
}

// lateRound lets one rail swallow chunks of old data, has them written over the other one, writes newer data, and lets
// the first rail wake up. It gives how many bytes were swallowed.
func (bd *bed) lateRound(region *rma.Region, cut int) uint64 {
	t, k := bd.t, cut%len(bd.cables)
	c := bd.cables[k]
	for _, c := range bd.cables {
		c.Slow(forth, lateRate)
	}
	old, newer := hash(fmt.Sprint("old", cut)), hash(fmt.Sprint("new", cut))
	held := c.Held()
	ops := bd.startAll(region, old)
	eventually(t, "the rail has chunks in flight", func() (bool, any) {
		r := bd.ab.Rails()[k]
		require.False(t, ops[len(ops)-1].Finished(), "the puts ended before the rail could be cut")
		return r.BytesInFlight > 4*lateChunk, r
	})
	c.BlackHole([]way{forth, bothWays}[cut/2%2])
	bd.waitAll(ops)
	bd.waitAll(bd.startAll(region, newer))
	held = c.Held() - held
	c.Heal() // what was swallowed goes on its way
	bd.allUp()
	bd.unchanged(region, newer)
	return held
}

// startAll begins to write every slot of the region.
func (bd *bed) startAll(region *rma.Region, word uint64) []*rma.Op {
	ops := make([]*rma.Op, latePuts)
	for i := range ops {
		data := make([]byte, lateSize)
		fill(data, word+uint64(i)<<32)
		ops[i] = bd.ab.StartPut(region.Key(), uint64(i*lateSize), data)
	}
	return ops
}

func (bd *bed) waitAll(ops []*rma.Op) {
	bd.t.Helper()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	for i, op := range ops {
		require.NoError(bd.t, op.Wait(ctx), "put %d", i)
	}
}

func (bd *bed) unchanged(region *rma.Region, word uint64) {
	bd.t.Helper()
	b := make([]byte, region.Len())
	require.True(bd.t, region.Read(0, b))
	for i := range latePuts {
		at := foreign(b[i*lateSize:(i+1)*lateSize], word+uint64(i)<<32)
		require.Equal(bd.t, -1, at, "a late write in slot %d", i)
	}
}

// No work waits for a heartbeat to be noticed: with hours between them, bursts over idle rails still get through.
func TestNoWorkWaitsForAHeartbeat(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{both: func(c *Config) {
			c.Health = rail.HealthConfig{Beat: time.Hour, IdleBeat: time.Hour, Floor: 2 * time.Hour, Unmeasured: 2 * time.Hour,
				Ceiling: 2 * time.Hour}
		}})
		region := bd.b.register(t, 1<<20, rma.RemoteWrite)
		route, target, typ := bd.a.Route(bd.b.Address()), NewRef("burst"), NewRef(numberedType)
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		sent := uint64(0)
		for range sized(60, 600) {
			for range 1 + rnd.IntN(20) {
				payload := make([]byte, 33<<10+rnd.IntN(300<<10))
				stamp("burst", sent, payload)
				require.NoError(t, route.Send(ctx, &Outgoing{Target: target, Type: typ, Payload: payload}))
				sent++
			}
			op := bd.ab.StartPut(region.Key(), 0, make([]byte, rnd.IntN(1<<20)))
			eventually(t, "a burst arrives", func() (bool, any) {
				return bd.b.arrived("burst") == sent && op.Finished(), []any{bd.a.sizes(), bd.b.sizes()}
			})
			require.NoError(t, op.Err())
		}
	})
}

// P7: a sender whose receiver gives no room back is told so, and goes on when there is room again.
func TestPromise7SlowReceiverSlowsItsSender(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{both: func(c *Config) {
			c.Session = session.Config{MaxMessage: 100 << 10, Window: 1 << 20}
		}})
		bd.b.setWithhold(true)
		route := bd.a.Route(bd.b.Address())
		target, typ := NewRef("slow"), NewRef(numberedType)
		sent, bytes := uint64(0), uint64(0)
		send := func(ctx context.Context) error {
			payload := make([]byte, 16+sent*37%(90<<10))
			stamp("slow", sent, payload)
			err := route.Send(ctx, &Outgoing{Target: target, Type: typ, Payload: payload})
			if err == nil {
				sent++
				bytes += uint64(len(payload))
			}
			return err
		}
		fillUp := func() error {
			for {
				ctx, done := context.WithTimeout(context.Background(), 50*time.Millisecond)
				err := send(ctx)
				done()
				if err != nil {
					return err
				}
				require.LessOrEqual(t, bytes, uint64(1<<20), "more under way than the window")
			}
		}
		err := fillUp()
		require.ErrorIs(t, err, rma.ErrWindowFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Greater(t, bytes, uint64(1<<19))
		require.ErrorIs(t, route.TrySend(&Outgoing{Target: target, Type: typ, Payload: make([]byte, 90<<10)}), rma.ErrWindowFull)
		// System messages and puts are held up by no window.
		require.NoError(t, route.TrySend(&Outgoing{Target: NewRef("sys"), Type: NewRef("text"), System: true}))
		region := bd.b.register(t, 1<<20, rma.RemoteWrite)
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.NoError(t, bd.ab.Put(ctx, region.Key(), 0, make([]byte, 1<<20)))

		waiting := make(chan error, 1)
		go func() { waiting <- send(ctx) }()
		bd.b.setWithhold(false)
		bd.back().Consumed(bd.b.takeWithheld())
		require.NoError(t, <-waiting)
		for range 200 { // several windows more
			require.NoError(t, send(ctx))
		}
		eventually(t, "everything arrives", func() (bool, any) { return bd.b.arrived("slow") == sent, sent })
	})
}

func (w *witness) setWithhold(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.withhold = yes
}

func (w *witness) takeWithheld() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.withheld
	w.withheld = 0
	return n
}
