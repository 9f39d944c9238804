package endpoint

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
)

// All rails silent for seconds, and healed: everything completes, and no endpoint ends.
func TestOutageOfAllRailsIsWaitedOut(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{rails: 2})
		there := startTalk(t, bd.a, bd.b, talkSpec{targets: 3, seed: rnd.Uint64()})
		back := startTalk(t, bd.b, bd.a, talkSpec{targets: 3, seed: rnd.Uint64()})
		load := startPuts(t, bd.ab, bd.b, putSpec{workers: 3, seed: rnd.Uint64()})
		time.Sleep(50 * time.Millisecond)
		for _, c := range bd.cables {
			c.BlackHole(bothWays)
		}
		time.Sleep(3 * time.Second)
		bd.heal()
		messages, puts := there.total(), load.done.Load()
		eventually(t, "work goes on after the outage", func() (bool, any) {
			return there.total() > messages && load.done.Load() > puts, []any{bd.a.sizes(), bd.b.sizes()}
		})
		there.finish()
		back.finish()
		load.finish()
		bd.nobodyDown()
	})
}

// crowd is open work of all sorts towards a peer that will not answer any more.
type crowd struct {
	bd   *bed
	ops  []*rma.Op
	sent uint64
}

// openWork cuts all rails and starts operations and messages of which some were under way before.
func openWork(bd *bed) *crowd {
	c := &crowd{bd: bd}
	start := func() {
		for i := range 20 {
			write, read := bd.b.register(bd.t, 1<<20, rma.RemoteWrite), bd.b.register(bd.t, 1<<20, rma.RemoteRead)
			c.ops = append(c.ops, bd.ab.StartPut(write.Key(), 0, make([]byte, 1+i*50<<10)))
			c.ops = append(c.ops, bd.ab.StartGet(read.Key(), 0, make([]byte, 1+i*50<<10)))
			c.send(16 + i*1000)
			c.send(40<<10 + i*1000)
		}
	}
	start()
	for _, cable := range bd.cables {
		cable.Cut()
	}
	start()
	return c
}

func (c *crowd) send(size int) {
	payload := make([]byte, size)
	stamp("crowd", c.sent, payload)
	err := c.bd.a.Route(c.bd.b.Address()).TrySend(&Outgoing{Target: NewRef("crowd"), Type: NewRef(numberedType), Payload: payload})
	require.NoError(c.bd.t, err)
	c.sent++
}

// ends waits until the endpoint has ended, once and with the cause, and everything open with it.
func (c *crowd) ends(cause error) {
	t, a := c.bd.t, c.bd.a
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	failed := 0
	for i, op := range c.ops {
		err := op.Wait(ctx)
		require.True(t, op.Finished(), "operation %d of %d is still open", i, len(c.ops))
		if err != nil {
			require.ErrorIs(t, err, cause, "operation %d", i)
			failed++
		}
	}
	require.GreaterOrEqual(t, failed, len(c.ops)/2)
	eventually(t, "the host is told", func() (bool, any) { return len(a.downCauses()) > 0, nil })
	select {
	case <-c.bd.ab.Done():
	default:
		require.Fail(t, "the endpoint's Done is still open")
	}
	require.ErrorIs(t, c.bd.ab.Err(), cause)
	eventually(t, "every message has arrived or come back", func() (bool, any) {
		return c.accounted() == "", c.accounted()
	})
	causes := a.downCauses()
	require.Len(t, causes, 1)
	require.ErrorIs(t, causes[0], cause)
	eventually(t, "the event is published", func() (bool, any) { return len(a.events.of(rail.EndpointDown)) > 0, nil })
	require.Len(t, a.events.of(rail.EndpointDown), 1)
	for _, l := range a.undelivered() {
		if !errors.Is(l.err, rma.ErrNoRoute) { // sent when the endpoint had ended already
			require.ErrorIs(t, l.err, cause)
		}
	}
}

// accounted says which message has neither arrived nor come back, or came back twice; empty: none. Those that had
// come behind a large one which never became whole are the peer's to tell of.
func (c *crowd) accounted() string {
	times := make(map[uint64]int)
	for _, l := range c.bd.a.undelivered() {
		times[l.seq]++
	}
	arrived, nowhere := c.bd.b.arrived("crowd"), 0
	for seq := range c.sent {
		switch n := times[seq]; {
		case n > 1:
			return fmt.Sprintf("message %d came back %d times", seq, n)
		case n == 0 && seq >= arrived:
			nowhere++
		}
	}
	if held := c.bd.b.held("crowd"); nowhere > held { // of those held, some are not acknowledged, and came back as well
		return fmt.Sprintf("%d of %d messages are nowhere; %d arrived, %d came back, %d are held", nowhere, c.sent, arrived,
			len(times), held)
	}
	return ""
}

// held is how many messages to a target the node has, or had when the session ended, behind a large one that is not whole.
func (p *peer) held(target string) int {
	n := 0
	for _, e := range p.all() {
		e.mu.Lock()
		n += e.s.Held()[target]
		e.mu.Unlock()
	}
	for _, ev := range p.events.of(rail.MessageRefused) {
		var k int
		if _, err := fmt.Sscanf(ev.Cause.Error(), "%d messages to "+target+" were held", &k); err == nil {
			n += k
		}
	}
	return n
}

// A peer that is gone: every open operation and message ends with a typed error within OutageLimit, once.
func TestPeerGoneEndsEverythingOnce(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{a: func(c *Config) { c.OutageLimit = 500 * time.Millisecond }})
		work := openWork(bd)
		within(t, soon, "the outage is noticed", func() { work.ends(rma.ErrEndpointDown) })
		// New work is refused, or finds no route.
		require.ErrorIs(t, bd.ab.StartPut(rma.Key{}, 0, nil).Err(), rma.ErrEndpointDown)
		_, err := bd.a.Connect(context.Background(), bd.b.Address())
		require.ErrorIs(t, err, rma.ErrNoRoute)
		// Healed, a new endpoint is made.
		bd.heal()
		bd.connect()
		require.NoError(t, bd.ab.Flush(context.Background()))
	})
}

