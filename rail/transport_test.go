package rail

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/supervision"
	"railyard/wire"
)

// trip makes an actor panic at the messages that when picks.
func trip(when func(message any) bool) func(*actor.Props) *actor.Props {
	return func(p *actor.Props) *actor.Props {
		return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, m *actor.MessageEnvelope) {
				if when(m.Message) {
					panic("tripped")
				}
				next(c, m)
			}
		}))
	}
}

// transport is where the newest generation's operations go.
func (y *yard) transport() (*actor.PID, wire.Generation) {
	y.joiner.mu.Lock()
	defer y.joiner.mu.Unlock()
	for g := y.joiner.last; g > 0; g-- {
		if l := y.joiner.lives[g]; l != nil && l.attached {
			return l.transport, g
		}
	}
	return nil, 0
}

func (y *yard) offers(g wire.Generation) int {
	y.joiner.mu.Lock()
	defer y.joiner.mu.Unlock()
	return y.joiner.of(g).offers
}

func TestTransportOffersOnlyItsOwnGenerationsWork(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		pid, g := y.transport()
		for _, m := range []any{
			&Put{Op: 1, Lane: 7, Generation: g}, &Get{Op: 2, Lane: 7, Generation: g},
			&Serve{Op: 3, Lane: 7, Generation: g},
			&Put{Op: 4, Lane: 8, Generation: g}, &Put{Op: 5, Lane: 7, Generation: g + 2}, &Put{Op: 6, Lane: 7},
			&Cancel{Op: 7, Lane: 7, Generation: g}, &Cancel{Op: 8, Lane: 7, Generation: g + 2},
			&Cancel{Op: 9, Lane: 6, Generation: g}, Put{Op: 10, Lane: 7, Generation: g}, "nonsense",
		} {
			y.system.Root.Send(pid, m)
		}
		synctest.Wait()
		assert.Equal(t, 3, y.offers(g))
		assert.Equal(t, "withdraw 1 7", y.joiner.read()[2])
		assert.Len(t, y.joiner.read(), 3)

		// The same transport, restarted, drops what is for its life before.
		y.kind.newest().snap(errCable)
		y.sleep(100 * ms)
		again, next := y.transport()
		require.True(t, again.Equal(pid), "the child is restarted, not replaced")
		require.Equal(t, g+2, next)
		y.system.Root.Send(pid, &Put{Op: 11, Lane: 7, Generation: g})
		y.system.Root.Send(pid, &Put{Op: 12, Lane: 7, Generation: next})
		synctest.Wait()
		assert.Equal(t, 3, y.offers(g))
		assert.Equal(t, 1, y.offers(next))
	})
}

func TestTransportThatPanicsUnderLoadLosesItsGenerationAlone(t *testing.T) {
	var puts atomic.Int64
	panics := trip(func(m any) bool {
		_, put := m.(*Put)
		return put && puts.Add(1)%100 == 0
	})
	change := func(c *Config) {
		fixed(supervision.Directive{Delay: 10 * ms})(c)
		c.TransportProps = panics
	}
	story(t, change, func(t *testing.T, y *yard) {
		y.up()
		stop := make(chan struct{})
		for range 4 {
			y.work.Go(func() {
				for {
					pid, g := y.transport()
					y.system.Root.Send(pid, &Put{Op: "op", Lane: 7, Generation: g})
					select {
					case <-stop:
						return
					case <-time.After(ms):
					}
				}
			})
		}
		y.sleep(2 * time.Second)
		close(stop)
		// The longest probation.
		y.sleep(6 * time.Second)
		require.NotEmpty(t, y.broke())
		for _, b := range y.broke() {
			assert.Equal(t, supervision.Bug, b.Failure.Class)
			assert.Equal(t, "7", b.Failure.Rail)
			if b.Carried {
				assert.Equal(t, uint64(b.Generation), b.Failure.Generation, "a panic is its generation's failure")
			}
			assert.Contains(t, b.Failure.Error(), "tripped")
		}
		assert.Equal(t, Up, y.status().State)
	})
}

func TestTransportWithABugGivesItsConnectionUpAtOnce(t *testing.T) {
	panics := trip(func(m any) bool { _, put := m.(*Put); return put })
	change := func(c *Config) {
		fixed(supervision.Directive{Delay: time.Minute})(c)
		c.TransportProps = panics
	}
	story(t, change, func(t *testing.T, y *yard) {
		y.up()
		pid, g := y.transport()
		y.system.Root.Send(pid, &Put{Op: "op", Lane: 7, Generation: g})
		synctest.Wait()
		assert.True(t, y.kind.newest().gone(), "work moves now, whenever the rail comes back")
		assert.Equal(t, "lost 1", y.joiner.read()[2])
	})
}

