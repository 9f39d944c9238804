package rail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/supervision"
	"railyard/wire"
)

// errCable is what a fake connection breaks with.
var errCable = errors.New("cable cut")

// fakeConn is a connection without bytes: the test breaks it when it likes.
type fakeConn struct {
	mu     sync.Mutex
	lost   func(error)
	killed bool
	closed bool
	runs   int
	dead   chan struct{}
	pumps  sync.WaitGroup
}

func newFakeConn() *fakeConn { return &fakeConn{dead: make(chan struct{})} }

func (c *fakeConn) Read([]byte) (int, error)      { <-c.dead; return 0, net.ErrClosed }
func (c *fakeConn) Write(b []byte) (int, error)   { return len(b), nil }
func (c *fakeConn) SetDeadline(time.Time) error   { return nil }
func (c *fakeConn) LocalAddr() string             { return "local" }
func (c *fakeConn) RemoteAddr() string            { return "remote" }
func (c *fakeConn) Kick()                         {}
func (c *fakeConn) WriteNow()                     {}
func (c *fakeConn) Unacked() (bytes int, ok bool) { return 0, false }

func (c *fakeConn) Run(_ Link, lost func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	c.lost = lost
	c.pumps.Go(func() { <-c.dead })
}

// snap ends the stream with err, as the socket would; after Kill it does nothing.
func (c *fakeConn) snap(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil && !c.killed {
		lost := c.lost
		c.lost = nil
		c.pumps.Go(func() { lost(err) })
	}
}

func (c *fakeConn) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.killed {
		c.killed = true
		close(c.dead)
	}
}

func (c *fakeConn) Close() {
	c.Kill()
	c.pumps.Wait()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
}

func (c *fakeConn) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed && c.closed
}

// fakeKind dials as the test says.
type fakeKind struct {
	mu    sync.Mutex
	dial  func(ctx context.Context) (Conn, error)
	dials []time.Time
	conns []*fakeConn
}

func (k *fakeKind) Name() string { return "fake" }

func (k *fakeKind) Listen(context.Context, Binding) (Listener, error) {
	return nil, errors.ErrUnsupported
}

func (k *fakeKind) Dial(ctx context.Context, _, _ string) (Conn, error) {
	k.mu.Lock()
	dial := k.dial
	k.dials = append(k.dials, time.Now())
	k.mu.Unlock()
	if dial != nil {
		return dial(ctx)
	}
	return k.connect(), nil
}

func (k *fakeKind) connect() *fakeConn {
	c := newFakeConn()
	k.mu.Lock()
	k.conns = append(k.conns, c)
	k.mu.Unlock()
	return c
}

func (k *fakeKind) set(dial func(context.Context) (Conn, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dial = dial
}

func (k *fakeKind) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.dials)
}

func (k *fakeKind) newest() *fakeConn {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.conns[len(k.conns)-1]
}

func refused(context.Context) (Conn, error) { return nil, errors.New("connection refused") }

func swallowed(ctx context.Context) (Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// fakeLink is never called: fakeConn moves no bytes.
type fakeLink struct{ Link }

// life is what the fake session knows of one generation.
type life struct {
	joined, attached bool
	transport        *actor.PID
	lost             []error
	offers, beats    int
}

// fakeJoiner is a session that believes everything, and keeps a journal.
type fakeJoiner struct {
	mu      sync.Mutex
	clock   func() time.Duration
	last    wire.Generation
	lives   map[wire.Generation]*life
	journal []string
	// join, where set, replaces the handshake. silent: beats are not answered. unknown: Vitals knows nothing.
	join            func(ctx context.Context, g wire.Generation, conn Conn) (Link, error)
	silent, unknown bool
	answered        time.Duration
	oldest          time.Duration
	inFlight        uint64
}

func (j *fakeJoiner) of(g wire.Generation) *life {
	if j.lives[g] == nil {
		j.lives[g] = &life{}
	}
	return j.lives[g]
}

func (j *fakeJoiner) note(format string, args ...any) {
	j.journal = append(j.journal, fmt.Sprintf(format, args...))
}

func (j *fakeJoiner) NextGeneration(wire.RailID) wire.Generation {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = j.last.Next(true)
	return j.last
}

func (j *fakeJoiner) Join(ctx context.Context, _ wire.RailID, g wire.Generation, conn Conn) (Link, error) {
	j.mu.Lock()
	join := j.join
	j.mu.Unlock()
	link, err := Link(fakeLink{}), error(nil)
	if join != nil {
		link, err = join(ctx, g, conn)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.of(g).joined = true
		j.note("join %d", g)
	}
	return link, err
}

func (j *fakeJoiner) Vitals(_ wire.RailID, g wire.Generation) (Vitals, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := Vitals{RTT: time.Millisecond, Busy: true, InFlight: j.inFlight, Acked: uint64(j.answered),
		Answered: j.answered, Heard: j.answered, OldestPing: j.oldest}
	return v, !j.unknown && len(j.of(g).lost) == 0
}

func (j *fakeJoiner) Beat(_ wire.RailID, g wire.Generation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(g).beats++
	now := j.clock()
	if !j.silent {
		j.answered, j.oldest = now, 0
	} else if j.oldest == 0 {
		j.oldest = now
	}
}

func (j *fakeJoiner) Attach(_ wire.RailID, g wire.Generation, t *actor.PID, _ Conn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(g).attached, j.of(g).transport = true, t
	j.note("attach %d", g)
}

func (j *fakeJoiner) Suspect(_ wire.RailID, g wire.Generation, _ error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("suspect %d", g)
}

func (j *fakeJoiner) Trust(_ wire.RailID, g wire.Generation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("trust %d", g)
}

func (j *fakeJoiner) Lost(_ wire.RailID, g wire.Generation, cause error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(g).lost = append(j.of(g).lost, cause)
	j.note("lost %d", g)
}

func (j *fakeJoiner) Offer(_ wire.RailID, g wire.Generation, _ any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(g).offers++
}

func (j *fakeJoiner) Withdraw(_ wire.RailID, g wire.Generation, op any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("withdraw %d %v", g, op)
}

func (j *fakeJoiner) change(f func(*fakeJoiner)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j)
}

