package endpoint

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rail/tcp"
	"railyard/rma"
)

// This file makes two nodes with faulty cables between them, over either kind of transport. Loads that check what
// arrives are in harness_load_test.go and harness_puts_test.go, the cables in harness_cable_test.go.

// patience is how long anything that must happen may take; only a failing test waits for it.
const patience = 30 * time.Second

// full asks for the long runs.
var full = os.Getenv("RAILYARD_FULL") == "1"

// sized gives the size of a run: the second one where RAILYARD_FULL is set.
func sized(plain, long int) int {
	if full {
		return long
	}
	return plain
}

// seeded makes a test's source of choices and says how to have the same ones again.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("RAILYARD_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("RAILYARD_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// bothKinds runs a test over the pipe in memory and over TCP, side by side: both mostly wait. Where both are over, no
// descriptor may be left.
func bothKinds(t *testing.T, test func(t *testing.T, kind string)) {
	noDescriptorLeft(t)
	for _, kind := range []string{railtest.KindPipe, rail.KindTCP} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// kindTLS is TCP with TLS on every rail.
const kindTLS = "tls"

// allKinds also runs a test over encrypted rails.
func allKinds(t *testing.T, test func(t *testing.T, kind string)) {
	bothKinds(t, test)
	t.Run(kindTLS, func(t *testing.T) {
		noDescriptorLeft(t)
		test(t, kindTLS)
	})
}

// patientHealth is for tests in which no rail may be suspected: a busy machine must not look like a dead rail.
var patientHealth = rail.HealthConfig{Floor: 5 * time.Second, Unmeasured: 5 * time.Second, Ceiling: 20 * time.Second}

// peer is one node of a bed.
type peer struct {
	*Manager
	*witness
	cfg    Config
	system *actor.ActorSystem
	events *eventLog
	// drain is how long the node may take to leave when the test ends.
	drain time.Duration
	// mu guards what the system's event stream has shown.
	mu    sync.Mutex
	crash []actor.SupervisorEvent
	dead  []string
}

// bedSpec is what a bed is made of; the zero value has two rails and default settings.
type bedSpec struct {
	rails int
	// both, a and b change the nodes' settings.
	both, a, b func(*Config)
}

// bed is two nodes and the cables between them. Rail i runs over cable i; a dials.
type bed struct {
	t      testing.TB
	kind   string
	cables []cable
	a, b   *peer
	// ab is a's endpoint to b; ba, the other way, is there once something has arrived.
	ab *Endpoint
	// startB starts b again at the same addresses.
	startB func() *peer
}

// newBed starts both nodes and waits until every rail is up. When the test ends it shuts them down.
func newBed(t testing.TB, kind string, spec bedSpec) *bed {
	t.Helper()
	if spec.rails == 0 {
		spec.rails = 2
	}
	bd := &bed{t: t, kind: kind}
	ground := newGround(t, kind, spec.rails)
	bd.cables = ground.cables
	bd.startB = func() *peer {
		return launch(t, ground, ground.far, spec.both, spec.b)
	}
	bd.b = bd.startB()
	bd.a = launch(t, ground, ground.near, spec.both, spec.a)
	t.Cleanup(bd.heal)
	bd.connect()
	return bd
}

// connect makes the endpoint and waits for all its rails.
func (bd *bed) connect() {
	bd.t.Helper()
	bd.ab = connectTo(bd.t, bd.a, bd.b.Address())
	bd.allUp()
}

func connectTo(t testing.TB, from *peer, address string) *Endpoint {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	e, err := from.Connect(ctx, address)
	require.NoError(t, err)
	return e
}

// heal ends all faults.
func (bd *bed) heal() {
	for _, w := range bd.cables {
		w.Heal()
	}
}

// allUp waits until every rail takes work at both ends.
func (bd *bed) allUp() {
	bd.t.Helper()
	eventually(bd.t, "all rails are up at both ends", func() (bool, any) {
		back := bd.b.peer(bd.a.Address())
		if back == nil {
			return false, "b has no endpoint"
		}
		up := func(e *Endpoint) bool {
			list := e.Rails()
			for _, r := range list {
				if r.State != rail.Up && r.State != rail.Probation {
					return false
				}
			}
			return len(list) == len(bd.cables)
		}
		return up(bd.ab) && up(back), []any{bd.ab.Rails(), back.Rails()}
	})
}

// generations gives the generation of each rail, which a restart changes.
func (bd *bed) generations() []uint64 {
	var list []uint64
	for _, r := range bd.ab.Rails() {
		list = append(list, r.Generation)
	}
	return list
}

// back gives b's endpoint to a.
func (bd *bed) back() *Endpoint {
	e := bd.b.peer(bd.a.Address())
	require.NotNil(bd.t, e, "b has no endpoint to a")
	return e
}

// nobodyDown fails the test where an endpoint has ended.
func (bd *bed) nobodyDown() {
	bd.t.Helper()
	require.Empty(bd.t, bd.a.downCauses(), "a's endpoint ended")
	require.Empty(bd.t, bd.b.downCauses(), "b's endpoint ended")
}

// eventually waits for a condition that must come true; what is shown where it does not.
func eventually(t testing.TB, what string, cond func() (bool, any)) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		ok, state := cond()
		if ok {
			return
		}
		if time.Now().After(end) {
			require.FailNow(t, "it did not come true that "+what, "%+v", state)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// launch starts a node of the ground. It is shut down when the test ends.
func launch(t testing.TB, g *ground, bindings []rail.Binding, changes ...func(*Config)) *peer {
	t.Helper()
	p := &peer{witness: newWitness(), drain: 10 * time.Second}
	p.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}), actor.WithDeadLetterThrottleInterval(time.Millisecond)) // its goroutine outlives the system by so much
	p.cfg = Config{System: p.system, Host: p.witness, Kinds: g.kinds, Bindings: bindings, Logger: testLogger(),
		Events: rail.NewEvents(), OutageLimit: patience, TLS: g.tls, RequireTLS: g.tls != nil}
	for _, change := range changes {
		if change != nil {
			change(&p.cfg)
		}
	}
	p.events = follow(p.cfg.Events)
	seen := p.system.EventStream.Subscribe(func(m any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch ev := m.(type) {
		case *actor.SupervisorEvent:
			p.crash = append(p.crash, *ev)
		case *actor.DeadLetterEvent:
			// These carry what somebody waits for; a timer's tick that comes too late is nothing.
			switch m := ev.Message.(type) {
			case *operation, *takeBack, *abandon, *accepted, *rail.Accepted:
				p.dead = append(p.dead, fmt.Sprintf("%T to %s", m, ev.PID.GetId()))
			}
		}
	})
	var err error
	p.Manager, err = Start(p.cfg)
	require.NoError(t, err)
	g.lead(p)
	t.Cleanup(func() {
		p.leave(t, p.drain)
		p.system.EventStream.Unsubscribe(seen)
		p.system.Shutdown()
		p.cfg.Events.Close()
		p.events.join()
		require.Empty(t, p.dead, "letters to the node's own actors that nobody took")
		require.Empty(t, p.faults(), "what the node's host has seen")
	})
	return p
}