func TestTransportMayPanicInItsLifecycle(t *testing.T) {
	for name, sick := range map[string]func(any) bool{
		"started":    func(m any) bool { _, is := m.(*actor.Started); return is },
		"restarting": func(m any) bool { _, is := m.(*actor.Restarting); return is },
		"dialed":     func(m any) bool { _, is := m.(*dialed); return is },
		"broken":     func(m any) bool { _, is := m.(*broken); return is },
		"fail":       func(m any) bool { _, is := m.(*fail); return is },
	} {
		t.Run(name, func(t *testing.T) {
			var left atomic.Int64
			left.Store(3)
			panics := trip(func(m any) bool { return sick(m) && left.Add(-1) >= 0 })
			story(t, func(c *Config) { c.TransportProps = panics }, func(t *testing.T, y *yard) {
				y.send(&Connect{})
				for range 4 {
					y.sleep(10 * time.Second)
					y.kind.newest().snap(errCable)
					y.sleep(10 * time.Second)
					y.send(&Retire{Generation: wire.Generation(y.status().Generation), Cause: errCable})
				}
				y.sleep(10 * time.Second)
				assert.Negative(t, left.Load(), "the trap was used up")
				assert.Equal(t, Up, y.status().State)
			})
		})
	}
}

func TestRailActorWithABugTakesUpWhereItWas(t *testing.T) {
	var left atomic.Int64
	left.Store(1)
	panics := trip(func(m any) bool {
		_, probe := m.(*Probe)
		return probe && left.Add(-1) >= 0
	})
	story(t, func(c *Config) { c.RailProps = panics }, func(t *testing.T, y *yard) {
		y.up()
		y.sleep(time.Second)
		y.published()
		first := y.kind.newest()
		y.send(&Probe{})
		y.sleep(10 * ms)
		assert.True(t, first.gone())
		assert.Equal(t, Probation, y.status().State)
		assert.Equal(t, []string{"RailDown", "RailRejoined"}, y.published())
		assert.Equal(t, []string{"join 1", "attach 1", "lost 1", "join 3", "attach 3"}, y.joiner.read())
		// Its parent's own supervisor judged it; that is not one of the rail's failures.
		require.Len(t, y.supervised(), 1)
		y.mu.Lock()
		y.judged = nil
		y.mu.Unlock()
		// Timers of the life before are void, and health goes on in the new one.
		y.silence()
	})
}

// bench is a transport under a bare supervisor that only counts, without a rail.
func bench(t *testing.T, tell func(y *yard, pid *actor.PID, c *carrier, failures *[]any)) {
	t.Helper()
	story(t, nil, func(t *testing.T, y *yard) {
		cfg := Config{ID: 7, Joiner: y.joiner, Kind: y.kind, Clock: y.joiner.clock, Track: func(f func()) { y.work.Go(f) }}
		cfg = cfg.withDefaults()
		c := &carrier{}
		c.line.Store(newLine(&cfg, 9))
		var failures []any
		count := actor.NewOneForOneStrategy(0, 0, func(reason any) actor.Directive {
			failures = append(failures, reason)
			return actor.ResumeDirective
		})
		props := actor.PropsFromProducer(func() actor.Actor { return &transport{cfg: &cfg, carrier: c} },
			actor.WithDispatcher(actor.NewSynchronizedDispatcher(1)))
		var pid *actor.PID
		parent := y.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, is := ctx.Message().(*actor.Started); is {
				pid = ctx.Spawn(props)
			}
		}, actor.WithSupervisor(count), actor.WithDispatcher(actor.NewSynchronizedDispatcher(1))))
		synctest.Wait()
		tell(y, pid, c, &failures)
		require.NoError(t, y.system.Root.StopFuture(parent).Wait())
		y.mu.Lock()
		y.judged = nil
		y.mu.Unlock()
	})
}

func TestTransportDropsWhatIsNotForItsLine(t *testing.T) {
	bench(t, func(y *yard, pid *actor.PID, c *carrier, failures *[]any) {
		own := c.line.Load()
		other := newLine(own.cfg, 11)
		f := own.failure(errCable)
		for _, m := range []any{
			&broken{line: other, cause: errCable}, &fail{line: other, failure: f}, &dialed{line: other, link: fakeLink{}},
			&renewed{line: own}, &renewed{line: other},
		} {
			y.system.Root.Send(pid, m)
			synctest.Wait()
		}
		assert.Empty(y.t, *failures)
		assert.Equal(y.t, []string{"join 9", "attach 9"}, y.joiner.read(), "one life, begun once")

		// Another has ended the line: its end is that one's to explain.
		own.end(f)
		y.system.Root.Send(pid, &broken{line: own, cause: errCable})
		assert.Empty(y.t, *failures)
		y.system.Root.Send(pid, &fail{line: own, failure: f})
		assert.Equal(y.t, []any{f}, *failures)
	})
}

