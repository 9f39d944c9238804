package endpoint

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
)

// This file: bugs in the session itself, at every kind of call that takes the endpoint's lock.

// sabotage makes an endpoint's session one that has a bug, in one of three ways.
type sabotage func(e *Endpoint)

var sabotages = map[string]sabotage{
	// The session is as good as before: what it has can be told.
	"sound": func(e *Endpoint) { e.locked(func(time.Duration) { panic("a bug in the session") }) },
	// Its memory is overwritten: it panics at the next call, and whoever tries to close it.
	"spoiled": func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.carriers {
			*c.link.g = session.Generation{}
		}
	},
	// Nothing of it is there.
	"gone": func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.s = nil
	},
}

// ambush sabotages an endpoint once it is armed, at the next call of a kind.
type ambush struct {
	at    string
	how   sabotage
	armed atomic.Bool
	hit   atomic.Int32
}

func (a *ambush) see(call string, e *Endpoint) {
	if a.at == call && a.armed.CompareAndSwap(true, false) {
		a.hit.Add(1)
		a.how(e)
	}
}

// ambushKind has connections whose links lie in wait.
type ambushKind struct {
	rail.Kind
	a *ambush
}

func (k *ambushKind) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	c, err := k.Kind.Dial(ctx, local, remote)
	if err != nil {
		return nil, err
	}
	return &ambushConn{Conn: c, a: k.a}, nil
}

func (k *ambushKind) Listen(ctx context.Context, b rail.Binding) (rail.Listener, error) {
	l, err := k.Kind.Listen(ctx, b)
	if err != nil {
		return nil, err
	}
	return &ambushListener{Listener: l, a: k.a}, nil
}

type ambushListener struct {
	rail.Listener
	a *ambush
}

func (l *ambushListener) Accept() (rail.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &ambushConn{Conn: c, a: l.a}, nil
}

type ambushConn struct {
	rail.Conn
	a *ambush
}

func (c *ambushConn) Run(l rail.Link, lost func(error)) {
	c.Conn.Run(&ambushLink{link: l.(*link), a: c.a}, lost)
}

type ambushLink struct {
	*link
	a *ambush
}

func (l *ambushLink) Fill(out *rma.Gather) bool {
	l.a.see("Fill", l.e)
	return l.link.Fill(out)
}

func (l *ambushLink) Wrote(out *rma.Gather, n int) error {
	l.a.see("Wrote", l.e)
	return l.link.Wrote(out, n)
}

func (l *ambushLink) Want(in *rma.Scatter) error {
	l.a.see("Want", l.e)
	return l.link.Want(in)
}

func (l *ambushLink) Got(in *rma.Scatter, n int) error {
	l.a.see("Got", l.e)
	return l.link.Got(in, n)
}

// ambushHost lies in wait between a message's arrival and its count.
type ambushHost struct {
	Host
	a *ambush
}

func (h *ambushHost) Deliver(from *Endpoint, d *session.Delivery) {
	h.Host.Deliver(from, d)
	h.a.see("Delivered", from)
}

func (a *ambush) lay(c *Config) {
	c.Kinds = map[string]rail.Kind{railtest.KindPipe: &ambushKind{Kind: c.Kinds[railtest.KindPipe], a: a}}
	c.Host = &ambushHost{Host: c.Host, a: a}
}

// calls are what the application, a timer or an actor does at an endpoint.
var calls = map[string]func(bd *bed, e *Endpoint, c *chores){
	"Send": func(bd *bed, e *Endpoint, _ *chores) {
		err := e.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte("bug")})
		if err != nil {
			require.ErrorIs(bd.t, err, rma.ErrEndpointDown)
		}
	},
	"StartPut": func(bd *bed, e *Endpoint, c *chores) {
		region := bd.b.register(bd.t, 1, rma.RemoteWrite)
		c.handles = append(c.handles, e.StartPut(region.Key(), 0, []byte{1}))
	},
	"Ask": func(_ *bed, e *Endpoint, c *chores) { c.ask(e, func(id uint64) any { return &rma.Flush{ID: id} }) },
	"Cancel": func(_ *bed, e *Endpoint, c *chores) {
		ctx, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		for _, op := range c.handles {
			_ = op.Cancel(ctx)
		}
	},
	"Tick":      func(_ *bed, e *Endpoint, _ *chores) { e.tick() },
	"Stats":     func(_ *bed, e *Endpoint, _ *chores) { e.Stats() },
	"Flow":      func(_ *bed, e *Endpoint, _ *chores) { e.Flow() },
	"Rails":     func(_ *bed, e *Endpoint, _ *chores) { e.Rails() },
	"Consumed":  func(_ *bed, e *Endpoint, _ *chores) { e.Consumed(e.m.cfg.Session.Window) },
	"Processed": func(_ *bed, e *Endpoint, _ *chores) { e.Processed("x", 1) },
	"Reset":     func(bd *bed, _ *Endpoint, _ *chores) { bd.cables[0].Reset() },
	"Leave": func(bd *bed, e *Endpoint, _ *chores) {
		ctx, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		require.ErrorIs(bd.t, e.leave(ctx), rma.ErrOutcomeUnknown)
	},
}

// A bug in the session, at whatever call it shows and whatever it leaves of the session, ends that epoch at both ends and no more:
// what was open completes once, as unknown, the peer is told, the next epoch works.
func TestABugInTheSessionEndsItsEpoch(t *testing.T) {
	for how, spoil := range sabotages {
		for _, end := range []string{"dialer", "acceptor"} {
			for call, do := range calls {
				t.Run(fmt.Sprint(how, " ", end, " ", call), func(t *testing.T) {
					virtually(t, func(t *testing.T) {
						bd := virtualBed(t, bedSpec{})
						told := how != "spoiled" || end != "dialer"
						bugEnds(t, bd, end == "dialer", told, func(e *Endpoint, c *chores) {
							spoil(e)
							do(bd, e, c)
						})
					})
				})
			}
		}
	}
}

