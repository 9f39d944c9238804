package endpoint

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/rail/railtest"
	"railyard/rma"
)

// virtualNodes starts two nodes that know nothing of each other. Each byte takes delay on its way.
func virtualNodes(t *testing.T, delay time.Duration) (a, b *peer, ground *ground) {
	g := newGround(t, railtest.KindPipe, 2)
	quiet := func(c *Config) { c.Links = noLinks }
	b = launch(t, g, g.far, quiet)
	a = launch(t, g, g.near, quiet)
	for _, c := range g.cables {
		w := c.(*pipeWire)
		for _, o := range append(w.others, w.Wire) {
			o.Delay(bothWays, delay)
		}
	}
	return a, b, g
}

func TestShutdownWithNobodyEver(t *testing.T) {
	virtually(t, func(t *testing.T) {
		a, _, _ := virtualNodes(t, 0)
		took, err := a.leaves(t, time.Minute)
		require.NoError(t, err)
		require.Less(t, took, time.Second)
		_, err = a.Connect(context.Background(), "b0:1")
		require.ErrorIs(t, err, rma.ErrShutdown)
	})
}

// What waits for a node that nobody has found is given back.
func TestShutdownBeforeTheFirstDialSucceeds(t *testing.T) {
	for name, fault := range map[string]func(cable){
		"nobody listens": func(cable) {}, "cut": cable.Cut, "silent": func(c cable) { c.BlackHole(bothWays) },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				a, b, g := virtualNodes(t, 0)
				address := b.Address()
				if name == "nobody listens" {
					address = "c0:1"
				}
				for _, c := range g.cables {
					fault(c)
				}
				for i := range 5 {
					require.NoError(t, a.Route(address).TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: make([]byte, i)}))
				}
				pass(700 * time.Millisecond)
				took, err := a.leaves(t, time.Minute)
				require.NoError(t, err)
				require.Less(t, took, 5*time.Second)
				require.Len(t, a.undelivered(), 5)
				for _, l := range a.undelivered() {
					require.ErrorIs(t, l.err, rma.ErrShutdown)
				}
			})
		})
	}
}

// While the first rail is asked for, shaken hands with, and while the second joins: with 200 ms a way that takes some
// seconds, and each instant of it is a good one to leave, for either node and for both.
func TestShutdownDuringHandshakes(t *testing.T) {
	for _, who := range []string{"dialer", "acceptor", "both"} {
		t.Run(who, func(t *testing.T) {
			for at := time.Duration(0); at < 4*time.Second; at += 100 * time.Millisecond {
				virtually(t, func(t *testing.T) { leaveAt(t, who, at) })
			}
		})
	}
}

func leaveAt(t *testing.T, who string, at time.Duration) {
	a, b, _ := virtualNodes(t, 200*time.Millisecond)
	type result struct {
		e   *Endpoint
		err error
	}
	connected := make(chan result, 1)
	ctx, done := context.WithTimeout(context.Background(), 20*time.Second)
	defer done()
	go func() {
		e, err := a.Connect(ctx, b.Address())
		connected <- result{e, err}
	}()
	pass(at)
	ends := make(chan error, 2)
	leaving := map[string][]*peer{"dialer": {a}, "acceptor": {b}, "both": {a, b}}[who]
	start := time.Now()
	for _, p := range leaving {
		go func() {
			_, err := p.leaves(t, 10*time.Second)
			ends <- err
		}()
	}
	for range leaving {
		require.NoError(t, <-ends, "at %s", at)
	}
	require.Less(t, time.Since(start), 5*time.Second, "nothing was open, at %s", at)
	if who == "acceptor" {
		done() // nobody is there to connect to
	}
	if r := <-connected; r.err == nil {
		select {
		case <-r.e.Done():
		case <-time.After(patience + time.Second): // OutageLimit, where the acceptor went before it had a rail to say so on
			require.Fail(t, "the endpoint outlives its node or its peer", "at %s", at)
		}
	}
	for _, p := range leaving {
		require.Empty(t, p.all())
	}
}

