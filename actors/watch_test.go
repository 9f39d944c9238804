package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rma"
)

// watcher is an actor that watches and unwatches as it is told, and reports every Terminated.
type watcher struct {
	node testNode
	pid  *actor.PID
	told chan *actor.Terminated
}

type watchOrder struct {
	pid     *actor.PID
	unwatch bool
	done    chan struct{}
}

func newWatcher(n testNode) *watcher {
	w := &watcher{node: n, told: make(chan *actor.Terminated, 1024)}
	w.pid = n.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *watchOrder:
			if m.unwatch {
				ctx.Unwatch(m.pid)
			} else {
				ctx.Watch(m.pid)
			}
			close(m.done)
		case *actor.Terminated:
			w.told <- m
		}
	}))
	return w
}

func (w *watcher) order(t testing.TB, pid *actor.PID, unwatch bool) {
	t.Helper()
	o := &watchOrder{pid: pid, unwatch: unwatch, done: make(chan struct{})}
	w.node.sys.Root.Send(w.pid, o)
	next(t, whenClosed(o.done), "the watcher's answer")
}

// whenClosed makes a channel of one element of one that is closed.
func whenClosed(c <-chan struct{}) <-chan struct{} {
	to := make(chan struct{}, 1)
	go func() {
		<-c
		to <- struct{}{}
	}()
	return to
}

// once expects a Terminated about who.
func (w *watcher) once(t testing.TB, who *actor.PID, why actor.TerminatedReason) {
	t.Helper()
	m := next(t, w.told, "Terminated")
	require.Equal(t, who.String(), m.Who.String(), "the watcher's own name for it")
	require.Equal(t, why, m.Why)
}

func (w *watcher) nothing(t testing.TB) {
	t.Helper()
	select {
	case m := <-w.told:
		require.Fail(t, "a Terminated too many", "%v", m)
	default:
	}
}

func TestTerminatedWhenTheActorStops(t *testing.T) {
	a := node(t)
	b := node(t, func(c *Config) { *c = loopback(2) })
	for i, address := range []string{b.Address(), b.manager().Listening()[1].Address} {
		name := fmt.Sprint("watched", i)
		watched, _ := b.inbox(t, name)
		w := newWatcher(a)
		who := actor.NewPID(address, name)
		w.order(t, who, false)
		w.order(t, who, false) // twice makes no second Terminated
		eventually(t, func() bool { return b.watched.count() == 1 }, "Watch has come")
		b.sys.Root.Stop(watched)
		w.once(t, who, actor.TerminatedReason_Stopped)
		eventually(t, func() bool { return a.watches.count() == 0 && b.watched.count() == 0 }, "the tables are empty")
		w.nothing(t)
	}
}

func TestTerminatedForActorsThatAreNotThere(t *testing.T) {
	a, b := node(t), node(t)
	w := newWatcher(a)
	w.order(t, b.at("nobody"), false)
	w.once(t, b.at("nobody"), actor.TerminatedReason_NotFound)
	require.Zero(t, b.watched.count())
}

// Actors of two peers may have one name, and one watcher.
func TestOneNameAtTwoPeers(t *testing.T) {
	a, b, c := node(t), node(t), node(t)
	w := newWatcher(a)
	for _, n := range []testNode{b, c} {
		n.inbox(t, "watched")
		w.order(t, n.at("watched"), false)
		eventually(t, func() bool { return n.watched.count() == 1 }, "Watch has come")
	}
	require.Equal(t, 2, a.watches.count())
	c.sys.Root.Stop(c.at("watched"))
	w.once(t, c.at("watched"), actor.TerminatedReason_Stopped)
	require.Equal(t, 1, a.watches.count())
	b.sys.Root.Stop(b.at("watched"))
	w.once(t, b.at("watched"), actor.TerminatedReason_Stopped)
	w.nothing(t)
}

func TestUnwatch(t *testing.T) {
	a, b := node(t), node(t)
	watched, _ := b.inbox(t, "watched")
	w, still := newWatcher(a), newWatcher(a)
	w.order(t, b.at("watched"), false)
	still.order(t, b.at("watched"), false)
	eventually(t, func() bool { return b.watched.count() == 2 }, "both Watch have come")
	w.order(t, b.at("watched"), true)
	eventually(t, func() bool { return b.watched.count() == 1 }, "Unwatch has come")
	require.Equal(t, 1, a.watches.count())
	b.sys.Root.Stop(watched)
	still.once(t, b.at("watched"), actor.TerminatedReason_Stopped)
	w.nothing(t)
}

