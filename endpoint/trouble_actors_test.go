package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
	"railyard/wire"
)

// spy sees every message before an actor of ours does.
func spy(see func(message any)) func(*actor.Props) *actor.Props {
	return func(p *actor.Props) *actor.Props {
		return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
				see(env.Message)
				next(ctx, env)
			}
		}))
	}
}

// bomb panics at some messages of one type: at the nth, then at each nth after it, a few times in all.
type bomb struct {
	at    string
	every int
	times int

	mu         sync.Mutex
	seen, went int
}

func (b *bomb) see(message any) {
	if fmt.Sprintf("%T", message) == b.at {
		b.hit()
	}
}

// hit counts one more, and panics where it is due.
func (b *bomb) hit() {
	b.mu.Lock()
	b.seen++
	boom := b.seen%b.every == 0 && b.went < b.times
	if boom {
		b.went++
	}
	b.mu.Unlock()
	if boom {
		panic(b.value())
	}
}

func (b *bomb) value() string { return "a bug at " + b.at }

func (b *bomb) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.went
}

// A bug in an actor costs a generation: nothing is lost or doubled, and the supervisor's event tells of it once.
func TestPanicInAnActorCostsAGeneration(t *testing.T) {
	for _, c := range []struct {
		name string
		bomb *bomb
		rail bool // in the rail's actor, else in the transport's
	}{
		{name: "transport, at a put", bomb: &bomb{at: "*rail.Put", every: 20, times: 5}},
		{name: "transport, at a cancel", bomb: &bomb{at: "*rail.Cancel", every: 3, times: 3}},
		{name: "rail, at a tick", bomb: &bomb{at: "*rail.tick", every: 7, times: 3}, rail: true},
		{name: "rail, at news of its transport", bomb: &bomb{at: "*rail.carrying", every: 2, times: 2}, rail: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothKinds(t, func(t *testing.T, kind string) {
				b := &bomb{at: c.bomb.at, every: c.bomb.every, times: c.bomb.times}
				bd := newBed(t, kind, bedSpec{both: hasty(t), a: func(cfg *Config) {
					if c.rail {
						cfg.RailProps = spy(b.see)
					} else {
						cfg.TransportProps = spy(b.see)
					}
				}})
				panicUnderLoad(t, bd, b)
			})
		})
	}
}

func panicUnderLoad(t *testing.T, bd *bed, b *bomb) {
	rnd := seeded(t)
	there := startTalk(t, bd.a, bd.b, talkSpec{targets: 2, pause: time.Millisecond, seed: rnd.Uint64()})
	back := startTalk(t, bd.b, bd.a, talkSpec{targets: 2, pause: time.Millisecond, seed: rnd.Uint64()})
	load := startPuts(t, bd.ab, bd.b, putSpec{workers: 3, largest: 256 << 10, seed: rnd.Uint64()})
	taken := bd.b.register(t, 8<<20, rma.RemoteWrite)
	source := make([]byte, 8<<20)
	eventually(t, "all bombs go off", func() (bool, any) {
		op := bd.ab.StartPut(taken.Key(), 0, source)
		time.Sleep(time.Duration(rnd.IntN(5)) * time.Millisecond)
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.NoError(t, op.Cancel(ctx))
		if err := op.Err(); err != nil {
			require.ErrorIs(t, err, rma.ErrCanceled)
		}
		if rnd.IntN(20) == 0 {
			bd.cables[rnd.IntN(len(bd.cables))].Reset()
		}
		return b.count() == b.times, b.count()
	})
	there.finish()
	back.finish()
	load.finish()
	bd.allUp()
	bd.nobodyDown()
	eventually(t, "each panic is told once", func() (bool, any) {
		n := 0
		for _, ev := range bd.a.crashes() {
			if fmt.Sprint(ev.Reason) == b.value() {
				n++
			}
		}
		return n == b.times, n
	})
}

// Each failure of a transport is one event of its supervisor, with the failure as its reason.
func TestEachTransportFailureIsOneSupervisorEvent(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{both: hasty(t)})
		for i := range 10 {
			k := i % len(bd.cables)
			before := bd.generations()[k]
			bd.cables[k].Reset()
			eventually(t, "the rail is back", func() (bool, any) {
				r := bd.ab.Rails()[k]
				return r.Generation > before && r.State != rail.Down, r
			})
		}
		for _, p := range []*peer{bd.a, bd.b} {
			eventually(t, "each death has one event", func() (bool, any) {
				deaths := make(map[string]int)
				for _, ev := range p.events.of(rail.RailDown) {
					deaths[fmt.Sprint(ev.Rail, "/", ev.Generation)]++
				}
				told := make(map[string]int)
				for _, ev := range p.crashes() {
					var f *supervision.Failure
					err, isError := ev.Reason.(error)
					if isError && errors.As(err, &f) && f.Generation > 0 {
						told[fmt.Sprint(f.Rail, "/", f.Generation)]++
					}
				}
				// A candidate that breaks before it takes its predecessor's place is a failure, and no death.
				same := len(deaths) >= 5
				for name, n := range deaths {
					same = same && n == 1 && told[name] == 1
				}
				for _, n := range told {
					same = same && n == 1
				}
				return same, []any{deaths, told}
			})
		}
	})
}