// A dialer whose first handshake has reached the acceptor when that leaves hears of it, and does not wait for its OutageLimit.
func TestAnAcceptorThatLeavesDuringAHandshakeSaysSo(t *testing.T) {
	told := 0
	for at := 10 * time.Millisecond; at < 800*time.Millisecond; at += 20 * time.Millisecond {
		virtually(t, func(t *testing.T) {
			a, b, _ := virtualNodes(t, 40*time.Millisecond)
			ctx, done := context.WithCancel(t.Context())
			defer done()
			connected := make(chan error, 1)
			go func() {
				e, err := a.Connect(ctx, b.Address())
				if err == nil {
					<-e.Done()
					err = e.Err()
				}
				connected <- err
			}()
			pass(at)
			b.Manager.mu.Lock()
			met := b.guests.come >= 2 // the first one asked who is there, the second one is to be a rail
			b.Manager.mu.Unlock()
			start := time.Now()
			_, err := b.leaves(t, 10*time.Second)
			require.NoError(t, err)
			if !met {
				done() // nobody is there to connect to
				require.Error(t, <-connected)
				return
			}
			told++
			require.ErrorIs(t, <-connected, rma.ErrEndpointDown, "at %s", at)
			require.Less(t, time.Since(start), 2*time.Second, "at %s", at)
		})
	}
	require.Greater(t, told, 10)
}

// Work that is open is finished first; whatever happens to a rail meanwhile.
func TestShutdownFinishesOpenWork(t *testing.T) {
	for name, trouble := range map[string]func(bd *bed){
		"calm":                  func(*bed) {},
		"a rail reset":          func(bd *bed) { bd.cables[0].Reset() },
		"a rail cut":            func(bd *bed) { bd.cables[1].Cut() },
		"a rail silent":         func(bd *bed) { bd.cables[1].BlackHole(bothWays) },
		"a rail silent one way": func(bd *bed) { bd.cables[0].BlackHole(back) },
		"all reset": func(bd *bed) {
			for _, c := range bd.cables {
				c.Reset()
			}
		},
		"all cut for a second": func(bd *bed) {
			for _, c := range bd.cables {
				c.Cut()
			}
			time.AfterFunc(time.Second, bd.heal)
		},
		"all silent for a second": func(bd *bed) {
			for _, c := range bd.cables {
				c.BlackHole(bothWays)
			}
			time.AfterFunc(time.Second, bd.heal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				bd := virtualBed(t, bedSpec{})
				for _, c := range bd.cables {
					c.Slow(bothWays, 4<<20)
				}
				mine, theirs := newChores(t, bd.a), newChores(t, bd.b)
				mine.add(bd.ab, bd.b, 5)
				theirs.add(bd.back(), bd.a, 5)
				pass(20 * time.Millisecond)
				trouble(bd)
				_, err := bd.a.leaves(t, 30*time.Second)
				require.NoError(t, err)
				mine.well()
				require.Eventually(t, func() bool { return bd.b.peer(bd.a.Address()) == nil }, time.Minute, time.Millisecond)
				theirs.outcomes()
				bd.a.lives(t)
				bd.b.lives(t)
			})
		})
	}
}

// A silent peer is not waited for until the context ends: a quarter of it, and at least as long as silence may last unnoticed.
func TestShutdownBesideASilentPeer(t *testing.T) {
	for _, c := range []struct{ limit, most time.Duration }{
		{time.Second, time.Second}, {4 * time.Second, 2 * time.Second}, {time.Minute, 15 * time.Second},
	} {
		for name, fault := range map[string]func(cable){
			"cut": cable.Cut, "silent": func(c cable) { c.BlackHole(bothWays) },
			"deaf": func(c cable) { c.BlackHole(forth) }, "dumb": func(c cable) { c.BlackHole(back) },
		} {
			t.Run(fmt.Sprint(name, " ", c.limit), func(t *testing.T) {
				virtually(t, func(t *testing.T) {
					bd := virtualBed(t, bedSpec{})
					bd.b.drain = time.Second
					open := newChores(t, bd.a)
					open.add(bd.ab, bd.b, 5)
					for _, cable := range bd.cables {
						fault(cable)
					}
					open.add(bd.ab, bd.b, 5)
					took, err := bd.a.leaves(t, c.limit)
					require.Error(t, err, "ended: %v", bd.a.downCauses())
					// Until both ends have noticed the silence, each at the ceiling of its limit and a beat, something may be heard.
					require.LessOrEqual(t, took, c.most+4*time.Second)
					open.failed(rma.ErrShutdown)
				})
			})
		}
	}
}

