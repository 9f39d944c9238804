package endpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
	"railyard/supervision"
)

// ruling is one decision of a policy.
type ruling struct {
	at time.Time
	h  supervision.History
	f  supervision.Failure
	d  supervision.Directive
	// next is the place of the dial that follows.
	next int
}

// court keeps what a policy decides, and when its rails dial.
type court struct {
	supervision.Policy
	rail.Kind
	mu      sync.Mutex
	rulings map[string][]ruling
	dials   map[string][]time.Time
}

// court makes a node's rails dial and be judged on record, by the default policy.
func (c *court) preside(t testing.TB) func(*Config) {
	return func(cfg *Config) {
		var err error
		c.Policy, err = supervision.Default(supervision.DefaultConfig{}, rand.NewPCG(3, 4))
		require.NoError(t, err)
		c.Kind = cfg.Kinds[railtest.KindPipe]
		c.rulings, c.dials = make(map[string][]ruling), make(map[string][]time.Time)
		cfg.Policy, cfg.Kinds = c, map[string]rail.Kind{railtest.KindPipe: c}
		cfg.OutageLimit = time.Hour
	}
}

func (c *court) Decide(h supervision.History, f supervision.Failure, now time.Duration) supervision.Directive {
	d := c.Policy.Decide(h, f, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rulings[f.Local] = append(c.rulings[f.Local], ruling{time.Now(), h, f, d, len(c.dials[f.Local])})
	return d
}

func (c *court) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	c.mu.Lock()
	c.dials[local] = append(c.dials[local], time.Now())
	c.mu.Unlock()
	return c.Kind.Dial(ctx, local, remote)
}

// clear forgets what was.
func (c *court) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.rulings)
	clear(c.dials)
}

// obeyed checks that each dial came when the ruling before it said, to the microsecond, and gives the longest delay.
func (c *court) obeyed(t testing.TB, local string) time.Duration {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	rulings, dials := c.rulings[local], c.dials[local]
	require.Greater(t, len(rulings), 5)
	var longest time.Duration
	for i, r := range rulings[:len(rulings)-1] {
		require.Equal(t, supervision.Restart, r.d.Action)
		want := r.d.Delay
		if !r.h.Healthy {
			want = max(want, time.Millisecond) // a dial that failed at once is not repeated at once
		}
		require.InDelta(t, want, dials[r.next].Sub(r.at), float64(time.Microsecond), "after failure %d", i+1)
		longest = max(longest, r.d.Delay)
	}
	return longest
}

// A rail whose cable is out is tried again at the policy's pace: at once, then after random parts of 50 ms doubled each time, of
// half a second at most while the peer is reachable on another rail, of five where it is not.
func TestRailsAreTriedAtThePolicysPace(t *testing.T) {
	virtually(t, func(t *testing.T) {
		c := &court{}
		bd := virtualBed(t, bedSpec{a: c.preside(t), b: func(cfg *Config) { cfg.OutageLimit = time.Hour }})
		pass(time.Minute)
		c.clear()
		bd.cables[1].Cut()
		pass(5 * time.Minute)
		longest := c.obeyed(t, "a1:1")
		require.LessOrEqual(t, longest, 500*time.Millisecond)
		require.Greater(t, longest, 450*time.Millisecond, "the whole of the half second is used")
		require.Zero(t, c.rulings["a1:1"][0].d.Delay, "after a healthy spell the first try is at once")
		ceiling := 50 * time.Millisecond
		for i, r := range c.rulings["a1:1"][1:] {
			require.LessOrEqual(t, r.d.Delay, ceiling, "failure %d", i+2)
			require.Equal(t, supervision.Path, r.f.Class)
			require.True(t, r.h.Reachable)
			ceiling = min(2*ceiling, 500*time.Millisecond)
		}
		require.Empty(t, c.rulings["a0:1"], "the other rail is left alone")

		bd.cables[0].Cut()
		pass(time.Second)
		c.clear()
		pass(10 * time.Minute)
		longest = c.obeyed(t, "a1:1")
		require.LessOrEqual(t, longest, 5*time.Second)
		require.Greater(t, longest, 4500*time.Millisecond)

		healed := time.Now()
		bd.heal()
		bd.allUp()
		require.Less(t, time.Since(healed), 6100*time.Millisecond, "the first after five seconds at most, the other one a second later")
		bd.nobodyDown()
		bd.a.lives(t)
	})
}

