package endpoint

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
	"railyard/supervision"
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
	inEndpoints(c, m.lay)
}

// inEndpoints changes the props of the endpoints' actors.
func inEndpoints(c *Config, change func(*actor.Props) *actor.Props) {
	changing := func(next actor.SpawnFunc) actor.SpawnFunc {
		return func(s *actor.ActorSystem, id string, p *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
			return next(s, id, change(p), parent)
		}
	}
	atRoot(c, "railyard-", func(p *actor.Props) *actor.Props { return p.Configure(actor.WithSpawnMiddleware(changing)) })
}

// inNode lays it in the node's actor, inDevices in the one that watches cards.
func (m *mine) inNode(c *Config)    { atRoot(c, "railyard-$", m.lay) }
func (m *mine) inDevices(c *Config) { atRoot(c, "railyard-devices-", m.lay) }

// atRoot changes the props of the root actor with the prefix of a name.
func atRoot(c *Config, prefix string, change func(*actor.Props) *actor.Props) {
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
		ctx, done := context.WithTimeout(context.Background(), time.Second)
		_ = taken.Cancel(ctx)
		done()
		other := bd.b.register(bd.t, 8<<20, rma.RemoteWrite)
		given, err := bd.ab.newOperation(rma.OpConfig{Kind: rma.PutOp, Key: other.Key(), Data: make([]byte, 8<<20)})
		require.NoError(bd.t, err)
		if bd.ab.hand(given) == nil { // as by a Cancel whose context ends before the peer has answered
			mine.handles = append(mine.handles, &given.Op)
			bd.ab.submit(&abandon{o: given})
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
	bd.nextEpoch(t, ab)
	require.Len(t, bd.a.downCauses(), 1, "the new epoch lives")
}

// A bug in the node's actor costs the epochs that it holds, and no more: who connects afterwards is connected.
func TestPanicInTheNodesActor(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				m := newMine("*endpoint.spawnEndpoint", after)
				g := newGround(t, railtest.KindPipe, 2)
				quiet := func(c *Config) { c.Links = noLinks }
				b := launch(t, g, g.far, quiet)
				a := launch(t, g, g.near, quiet, m.inNode)
				ctx, done := context.WithTimeout(context.Background(), patience)
				defer done()
				_, err := a.Connect(ctx, b.Address())
				if !after { // else it may have been up for an instant
					require.ErrorIs(t, err, rma.ErrEndpointDown)
				}
				pass(time.Second)
				require.Equal(t, 1, m.count())
				e, err := a.Connect(ctx, b.Address())
				require.NoError(t, err)
				require.NoError(t, e.Flush(ctx))
			})
		})
	}
}

// A bug in the actor that watches cards costs hints.
func TestPanicInTheDevicesActor(t *testing.T) {
	virtually(t, func(t *testing.T) {
		m := newMine("*rail.WatchDevices", false)
		bd := virtualBed(t, bedSpec{a: m.inDevices})
		require.Equal(t, 1, m.count())
		bd.works()
		bd.nobodyDown()
	})
}

// faulty is a kind with a bug: its connections, or dialing itself, panic once at a call.
type faulty struct {
	rail.Kind
	bomb *bomb
}

func (k *faulty) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	k.at("Dial")
	c, err := k.Kind.Dial(ctx, local, remote)
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: c, kind: k}, nil
}

func (k *faulty) at(call string) {
	if k.bomb.at == call {
		k.bomb.hit()
	}
}

type faultyConn struct {
	rail.Conn
	kind *faulty
}

func (c *faultyConn) Write(b []byte) (int, error) {
	c.kind.at("Write")
	return c.Conn.Write(b)
}

func (c *faultyConn) Run(l rail.Link, lost func(error)) {
	c.kind.at("Run")
	c.Conn.Run(&faultyLink{Link: l, kind: c.kind}, lost)
}

type faultyLink struct {
	rail.Link
	kind *faulty
}

func (l *faultyLink) Fill(g *rma.Gather) bool {
	l.kind.at("Fill")
	ok := l.Link.Fill(g)
	if ok {
		l.kind.at("Filled")
	}
	return ok
}

func (l *faultyLink) Wrote(g *rma.Gather, n int) error {
	if n > 0 {
		l.kind.at("Written") // the bytes are on their way, and nobody is told
	}
	return l.Link.Wrote(g, n)
}