// The same at the calls of its connections.
func TestABugInTheSessionAtItsConnections(t *testing.T) {
	for how, spoil := range sabotages {
		for _, end := range []string{"dialer", "acceptor"} {
			for _, call := range []string{"Fill", "Wrote", "Want", "Got", "Delivered"} {
				t.Run(fmt.Sprint(how, " ", end, " ", call), func(t *testing.T) {
					virtually(t, func(t *testing.T) {
						a := &ambush{at: call, how: spoil}
						spec := bedSpec{b: a.lay}
						if end == "dialer" {
							spec = bedSpec{a: a.lay}
						}
						bd := virtualBed(t, spec)
						told := how != "spoiled" || end != "dialer"
						bugEnds(t, bd, end == "dialer", told, func(*Endpoint, *chores) {
							a.armed.Store(true)
							for _, e := range []*Endpoint{bd.ab, bd.back()} { // the one that has the bug already refuses it
								_ = e.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte("bug")})
							}
							pass(50 * time.Millisecond)
						})
						require.EqualValues(t, 1, a.hit.Load())
					})
				})
			}
		}
	}
}

// bugEnds has work in both directions, a bug in the middle of it, and looks at what becomes of all that. Not told: nobody knows how the
// frame ends that had been begun, so that no goodbye can stand behind it, and the peer does not dial: it hears by the next epoch.
func bugEnds(t *testing.T, bd *bed, dialer, told bool, bug func(e *Endpoint, c *chores)) {
	t.Helper()
	ab, ba := bd.ab, bd.back()
	for _, c := range bd.cables {
		c.Slow(bothWays, 16<<20)
	}
	mine, theirs := newChores(t, bd.a), newChores(t, bd.b)
	mine.add(ab, bd.b, 8)
	theirs.add(ba, bd.a, 8)
	for i := range 20 {
		for _, e := range []*Endpoint{ab, ba} {
			require.NoError(t, e.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte{byte(i)}}))
		}
	}
	pass(20 * time.Millisecond)
	broken, open, node := ba, theirs, bd.b
	if dialer {
		broken, open, node = ab, mine, bd.a
	}
	before := broken.Stats()
	bug(broken, open)
	pass(2 * time.Second) // far below OutageLimit: the peer was told
	if !told {
		bd.heal()
		bd.connect()
		pass(time.Second)
	}
	for _, e := range []*Endpoint{ab, ba} {
		select {
		case <-e.Done():
		default:
			require.Fail(t, "an end lives on", "to %s: %v", e.Address(), e.Rails())
		}
		require.ErrorIs(t, e.Err(), rma.ErrEndpointDown)
	}
	require.ErrorIs(t, broken.Err(), rma.ErrOutcomeUnknown)
	unknown := 0
	for _, err := range open.outcomes() {
		if isOneOf(err, rma.ErrOutcomeUnknown) {
			unknown++
		}
	}
	require.NotZero(t, unknown, "nothing was open")
	for i, err := range append(mine.outcomes(), theirs.outcomes()...) {
		if err != nil && !isOneOf(err, rma.ErrOutcomeUnknown, rma.ErrEndpointDown, rma.ErrCanceled) {
			require.Fail(t, "a foreign error", "operation %d: %v", i, err)
		}
	}
	if now := broken.Stats(); now.MessagesSent < before.MessagesSent {
		require.Zero(t, now, "counters went back")
	}
	bd.nextEpoch(t, ab)
	require.Len(t, node.downCauses(), 1, "the new epoch lives")
}

// A message in the course of whose sending the session has a bug is told of once: by the error, or by its coming back.
func TestABugWhileAMessageIsSentIsToldOnce(t *testing.T) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				bd := virtualBed(t, bedSpec{})
				for _, c := range bd.cables {
					c.BlackHole(bothWays)
				}
				for i := range 3 { // these are the session's
					require.NoError(t, bd.ab.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte{byte(i)}}))
				}
				n := uint64(1)
				if !stored {
					n = 2 // as if the bug came before the session had noted it
				}
				bd.ab.locked(func(time.Duration) {
					bd.ab.sending = bd.ab.s.Sent() + n - 1
					panic("a bug in the middle of a message")
				})
				require.Equal(t, stored, bd.ab.hasTaken())
				require.Error(t, bd.ab.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t")}))
				pass(2 * time.Second)
				require.Len(t, bd.a.undelivered(), 3)
			})
		})
	}
}

// A session that cannot even be closed gives no message back; that some are lost is said once.
func TestMessagesOfASessionThatIsGoneAreToldOf(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{})
		require.NoError(t, bd.ab.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte("lost, perhaps")}))
		sabotages["gone"](bd.ab)
		bd.ab.Stats()
		pass(2 * time.Second)
		require.Len(t, bd.a.events.of(rail.MessageRefused), 1)
		require.ErrorIs(t, bd.a.events.of(rail.MessageRefused)[0].Cause, rma.ErrOutcomeUnknown)
		require.ErrorIs(t, bd.ab.Err(), rma.ErrEndpointDown)
	})
}

// A goroutine of the node that nobody supervises does not end the process.
func TestPanicInAGoroutineOfTheNode(t *testing.T) {
	g := newGround(t, railtest.KindPipe, 1)
	node := launch(t, g, g.near)
	done := make(chan struct{})
	node.track(func() {
		defer close(done)
		panic("a bug in a goroutine")
	})
	<-done
	node.leave(t, patience)
}
