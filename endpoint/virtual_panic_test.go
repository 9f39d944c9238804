package endpoint

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
)

// mine is a bug in one of our actors: it panics once, at a message of a type, before or after that has been served.
type mine struct {
	*bomb
	after bool
}

func newMine(at string, after bool) *mine {
	return &mine{bomb: &bomb{at: at, every: 1, times: 1}, after: after}
}

func (m *mine) lay(p *actor.Props) *actor.Props {
	return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
			if !m.after {
				m.see(env.Message)
			}
			next(ctx, env)
			if m.after {
				m.see(env.Message)
			}
		}
	}))
}

// inEndpoints lays the mine in the endpoints' actors: those that the node's actor spawns.
func (m *mine) inEndpoints(c *Config) {
	laying := func(next actor.SpawnFunc) actor.SpawnFunc {
		return func(s *actor.ActorSystem, id string, p *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
			return next(s, id, m.lay(p), parent)
		}
	}
	m.atRoot(c, "railyard-", func(p *actor.Props) *actor.Props { return p.Configure(actor.WithSpawnMiddleware(laying)) })
}

// inNode lays it in the node's actor, inDevices in the one that watches cards.
func (m *mine) inNode(c *Config)    { m.atRoot(c, "railyard-$", m.lay) }
func (m *mine) inDevices(c *Config) { m.atRoot(c, "railyard-devices-", m.lay) }

// atRoot changes the props of the root actor with the prefix of a name.
func (m *mine) atRoot(c *Config, prefix string, change func(*actor.Props) *actor.Props) {
	devices := "railyard-devices-"
	c.System.Root.WithSpawnMiddleware(func(next actor.SpawnFunc) actor.SpawnFunc {
		return func(s *actor.ActorSystem, id string, p *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
			isDevices := len(id) > len(devices) && id[:len(devices)] == devices
			if isDevices == (prefix == devices) && len(id) > 9 && id[:9] == "railyard-" {
				p = change(p)
			}
			return next(s, id, p, parent)
		}
	})
}

// bustle makes every kind of message go to a's endpoint actor: operations of all sorts, some taken back, rails that come
// and go. It stops early where the endpoint has ended.
func bustle(bd *bed, mine, theirs *chores) {
	for _, c := range bd.cables {
		c.Slow(bothWays, 16<<20)
	}
	ba := bd.back()
	for i := range 4 {
		mine.add(bd.ab, bd.b, 3)
		theirs.add(ba, bd.a, 3)
		region := bd.b.register(bd.t, 8<<20, rma.RemoteWrite)
		taken := bd.ab.StartPut(region.Key(), 0, make([]byte, 8<<20))
		mine.handles = append(mine.handles, taken)
		pass(5 * time.Millisecond)
		for _, c := range bd.cables {
			c.BlackHole(back)
		}
		ctx, done := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_ = taken.Cancel(ctx) // given up, as no answer comes in time
		done()
		bd.heal()
		for _, c := range bd.cables {
			c.Slow(bothWays, 16<<20)
		}
		bd.cables[i%len(bd.cables)].Reset()
		pass(300 * time.Millisecond)
		if bd.ab.hasEnded() {
			return
		}
	}
}

// A bug in an endpoint's actor, at whatever message, ends that epoch at both ends: everything open completes once, whoever
// watches is told once, and the next epoch works.
func TestPanicInAnEndpointEndsItsEpoch(t *testing.T) {
	for _, at := range []string{
		"*endpoint.operation", "*rma.Put", "rma.Get", "rma.Flush", "*endpoint.completed", "*endpoint.takeBack", "*endpoint.abandon",
		"*endpoint.railsChanged", "*rail.Joined", "*rail.Broke",
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " after ", after), func(t *testing.T) {
				virtually(t, func(t *testing.T) {
					m := newMine(at, after)
					m.every = 1 << 30 // not before the rails are up
					bd := virtualBed(t, bedSpec{a: m.inEndpoints})
					bd.arm(m)
					epochEnds(t, bd, m)
				})
			})
		}
	}
}

// The same at the end that accepts.
func TestPanicInAnAcceptingEndpointEndsItsEpoch(t *testing.T) {
	for _, at := range []string{"*endpoint.accepted", "*endpoint.operation", "*endpoint.railsChanged", "*rail.Broke", "rma.Get"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " after ", after), func(t *testing.T) {
				virtually(t, func(t *testing.T) {
					m := newMine(at, after)
					m.every = 1 << 30
					bd := virtualBed(t, bedSpec{b: m.inEndpoints})
					bd.arm(m)
					epochEnds(t, bd, m)
				})
			})
		}
	}
}

// arm makes the mine go off at the next message of its type.
func (bd *bed) arm(m *mine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.every = 1
}

func epochEnds(t *testing.T, bd *bed, m *mine) {
	ab, ba := bd.ab, bd.back()
	mine, theirs := newChores(t, bd.a), newChores(t, bd.b)
	bustle(bd, mine, theirs)
	pass(2 * time.Second)
	require.Equal(t, 1, m.count(), "the bug has shown")
	for _, e := range []*Endpoint{ab, ba} {
		select {
		case <-e.Done():
		default:
			require.Fail(t, "an end lives on", "to %s: %v", e.Address(), e.Rails())
		}
		require.ErrorIs(t, e.Err(), rma.ErrEndpointDown)
	}
	for _, c := range []*chores{mine, theirs} {
		for i, err := range c.outcomes() {
			if err != nil && !isOneOf(err, rma.ErrOutcomeUnknown, rma.ErrEndpointDown, rma.ErrCanceled) {
				require.Fail(t, "a foreign error", "operation %d: %v", i, err)
			}
		}
	}
	for _, p := range []*peer{bd.a, bd.b} {
		require.Len(t, p.downCauses(), 1)
		require.Len(t, p.events.of(rail.EndpointDown), 1)
		p.lives(t)
	}
	bd.heal()
	bd.connect()
	require.NotSame(t, ab, bd.ab)
	next, other := newChores(t, bd.a), newChores(t, bd.b)
	next.add(bd.ab, bd.b, 3)
	other.add(bd.back(), bd.a, 3)
	pass(5 * time.Second)
	next.well()
	other.well()
	require.Len(t, bd.a.downCauses(), 1, "the new epoch lives")
}