// A peer that falls silent while every socket stays open, as behind a black hole or without power: both ends tell their
// applications within OutageLimit and the time that it takes to notice, and a new epoch begins when it is back.
func TestPeerSilentEndsEverythingOnce(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{both: func(c *Config) { c.OutageLimit = 2 * time.Second }})
		back := bd.back()
		for _, c := range bd.cables {
			c.BlackHole(bothWays)
		}
		region := bd.b.register(t, 1<<20, rma.RemoteWrite)
		put := bd.ab.StartPut(region.Key(), 0, make([]byte, 1<<20))
		within(t, patience, "the silence is noticed at both ends", func() {
			<-bd.ab.Done()
			<-back.Done()
		})
		eventually(t, "the put is over", func() (bool, any) { return put.Finished(), nil })
		for _, err := range []error{put.Err(), bd.ab.Err(), back.Err()} {
			require.ErrorIs(t, err, rma.ErrEndpointDown)
		}
		for _, p := range []*peer{bd.a, bd.b} { // Done comes before the host hears of it
			eventually(t, "the host is told", func() (bool, any) { return len(p.downCauses()) > 0, nil })
			require.Len(t, p.downCauses(), 1)
		}
		bd.heal()
		bd.connect()
		require.NoError(t, bd.ab.Flush(context.Background()))
	})
}

// A peer that was restarted at its address: a new incarnation ends the epoch, and the next one works.
func TestPeerRestartedBeginsANewEpoch(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{})
		old := bd.b.register(t, 8, rma.RemoteWrite)
		work := openWork(bd)
		before := bd.b
		before.leave(t, time.Millisecond) // its goodbye reaches nobody
		next := bd.startB()
		bd.heal()
		work.ends(rma.ErrPeerRestarted)
		bd.b = next
		bd.connect()
		require.NotEqual(t, before.Incarnation(), next.Incarnation())
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.ErrorIs(t, bd.ab.Put(ctx, old.Key(), 0, []byte{1}), rma.ErrUnknownRegion)
		tk := startTalk(t, bd.a, next, talkSpec{targets: 2, pause: time.Millisecond})
		eventually(t, "messages flow to the new one", func() (bool, any) { return tk.total() > 10, tk.total() })
		tk.finish()
	})
}

// A peer that says goodbye: what it had taken is done, and the rest ends with the reason.
func TestPeerSaysGoodbye(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{})
		tk := startTalk(t, bd.b, bd.a, talkSpec{targets: 2})
		eventually(t, "messages flow", func() (bool, any) { return tk.total() > 50, tk.total() })
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.NoError(t, bd.b.Shutdown(ctx))
		within(t, soon, "the goodbye is heard", func() { <-bd.ab.Done() })
		require.ErrorIs(t, bd.ab.Err(), rma.ErrEndpointDown)
		require.ErrorIs(t, bd.ab.Err(), supervision.ErrGoodbye)
		tk.finish() // what the leaving node had accepted has arrived
		require.Empty(t, bd.b.undelivered())
		causes := bd.b.downCauses()
		require.Len(t, causes, 1)
		require.ErrorIs(t, causes[0], rma.ErrShutdown)
	})
}

// Two nodes that connect to each other at the same time end up with one session, and lose nothing.
func TestBothConnectAtOnce(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		for round := range 50 {
			ok := t.Run(fmt.Sprint("round", round), func(t *testing.T) { connectBoth(t, kind) })
			if !ok {
				return
			}
		}
	})
}

func connectBoth(t *testing.T, kind string) {
	g := newGround(t, kind, 2)
	b := launch(t, g, g.far)
	a := launch(t, g, g.near)
	begin := make(chan struct{})
	type result struct {
		e   *Endpoint
		err error
	}
	connect := func(from, to *peer) chan result {
		ch := make(chan result, 1)
		go func() {
			<-begin
			for i := range uint64(5) { // the first messages find no endpoint yet
				payload := make([]byte, leastStamp)
				stamp("first", i, payload)
				err := from.Route(to.Address()).TrySend(&Outgoing{Target: NewRef("first"), Type: NewRef(numberedType), Payload: payload})
				if err != nil {
					from.accuse(err)
				}
			}
			ctx, done := context.WithTimeout(context.Background(), patience)
			defer done()
			e, err := from.Connect(ctx, to.Address())
			ch <- result{e, err}
		}()
		return ch
	}
	ab, ba := connect(a, b), connect(b, a)
	close(begin)
	there, back := <-ab, <-ba
	require.NoError(t, errors.Join(there.err, back.err))
	eventually(t, "the first messages arrive", func() (bool, any) {
		return a.arrived("first") == 5 && b.arrived("first") == 5, []any{a.sizes(), b.sizes(), a.undelivered(), b.undelivered()}
	})
	require.Same(t, there.e, a.peer(b.Address()))
	require.Same(t, back.e, b.peer(a.Address()))
	session := func(e *Endpoint) string {
		e.mu.Lock()
		defer e.mu.Unlock()
		return fmt.Sprintf("%x", e.id)
	}
	require.Equal(t, session(there.e), session(back.e))
	require.Empty(t, a.downCauses())
	require.Empty(t, b.downCauses())
	region := a.register(t, 8, rma.RemoteWrite)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	require.NoError(t, back.e.Put(ctx, region.Key(), 0, []byte("12345678")))
	require.Equal(t, "12345678", string(region.Bytes()))
}