// leave shuts the node down; work that cannot be drained in time is no failure here.
func (p *peer) leave(t testing.TB, limit time.Duration) {
	ctx, done := context.WithTimeout(context.Background(), limit)
	defer done()
	if err := p.Shutdown(ctx); err != nil {
		t.Logf("shutdown of %s: %v", p.Address(), err)
	}
}

// crashes gives the failures that the system's supervisors have published so far.
func (p *peer) crashes() []actor.SupervisorEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]actor.SupervisorEvent(nil), p.crash...)
}

// register makes a region of n bytes at the node.
func (p *peer) register(t testing.TB, n int, rights rma.Rights) *rma.Region {
	t.Helper()
	r, err := p.Regions().Register(make([]byte, n), rights)
	require.NoError(t, err)
	return r
}

// testLogger is silent unless RAILYARD_LOG is set.
func testLogger() *zap.Logger {
	if os.Getenv("RAILYARD_LOG") == "" {
		return zap.NewNop()
	}
	l, err := zap.NewDevelopment()
	if err != nil {
		return zap.NewNop()
	}
	return l
}

// eventLog keeps what a node published.
type eventLog struct {
	mu   sync.Mutex
	list []rail.Event
	done chan struct{}
}

func follow(e *rail.Events) *eventLog {
	l := &eventLog{done: make(chan struct{})}
	ch := e.Subscribe(context.Background())
	go func() {
		defer close(l.done)
		for ev := range ch {
			l.mu.Lock()
			l.list = append(l.list, ev)
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *eventLog) join() { <-l.done }

// of gives the events of one kind.
func (l *eventLog) of(kind rail.EventKind) []rail.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []rail.Event
	for _, ev := range l.list {
		if ev.Kind == kind {
			list = append(list, ev)
		}
	}
	return list
}

// noDescriptorLeft fails the test where it ends with more open files than it began with.
func noDescriptorLeft(t testing.TB) {
	t.Helper()
	before := descriptors(t)
	t.Cleanup(func() {
		if t.Failed() {
			return // the first failure is the one to read
		}
		eventually(t, "the test leaves no descriptor", func() (bool, any) {
			now := descriptors(t)
			return len(now) <= len(before), fmt.Sprintf("before %v, now %v", before, now)
		})
	})
}

func descriptors(t testing.TB) []string {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	names := make([]string, 0, len(list))
	for _, f := range list {
		to, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err == nil { // the one that lists the folder is gone already
			names = append(names, to)
		}
	}
	return names
}

// ground is where nodes stand: bindings with cables between them.
type ground struct {
	kinds     map[string]rail.Kind
	tls       *tls.Config // of both nodes; nil: their rails are plain
	near, far []rail.Binding
	cables    []cable
}

// lead makes the forwarders that a node advertises lead to where it listens now.
func (g *ground) lead(p *peer) {
	for _, b := range p.Listening() {
		for _, c := range g.cables {
			if f, ok := c.(*forwarder); ok && f.address() == b.Advertise {
				f.lead(b.Address)
			}
		}
	}
}

func newGround(t testing.TB, kind string, rails int) *ground {
	g := &ground{kinds: map[string]rail.Kind{}}
	if kind == railtest.KindPipe {
		network := railtest.NewNetwork()
		held := &tap{Kind: network.Kind()}
		g.kinds[kind] = held
		for i := range rails {
			a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
			g.near = append(g.near, rail.Binding{Kind: kind, Address: a + ":1"})
			g.far = append(g.far, rail.Binding{Kind: kind, Address: b + ":1"})
			w := &pipeWire{Wire: network.Wire(a, b), tap: held, from: a + ":1"}
			for j := range rails {
				if j != i {
					w.others = append(w.others, network.Wire(fmt.Sprintf("a%d", j), b))
				}
			}
			g.cables = append(g.cables, w)
		}
		return g
	}
	if kind == kindTLS {
		g.tls = nodeTLS(t, authority(t), "127.0.0.1")
	}
	g.kinds[rail.KindTCP] = tcp.New(tcp.Config{})
	for range rails {
		f := newForwarder(t)
		g.near = append(g.near, rail.TCP("127.0.0.1:0"))
		g.far = append(g.far, rail.TCP("127.0.0.1:0", rail.Advertised(f.address())))
		g.cables = append(g.cables, f)
	}
	return g
}