func TestTerminatedWhenTheNodeShutsDown(t *testing.T) {
	// A goodbye may be lost with its rail: then the outage tells.
	a, b := node(t, func(c *Config) { c.OutageLimit = 5 * time.Second }), node(t)
	b.inbox(t, "one")
	b.inbox(t, "two")
	w := newWatcher(a)
	w.order(t, b.at("one"), false)
	w.order(t, b.at("two"), false)
	eventually(t, func() bool { return b.watched.count() == 2 }, "both Watch have come")
	require.NoError(t, b.Shutdown(testContext(t)))
	who := []string{}
	for range 2 {
		m := next(t, w.told, "Terminated")
		require.Equal(t, actor.TerminatedReason_AddressTerminated, m.Why)
		who = append(who, m.Who.GetId())
	}
	assert.ElementsMatch(t, []string{"one", "two"}, who)
	w.nothing(t)
	require.Zero(t, a.watches.count())
}

// A peer that is killed says no goodbye: silence has to tell. Watchers and futures learn of it
// once.
func TestTheEndOfAPeerThatIsKilled(t *testing.T) {
	c := startChild(t, "127.0.0.1:0")
	a := node(t, func(c *Config) { c.OutageLimit = 500 * time.Millisecond })
	_, err := a.sys.Root.RequestFuture(c.at("echo"), text("x"), patience).Result()
	require.NoError(t, err)
	e, err := a.Connect(testContext(t), c.address)
	require.NoError(t, err)
	w := newWatcher(a)
	w.order(t, c.at("echo"), false)
	open := make([]*actor.Future, 10)
	for i := range open {
		open[i] = a.sys.Root.RequestFuture(c.at("silent"), text("never answered"), 10*patience)
	}
	_, err = a.sys.Root.RequestFuture(c.at("echo"), text("all before has come"), patience).Result()
	require.NoError(t, err)

	c.kill()
	w.once(t, c.at("echo"), actor.TerminatedReason_AddressTerminated)
	for _, f := range open {
		require.ErrorIs(t, f.Wait(), actor.ErrDeadLetter)
	}
	require.ErrorIs(t, e.Err(), rma.ErrEndpointDown)
	w.nothing(t)
	require.Zero(t, a.watches.count())
	require.Empty(t, a.futures.waiting)
}

// A Watch that finds no peer is answered when that is certain.
func TestTerminatedWhenThereIsNoPeer(t *testing.T) {
	a := node(t, func(c *Config) { c.OutageLimit = 300 * time.Millisecond })
	who := actor.NewPID("127.0.0.1:1", "x")
	w := newWatcher(a)
	w.order(t, who, false)
	w.once(t, who, actor.TerminatedReason_AddressTerminated)
	_, err := a.sys.Root.RequestFuture(who, text("x"), 10*patience).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
	require.NoError(t, a.Shutdown(testContext(t)))
	w.order(t, who, false)
	w.once(t, who, actor.TerminatedReason_AddressTerminated)
	w.nothing(t)
}

// Actors that are watched from a peer forget its watchers with it.
func TestWatchersOfAPeerThatIsGone(t *testing.T) {
	a, b := node(t), node(t)
	unwatched := make(chan *actor.PID, 16)
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {},
		actor.WithMailbox(func() actor.Mailbox { return spying{actor.Unbounded()(), unwatched} })), "watched")
	require.NoError(t, err)
	w := newWatcher(a)
	w.order(t, b.at("watched"), false)
	eventually(t, func() bool { return b.watched.count() == 1 }, "Watch has come")
	require.NoError(t, a.Shutdown(testContext(t)))
	require.Equal(t, a.at(w.pid.Id).String(), next(t, unwatched, "Unwatch").String())
	require.Zero(t, b.watched.count())
}

// spying tells whom Unwatch messages are about.
type spying struct {
	actor.Mailbox
	unwatched chan<- *actor.PID
}

func (s spying) PostSystemMessage(m any) {
	if u, ok := m.(*actor.Unwatch); ok {
		s.unwatched <- u.Watcher
	}
	s.Mailbox.PostSystemMessage(m)
}

// Watchers and futures that have ended are swept out of the tables, so that these stay in
// proportion.
func TestTablesAreSwept(t *testing.T) {
	const many = 4 * minSweep
	a, b := node(t), node(t)
	b.inbox(t, "watched")
	who := b.at("watched")
	for range many {
		f := a.sys.Root.RequestFuture(who, wrapperspb.Bool(true), patience)
		a.sys.Root.Stop(f.PID()) // as if it had timed out
		w := newWatcher(a)
		w.order(t, who, false)
		require.NoError(t, a.sys.Root.StopFuture(w.pid).Wait())
	}
	require.LessOrEqual(t, a.watches.count(), 2*minSweep)
	eventually(t, func() bool { return b.watched.count() <= 2*minSweep }, "the peer is told")
	a.futures.mu.Lock()
	defer a.futures.mu.Unlock()
	require.LessOrEqual(t, len(a.futures.waiting), 2*minSweep)
}

func (t *watches) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, list := range t.byName {
		n += len(list)
	}
	if n != t.size {
		return -1
	}
	return n
}

func (t *watched) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, pairs := range t.by {
		n += len(pairs)
	}
	return n
}