// A policy of the user's own decides what becomes of a rail.
func TestPluggedPolicyDecides(t *testing.T) {
	always := func(a supervision.Action) func(*Config) {
		return func(c *Config) {
			c.Policy = supervision.PolicyFunc(func(supervision.History, supervision.Failure, time.Duration) supervision.Directive {
				return supervision.Directive{Action: a, Reason: "the test says so"}
			})
		}
	}
	bothKinds(t, func(t *testing.T, kind string) {
		bedOf := func(t *testing.T, a supervision.Action) *bed {
			bd := newBed(t, kind, bedSpec{a: always(a)})
			bd.b.drain = 100 * time.Millisecond // a's endpoint may end, and then settles nothing with b
			return bd
		}
		t.Run("stop", func(t *testing.T) {
			bd := bedOf(t, supervision.Stop)
			bd.cables[1].Reset()
			eventually(t, "the rail is given up", func() (bool, any) { return len(bd.a.events.of(rail.RailGaveUp)) == 1, nil })
			bd.works()
			require.Empty(t, bd.a.events.of(rail.RailRejoined))
			require.NotEqual(t, rail.Up, bd.ab.Rails()[1].State)
			bd.cables[0].Reset()
			within(t, soon, "without a rail left the endpoint ends", func() { <-bd.ab.Done() })
			require.ErrorIs(t, bd.ab.Err(), rma.ErrEndpointDown)
		})
		t.Run("reroute", func(t *testing.T) {
			bd := bedOf(t, supervision.Reroute)
			bd.cables[1].Reset()
			eventually(t, "the rail is down", func() (bool, any) { return len(bd.a.events.of(rail.RailDown)) == 1, nil })
			bd.works()
			require.Empty(t, bd.a.events.of(rail.RailRejoined))
			require.Empty(t, bd.a.events.of(rail.RailGaveUp))
			if kind == rail.KindTCP { // its card's link comes up: that is the hint it waits for
				bd.ab.root.Send(bd.ab.PID(), &rail.LinkChanged{Up: true, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}})
				bd.allUp()
			}
			bd.nobodyDown()
		})
		t.Run("escalate", func(t *testing.T) {
			bd := bedOf(t, supervision.Escalate)
			bd.cables[1].Reset()
			within(t, soon, "the endpoint ends", func() { <-bd.ab.Done() })
			require.ErrorIs(t, bd.ab.Err(), rma.ErrEndpointDown)
			var f *supervision.Failure
			require.ErrorAs(t, bd.ab.Err(), &f)
		})
	})
}

// works uses what is left of the rails: a flush goes over every one that is thought to be there.
func (bd *bed) works() {
	bd.t.Helper()
	region := bd.b.register(bd.t, 4<<20, rma.RemoteWrite)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	require.NoError(bd.t, bd.ab.Put(ctx, region.Key(), 0, make([]byte, 4<<20)))
}

// offered counts the messages of operations to transports.
type offered struct {
	mu      sync.Mutex
	puts    map[offer]int
	cancels map[offer]int
}

type offer struct {
	op         any
	lane       wire.RailID
	generation wire.Generation
}

func (o *offered) see(message any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch m := message.(type) {
	case *rail.Put:
		o.puts[offer{m.Op, m.Lane, m.Generation}]++
	case *rail.Cancel:
		o.cancels[offer{m.Op, m.Lane, m.Generation}]++
	}
}

// of counts how many lanes each operation was offered to; it fails the test where a lane was told twice.
func (o *offered) of(t testing.TB, told map[offer]int) map[any]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	lanes := make(map[any]int)
	for k, n := range told {
		require.Equal(t, 1, n, "messages for one operation to lane %d", k.lane)
		lanes[k.op]++
	}
	return lanes
}

// One message an operation and lane, never one a chunk.
func TestOneMessagePerOperationAndLane(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		seen := &offered{puts: make(map[offer]int), cancels: make(map[offer]int)}
		bd := newBed(t, kind, bedSpec{both: func(c *Config) { c.Health = patientHealth },
			a: func(c *Config) { c.TransportProps = spy(seen.see) }})
		region := bd.b.register(t, 8<<20, rma.RemoteWrite)
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		for range 20 {
			require.NoError(t, bd.ab.Put(ctx, region.Key(), 0, make([]byte, 100)))
		}
		require.Len(t, seen.of(t, seen.puts), 20)
		for _, lanes := range seen.of(t, seen.puts) {
			require.Equal(t, 1, lanes, "lanes of a small put")
		}
		for range 5 {
			require.NoError(t, bd.ab.Put(ctx, region.Key(), 0, make([]byte, 8<<20))) // at least eight chunks
		}
		large := 0
		for _, lanes := range seen.of(t, seen.puts) {
			if lanes == 2 {
				large++
			}
		}
		require.Equal(t, 5, large, "large puts that both lanes were told of")
		require.Empty(t, seen.cancels)

		for _, c := range bd.cables {
			c.Slow(forth, 16<<20)
		}
		canceled := 0
		for range 20 {
			op := bd.ab.StartPut(region.Key(), 0, make([]byte, 8<<20))
			time.Sleep(2 * time.Millisecond)
			require.NoError(t, op.Cancel(ctx))
			if errors.Is(op.Err(), rma.ErrCanceled) {
				canceled++
			}
		}
		require.NotZero(t, canceled)
		puts, cancels := seen.of(t, seen.puts), seen.of(t, seen.cancels)
		require.Len(t, cancels, canceled)
		for op, lanes := range cancels {
			require.Equal(t, puts[op], lanes, "lanes told of a put, and of its cancel")
		}
		require.Len(t, puts, 45)
		bd.nobodyDown()
	})
}