func (j *fakeJoiner) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.journal)
}

// yard is one rail under test, with a stand-in for the endpoint above it. It runs in a synctest bubble.
type yard struct {
	t      *testing.T
	system *actor.ActorSystem
	kind   *fakeKind
	joiner *fakeJoiner
	events <-chan Event
	parent *actor.PID
	rail   *actor.PID
	work   sync.WaitGroup

	mu     sync.Mutex
	told   []any
	judged []*actor.SupervisorEvent
}

// quiet keeps protoactor's own log out of the tests' output.
func quiet(c *actor.Config) {
	c.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
}

// hire starts a rail; change adapts its settings.
func hire(t *testing.T, change func(*Config)) *yard {
	t.Helper()
	start := time.Now()
	clock := func() time.Duration { return time.Second + time.Since(start) }
	y := &yard{t: t, system: actor.NewActorSystem(quiet), kind: &fakeKind{}}
	y.joiner = &fakeJoiner{clock: clock, lives: map[wire.Generation]*life{}}
	events := NewEvents()
	y.events = events.Subscribe(t.Context())
	policy, err := supervision.Default(supervision.DefaultConfig{}, rand.NewPCG(1, 2))
	require.NoError(t, err)
	cfg := Config{ID: 7, Peer: "peer", Local: "10.0.0.1:0", Remote: "10.0.0.2:7400", Kind: y.kind, Dials: true,
		Joiner: y.joiner, Policy: policy, Clock: clock, Events: events, Track: func(f func()) { y.work.Go(f) }}
	if change != nil {
		change(&cfg)
	}
	props, err := Props(cfg)
	require.NoError(t, err)
	y.system.EventStream.Subscribe(func(evt any) {
		if e, ok := evt.(*actor.SupervisorEvent); ok {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.judged = append(y.judged, e)
		}
	})
	started := make(chan struct{})
	y.parent = y.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			y.rail = ctx.Spawn(props)
			close(started)
		case *Joined, *Broke, *GaveUp, *Escalated:
			y.mu.Lock()
			defer y.mu.Unlock()
			y.told = append(y.told, m)
		}
	}))
	<-started
	return y
}

func (y *yard) send(message any) {
	y.system.Root.Send(y.rail, message)
	synctest.Wait()
}

// up connects and waits for the first generation.
func (y *yard) up() {
	y.t.Helper()
	y.send(&Connect{})
	require.Equal(y.t, Up, y.status().State)
}

func (y *yard) status() *Status {
	y.t.Helper()
	s, err := y.system.Root.RequestFuture(y.rail, &Describe{}, time.Second).Result()
	require.NoError(y.t, err)
	return s.(*Status)
}

func (y *yard) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// published drains the events so far, as their names.
func (y *yard) published() []string {
	var names []string
	for {
		select {
		case e := <-y.events:
			names = append(names, e.Kind.String())
		default:
			return names
		}
	}
}

func (y *yard) supervised() []*actor.SupervisorEvent {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.judged)
}

// broke gives the Broke messages so far.
func (y *yard) broke() []*Broke {
	y.mu.Lock()
	defer y.mu.Unlock()
	var all []*Broke
	for _, m := range y.told {
		if b, ok := m.(*Broke); ok {
			all = append(all, b)
		}
	}
	return all
}

// heard gives the types that the parent was told, in order.
func (y *yard) heard() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var all []string
	for _, m := range y.told {
		all = append(all, fmt.Sprintf("%T", m)[len("*rail."):])
	}
	return all
}

// close stops everything and checks what must hold at the end of any story.
func (y *yard) close() {
	y.t.Helper()
	require.NoError(y.t, y.system.Root.StopFuture(y.parent).Wait())
	synctest.Wait()
	y.work.Wait()
	y.system.Shutdown()
	y.kind.mu.Lock()
	for i, c := range y.kind.conns {
		require.True(y.t, c.gone(), "connection %d is still open", i)
		require.LessOrEqual(y.t, c.runs, 1)
	}
	y.kind.mu.Unlock()
	y.joiner.mu.Lock()
	defer y.joiner.mu.Unlock()
	for g, l := range y.joiner.lives {
		want := 0
		if l.joined {
			want = 1
		}
		require.Len(y.t, l.lost, want, "generation %d: joined %v", g, l.joined)
	}
	require.Len(y.t, y.broke(), len(y.supervised()), "each failure is judged, published and told once")
}

// story runs one in a bubble of its own time.
func story(t *testing.T, change func(*Config), tell func(t *testing.T, y *yard)) {
	synctest.Test(t, func(t *testing.T) {
		y := hire(t, change)
		defer y.close()
		tell(t, y)
	})
}
