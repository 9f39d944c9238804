package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
)

// This file: two nodes whose actors, timers and cables live in a bubble with a clock of its own. Minutes of outage cost
// nothing, times are exact, and what is left behind by anybody is a failure of the test: the bubble would not end.

// virtually runs a test in a bubble.
func virtually(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A wait that never ends would let the bubble's clock run for ever.
		dog := time.AfterFunc(24*time.Hour, func() { panic("the test waits for what does not come") })
		t.Cleanup(func() {
			pass(2 * time.Second) // protoactor's dead letters have a goroutine that lives for a moment
			dog.Stop()
		})
		test(t)
	})
}

// virtualBed is newBed in a bubble.
func virtualBed(t *testing.T, spec bedSpec) *bed {
	t.Helper()
	given := spec.both
	spec.both = func(c *Config) {
		c.Links = noLinks
		if given != nil {
			given(c)
		}
	}
	return newBed(t, railtest.KindPipe, spec)
}

// noLinks is a host whose cards nobody watches: netlink's socket is outside the bubble, and would keep its clock from moving.
func noLinks(ctx context.Context, _ func(rail.LinkState)) error {
	<-ctx.Done()
	return nil
}

// pass lets time go by, and everybody do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// chores are operations whose completions are counted: some by handle, some asked for by an actor.
type chores struct {
	t       testing.TB
	from    *peer
	handles []*rma.Op
	asker   *actor.PID
	asked   uint64

	mu   sync.Mutex
	done map[uint64][]error
}

func newChores(t testing.TB, from *peer) *chores {
	c := &chores{t: t, from: from, done: make(map[uint64][]error)}
	c.asker = from.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*rma.Done); ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.done[d.ID] = append(c.done[d.ID], d.Err)
		}
	}))
	t.Cleanup(func() { _ = from.system.Root.StopFuture(c.asker).Wait() })
	return c
}

// add starts puts, gets and flushes of mixed sizes in both ways of asking.
func (c *chores) add(e *Endpoint, to *peer, n int) {
	for i := range n {
		size := 1 + i*97<<10
		write, read := to.register(c.t, size, rma.RemoteWrite), to.register(c.t, size, rma.RemoteRead)
		c.handles = append(c.handles, e.StartPut(write.Key(), 0, make([]byte, size)),
			e.StartGet(read.Key(), 0, make([]byte, size)), e.start(rma.OpConfig{Kind: rma.FlushOp}))
		other := to.register(c.t, size, rma.RemoteWrite) // puts that overlap would be the application's to order
		c.ask(e, func(id uint64) any { return &rma.Put{ID: id, Key: other.Key(), Data: make([]byte, size)} })
		c.ask(e, func(id uint64) any { return rma.Get{ID: id, Key: read.Key(), Dst: make([]byte, size)} })
		c.ask(e, func(id uint64) any { return rma.Flush{ID: id} })
	}
}

func (c *chores) ask(e *Endpoint, message func(id uint64) any) {
	c.asked++
	e.root.RequestWithCustomSender(e.PID(), message(c.asked), c.asker)
}

// outcomes gives how each operation has ended. It fails the test where one has not, or has twice.
func (c *chores) outcomes() []error {
	c.t.Helper()
	synctest.Wait()
	var list []error
	for i, op := range c.handles {
		require.True(c.t, op.Finished(), "operation %d of %d is still open", i, len(c.handles))
		list = append(list, op.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := uint64(1); id <= c.asked; id++ {
		require.Len(c.t, c.done[id], 1, "answers to operation %d of %d", id, c.asked)
		list = append(list, c.done[id][0])
	}
	return list
}

// well requires that everything went well.
func (c *chores) well() {
	c.t.Helper()
	for i, err := range c.outcomes() {
		require.NoError(c.t, err, "operation %d", i)
	}
}

// failed requires that whatever did not go well ended for the reason, and that it was something.
func (c *chores) failed(reason error) {
	c.t.Helper()
	n := 0
	for i, err := range c.outcomes() {
		if err != nil {
			require.ErrorIs(c.t, err, reason, "operation %d", i)
			n++
		}
	}
	require.NotZero(c.t, n, "everything went well")
}

// leaves shuts a node down and gives how long it took. It fails the test where that was beyond the limit and the goodbye.
func (p *peer) leaves(t testing.TB, limit time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), limit)
	defer done()
	start := time.Now()
	err := p.Shutdown(ctx)
	took := time.Since(start)
	require.LessOrEqual(t, took, limit+lastWords+10*time.Millisecond)
	return took, err
}

// lives pairs the ups and downs that a node has published: each generation that was announced has at most one down, and
// no other has any.
func (p *peer) lives(t testing.TB) {
	t.Helper()
	ups, downs := make(map[string]int), make(map[string]int)
	name := func(ev rail.Event) string {
		return fmt.Sprintf("%s rail %d generation %d", ev.Peer, ev.Rail, ev.Generation)
	}
	for _, kind := range []rail.EventKind{rail.RailUp, rail.RailRejoined} {
		for _, ev := range p.events.of(kind) {
			ups[name(ev)]++ // a second RailUp says that probation is over
		}
	}
	for _, ev := range p.events.of(rail.RailDown) {
		downs[name(ev)]++
		require.NotZero(t, ups[name(ev)], "%s went down and was never up", name(ev))
		require.Equal(t, 1, downs[name(ev)], "downs of %s", name(ev))
	}
}

// isOneOf tells whether an error is any of those.
func isOneOf(err error, list ...error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