// A rail that flaps is watched longer each time: 250 ms after its first loss, doubled with each more, five seconds at most.
func TestFlappingRailIsInProbation(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{})
		pass(2 * time.Minute)
		want := 250 * time.Millisecond
		for flap := range 7 {
			bd.cables[1].Reset()
			eventually(t, "it is back", func() (bool, any) {
				return len(bd.a.events.of(rail.RailRejoined)) == flap+1, bd.ab.Rails()
			})
			require.Equal(t, rail.Probation, bd.ab.Rails()[1].State)
			back := bd.a.events.of(rail.RailRejoined)[flap].At
			ups := len(bd.a.events.of(rail.RailUp))
			pass(want + 10*time.Millisecond)
			all := bd.a.events.of(rail.RailUp)
			require.Len(t, all, ups+1, "out of probation, flap %d", flap+1)
			require.InDelta(t, want, all[ups].At.Sub(back), float64(time.Millisecond), "flap %d", flap+1)
			require.Equal(t, rail.Up, bd.ab.Rails()[1].State)
			want = min(2*want, 5*time.Second)
		}
		bd.nobodyDown()
		bd.a.lives(t)
		bd.b.lives(t)
	})
}

// decided is a policy that answers one thing.
func decided(a supervision.Action) func(*Config) {
	return func(c *Config) {
		c.Policy = supervision.PolicyFunc(func(supervision.History, supervision.Failure, time.Duration) supervision.Directive {
			return supervision.Directive{Action: a}
		})
	}
}

// A policy that escalates ends the endpoint, and tells the peer on the rails that are left: it ends at once, too.
func TestEscalationIsSaidToThePeer(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{a: decided(supervision.Escalate)})
		ab, ba := bd.ab, bd.back()
		mine, theirs := newChores(t, bd.a), newChores(t, bd.b)
		for _, c := range bd.cables {
			c.Slow(bothWays, 1<<20)
		}
		mine.add(ab, bd.b, 4)
		theirs.add(ba, bd.a, 4)
		bd.cables[1].Reset()
		pass(time.Second)
		for _, e := range []*Endpoint{ab, ba} {
			require.True(t, e.hasEnded())
			require.ErrorIs(t, e.Err(), rma.ErrEndpointDown)
		}
		require.ErrorIs(t, ba.Err(), supervision.ErrGoodbye)
		mine.failed(rma.ErrEndpointDown)
		theirs.failed(rma.ErrEndpointDown)
		require.Len(t, bd.a.downCauses(), 1)
		require.Len(t, bd.b.downCauses(), 1)
		bd.heal()
		bd.connect()
		bd.works()
	})
}

// A policy that stops rails: the rest carries the work; with the last one the endpoint ends. Then there is no rail to tell
// the peer on, and it ends by its own outage limit.
func TestRailsStoppedOneByOne(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{a: decided(supervision.Stop)})
		ab, ba := bd.ab, bd.back()
		work := newChores(t, bd.a)
		work.add(ab, bd.b, 4)
		bd.cables[1].Reset()
		work.add(ab, bd.b, 4)
		pass(time.Second)
		work.well()
		require.Len(t, bd.a.events.of(rail.RailGaveUp), 1)
		last := newChores(t, bd.a)
		for _, c := range bd.cables {
			c.Slow(bothWays, 1<<20)
		}
		last.add(ab, bd.b, 4)
		bd.cables[0].Reset()
		pass(time.Second)
		require.ErrorIs(t, ab.Err(), rma.ErrEndpointDown)
		last.failed(rma.ErrEndpointDown)
		require.False(t, ba.hasEnded())
		pass(patience)
		require.True(t, ba.hasEnded(), "%v", fmt.Sprint(ba.Rails()))
	})
}

// A rail that is only rerouted stays down until a hint; its work goes on elsewhere, and the endpoint lives.
func TestReroutedRailStaysDown(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{a: decided(supervision.Reroute)})
		work := newChores(t, bd.a)
		work.add(bd.ab, bd.b, 4)
		bd.cables[1].Reset()
		work.add(bd.ab, bd.b, 4)
		pass(10 * time.Minute)
		work.well()
		require.Equal(t, rail.Down, bd.ab.Rails()[1].State)
		require.Empty(t, bd.a.events.of(rail.RailGaveUp))
		r := bd.ab.records()[1]
		bd.ab.root.Send(r.pid, &rail.LinkHint{Up: true})
		bd.allUp()
		bd.nobodyDown()
		bd.a.lives(t)
	})
}