// Idle rails that fell silent, and a generation that cannot be settled, are no reason to stay.
func TestShutdownOfAnIdleNodeBesideASilentPeer(t *testing.T) {
	for name, fault := range map[string]func(cable){"cut": cable.Cut, "silent": func(c cable) { c.BlackHole(bothWays) }} {
		for _, since := range []time.Duration{0, time.Second, 10 * time.Second} {
			t.Run(fmt.Sprint(name, " since ", since), func(t *testing.T) {
				virtually(t, func(t *testing.T) {
					bd := virtualBed(t, bedSpec{})
					bd.b.drain = time.Second
					for _, c := range bd.cables {
						fault(c)
					}
					pass(since)
					took, _ := bd.a.leaves(t, 8*time.Second)
					require.LessOrEqual(t, took, 3*time.Second)
				})
			})
		}
	}
}

func TestShutdownTwiceAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{})
		bd.b.drain = time.Second
		open := newChores(t, bd.a)
		open.add(bd.ab, bd.b, 3)
		for _, c := range bd.cables {
			c.BlackHole(bothWays)
		}
		start := time.Now()
		first := make(chan error, 1)
		go func() {
			_, err := bd.a.leaves(t, 20*time.Second)
			first <- err
		}()
		pass(time.Millisecond)
		took, err := bd.a.leaves(t, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, took)
		err = <-first
		require.Error(t, err)
		require.Greater(t, time.Since(start), 2*time.Second)
		_, again := bd.a.leaves(t, time.Second)
		require.Equal(t, err, again, "all callers get the one outcome")
		open.failed(rma.ErrShutdown)
	})
}

// Both leave, at the same time or one a little later, with work open in both directions: both are done soon.
func TestShutdownBesideOneOfThePeer(t *testing.T) {
	for _, later := range []time.Duration{0, time.Microsecond, time.Millisecond, 3 * time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(later.String(), func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				bd := virtualBed(t, bedSpec{})
				for _, c := range bd.cables {
					c.Slow(bothWays, 4<<20)
				}
				mine, theirs := newChores(t, bd.a), newChores(t, bd.b)
				mine.add(bd.ab, bd.b, 5)
				theirs.add(bd.back(), bd.a, 5)
				start := time.Now()
				ends := make(chan error, 2)
				go func() {
					_, err := bd.a.leaves(t, 20*time.Second)
					ends <- err
				}()
				time.Sleep(later)
				_, err := bd.b.leaves(t, 20*time.Second)
				require.NoError(t, err)
				require.NoError(t, <-ends)
				require.Less(t, time.Since(start), 5*time.Second)
				mine.outcomes()
				theirs.outcomes()
				require.Len(t, bd.a.downCauses(), 1)
				require.Len(t, bd.b.downCauses(), 1)
			})
		})
	}
}

// An operation that the endpoint's actor has not come to yet was accepted: Shutdown waits for it, and takes no other.
func TestShutdownWaitsForWhatTheActorHasNotSeen(t *testing.T) {
	virtually(t, func(t *testing.T) {
		hold, held := make(chan struct{}), false
		bd := virtualBed(t, bedSpec{a: func(c *Config) {
			inEndpoints(c, func(p *actor.Props) *actor.Props {
				return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
						if _, is := env.Message.(*operation); is && !held {
							held = true
							<-hold
						}
						next(ctx, env)
					}
				}))
			})
		}})
		region := bd.b.register(t, 3, rma.RemoteWrite)
		first := make(chan *rma.Op)
		go func() { first <- bd.ab.StartPut(region.Key(), 0, []byte{1}) }()
		pass(time.Millisecond)
		second := bd.ab.StartPut(region.Key(), 1, []byte{2})
		left := make(chan error)
		go func() {
			_, err := bd.a.leaves(t, time.Minute)
			left <- err
		}()
		pass(time.Second)
		require.ErrorIs(t, bd.ab.StartPut(region.Key(), 2, []byte{3}).Err(), rma.ErrShutdown)
		close(hold)
		require.NoError(t, (<-first).Wait(context.Background()))
		require.NoError(t, second.Wait(context.Background()))
		require.NoError(t, <-left)
		require.Equal(t, []byte{1, 2, 0}, region.Bytes())
	})
}