func (l *faultyLink) Got(s *rma.Scatter, n int) error {
	if n > 0 {
		l.kind.at("Read")
	}
	return l.Link.Got(s, n)
}

func (l *faultyLink) Want(s *rma.Scatter) error {
	l.kind.at("Want")
	err := l.Link.Want(s)
	if err == nil {
		l.kind.at("Wanted")
	}
	return err
}

// faultyListener is the acceptor's half of a faulty kind.
type faultyListener struct {
	rail.Listener
	kind *faulty
}

func (k *faulty) Listen(ctx context.Context, b rail.Binding) (rail.Listener, error) {
	l, err := k.Kind.Listen(ctx, b)
	if err != nil {
		return nil, err
	}
	return &faultyListener{Listener: l, kind: k}, nil
}

func (l *faultyListener) Accept() (rail.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: c, kind: l.kind}, nil
}

// A bug in a connection, at whatever point of its work, costs its generation: nothing is lost, the endpoint lives, and the bug is told as one.
func TestPanicInAConnectionCostsItsGeneration(t *testing.T) {
	for _, call := range []string{"Dial", "Write", "Run", "Fill", "Filled", "Written", "Want", "Wanted", "Read"} {
		for _, end := range []string{"dialer", "acceptor"} {
			if call == "Dial" && end == "acceptor" {
				continue
			}
			t.Run(call+" "+end, func(t *testing.T) {
				virtually(t, func(t *testing.T) { generationEnds(t, call, end == "dialer") })
			})
		}
	}
}

func generationEnds(t *testing.T, call string, dialer bool) {
	b := &bomb{at: call, every: 1 << 30, times: 1}
	lay := func(c *Config) {
		c.Kinds = map[string]rail.Kind{railtest.KindPipe: &faulty{Kind: c.Kinds[railtest.KindPipe], bomb: b}}
	}
	spec := bedSpec{b: lay}
	if dialer {
		spec = bedSpec{a: lay}
	}
	bd := virtualBed(t, spec)
	at := bd.b
	if dialer {
		at = bd.a
	}
	mine, theirs := newChores(t, bd.a), newChores(t, bd.b)
	mine.add(bd.ab, bd.b, 3)
	b.mu.Lock()
	b.every = 1
	b.mu.Unlock()
	if call == "Dial" || call == "Write" || call == "Run" { // a new connection meets it
		bd.cables[0].Reset()
	}
	mine.add(bd.ab, bd.b, 3)
	theirs.add(bd.back(), bd.a, 3)
	pass(10 * time.Second)
	require.Equal(t, 1, b.count(), "the bug has shown")
	mine.well()
	theirs.well()
	bd.allUp()
	bd.nobodyDown()
	bd.a.lives(t)
	bd.b.lives(t)
	for _, e := range []*Endpoint{bd.ab, bd.back()} { // the generation has been settled, and every lease given back
		e.mu.Lock()
		require.False(t, e.s.Open())
		e.mu.Unlock()
	}
	if !dialer && call == "Write" { // in the handshake, before there is a generation to lose
		return
	}
	bugs, overtaken := 0, 0
	for _, ev := range at.crashes() {
		err, is := ev.Reason.(error)
		switch {
		case is && supervision.ClassOf(err) == supervision.Bug || fmt.Sprint(ev.Reason) == b.value():
			bugs++
		case is && errors.Is(err, session.ErrRetiredByPeer): // it saw the end of the stream first, and said so on the other rail
			overtaken++
		}
	}
	require.True(t, bugs == 1 || bugs == 0 && overtaken == 1, "%v", at.crashes())
}

// nextEpoch sees that an epoch has ended, once at either end, and that work goes well in another one.
func (bd *bed) nextEpoch(t *testing.T, ended *Endpoint) {
	t.Helper()
	for _, p := range []*peer{bd.a, bd.b} {
		require.Len(t, p.downCauses(), 1)
		require.Len(t, p.events.of(rail.EndpointDown), 1)
		p.lives(t)
	}
	bd.heal()
	bd.connect()
	require.NotSame(t, ended, bd.ab)
	next, other := newChores(t, bd.a), newChores(t, bd.b)
	next.add(bd.ab, bd.b, 3)
	other.add(bd.back(), bd.a, 3)
	pass(5 * time.Second)
	next.well()
	other.well()
}