func TestLineThatEndedDoesNotRun(t *testing.T) {
	bench(t, func(y *yard, _ *actor.PID, c *carrier, _ *[]any) {
		cfg := c.line.Load().cfg
		l := newLine(cfg, 11)
		conn := y.kind.connect()
		require.True(y.t, l.hold(conn))
		l.end(errCable)
		assert.False(y.t, l.run(fakeLink{}, func(error) {}))
		assert.Zero(y.t, conn.runs)
		late := y.kind.connect()
		assert.False(y.t, l.hold(late))
		synctest.Wait()
		assert.True(y.t, late.gone())
	})
}

// census keeps the transports that are alive.
type census struct {
	mu    sync.Mutex
	alive map[string]bool
}

func (n *census) count(p *actor.Props) *actor.Props {
	return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, m *actor.MessageEnvelope) {
			n.mu.Lock()
			switch m.Message.(type) {
			case *actor.Started:
				n.alive[c.Self().Id] = true
			case *actor.Stopped:
				delete(n.alive, c.Self().Id)
			}
			n.mu.Unlock()
			next(c, m)
		}
	}))
}

// TestRailSurvivesAnything sends random commands and faults in a seeded order, with real concurrency, and checks what
// must hold whatever happens: see yard.close, and that the rail comes up when the faults end.
func TestRailSurvivesAnything(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			var sick atomic.Bool
			var dice atomic.Uint64
			panics := trip(func(m any) bool {
				switch m.(type) {
				case *Put, *dialed, *broken, *fail, *actor.Restarting:
					return sick.Load() && dice.Add(0x9e3779b97f4a7c15)%16 == 0
				}
				return false
			})
			all := &census{alive: map[string]bool{}}
			change := func(c *Config) {
				c.TransportProps = func(p *actor.Props) *actor.Props { return panics(all.count(p)) }
				c.Dials = seed%4 != 0
			}
			story(t, change, func(t *testing.T, y *yard) {
				sick.Store(true)
				y.send(&Connect{})
				for range 300 {
					y.fate(random)
					if random.IntN(3) == 0 {
						time.Sleep(time.Duration(random.IntN(200)) * ms)
					}
				}
				sick.Store(false)
				y.kind.set(nil)
				y.joiner.change(func(j *fakeJoiner) { j.silent, j.unknown, j.join = false, false, nil })
				y.sleep(10 * time.Second)
				if seed%4 == 0 {
					y.acceptNext()
				}
				y.sleep(10 * time.Second)
				require.Equal(t, Up, y.status().State)
				y.rise(t)
				all.mu.Lock()
				defer all.mu.Unlock()
				require.Len(t, all.alive, 1, "one transport is left")
			})
		})
	}
}

// acceptNext hands the rail a connection that the peer dialed.
func (y *yard) acceptNext() {
	g := y.joiner.NextGeneration(7)
	y.joiner.change(func(j *fakeJoiner) { j.of(g).joined = true })
	y.system.Root.Send(y.rail, &Accepted{Generation: g, Conn: y.kind.connect(), Link: fakeLink{}})
}

// fate is one random thing that happens to a rail.
func (y *yard) fate(random *rand.Rand) {
	root := y.system.Root
	switch random.IntN(16) {
	case 0:
		root.Send(y.rail, &Connect{})
	case 1, 2:
		root.Send(y.rail, &DialBeside{})
	case 3:
		root.Send(y.rail, &LinkHint{Up: random.IntN(2) == 0})
	case 4:
		root.Send(y.rail, &Reachable{Yes: random.IntN(2) == 0})
	case 5:
		root.Send(y.rail, &Probe{})
	case 6:
		_, g := y.transport()
		root.Send(y.rail, &Retire{Generation: g, Cause: errCable})
	case 7:
		y.acceptNext()
	case 8, 9:
		y.kind.mu.Lock()
		conns := y.kind.conns
		y.kind.mu.Unlock()
		if len(conns) > 0 {
			conns[len(conns)-1-random.IntN(min(3, len(conns)))].snap(errCable)
		}
	case 10:
		y.joiner.change(func(j *fakeJoiner) { j.silent = !j.silent })
	case 11:
		y.joiner.change(func(j *fakeJoiner) { j.unknown = random.IntN(4) == 0 })
	case 12:
		y.kind.set(refused)
	case 13:
		y.kind.set(swallowed)
	case 14:
		y.kind.set(nil)
	default:
		pid, g := y.transport()
		if pid != nil {
			root.Send(pid, &Put{Op: "op", Lane: 7, Generation: g})
		}
	}
}

// rise checks that the generations that carried work rose.
func (y *yard) rise(t *testing.T) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	last := wire.Generation(0)
	for _, m := range y.told {
		if joined, is := m.(*Joined); is {
			require.Greater(t, joined.Generation, last)
			last = joined.Generation
		}
	}
}
