package railtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
)

var failureTests = []contractTest{
	{"an error of the link", testLinkErrors},
	{"a panic of the link", testLinkPanics},
	{"an empty plan", testEmptyPlans},
}

var endTests = []contractTest{
	{"the peer ends", testPeerEnds},
	{"the peer ends while the writer waits for room", testPeerEndsFull},
	{"Kill tells nobody here", testKillIsSilent},
	{"Kill inside each call of the link", testKillInside},
	{"Kill inside lost", testKillInsideLost},
	{"Kill before Run", testKillBeforeRun},
	{"Kill from many at once", testKillMany},
	{"Kill while the link is busy", testKillBusyLink},
	{"Kill ends a handshake", testKillHandshake},
	{"Close while the writer waits for room", testCloseFull},
	{"Close waits for WriteNow", testCloseWaits},
}

var dialTests = []contractTest{
	{"to nowhere", testDialNowhere},
	{"with a context that has ended", testDialCanceled},
	{"an address in use", testAddressInUse},
	{"Close ends Accept", testCloseListener},
}

var errBoom = errors.New("the link has had enough")

// failAt makes a hook that does something at the third call of that name, and counts the calls of its half after that.
func failAt(call string, act func() error) (hook func(string) error, later *atomic.Int32) {
	var seen atomic.Int32
	later = new(atomic.Int32)
	half := map[string]string{callFill: callWrote, callWrote: callFill, callWant: callGot, callGot: callWant}
	return func(name string) error {
		if seen.Load() >= 3 && (name == call || name == half[call]) {
			later.Add(1)
		}
		if name == call && seen.Add(1) == 3 {
			return act()
		}
		return nil
	}, later
}

// exercise makes each of a link's four calls happen more than three times, by the writer goroutine or inline.
func (p *peers) exercise(inline bool) {
	for range 8 {
		p.nearLink.produce(p.near, 1000, inline)
		p.farLink.produce(p.far, 1000, inline)
	}
}

// eachCall runs a test for each call of a link and each way to write.
func eachCall(t *testing.T, calls []string, run func(t *testing.T, call string, inline bool)) {
	for _, call := range calls {
		for _, inline := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inline %v", call, inline), func(t *testing.T) { run(t, call, inline) })
		}
	}
}

func testLinkErrors(t *testing.T, f Fixture) {
	eachCall(t, []string{callWrote, callWant, callGot}, func(t *testing.T, call string, inline bool) {
		p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: 100})
		hook, later := failAt(call, func() error { return errBoom })
		p.nearLink.hook = hook
		p.run()
		p.exercise(inline)
		require.ErrorIs(t, p.nearEnd.cause(t), errBoom)
		assert.True(t, isEnd(p.farEnd.cause(t)), "the peer learns that the stream has ended")
		p.settle(t, 1, 1)
		assert.Zero(t, later.Load(), "calls after the error")
	})
}

func testLinkPanics(t *testing.T, f Fixture) {
	calls := []string{callFill, callWrote, callWant, callGot}
	eachCall(t, calls, func(t *testing.T, call string, inline bool) {
		p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: 100})
		hook, later := failAt(call, func() error { panic(errBoom) })
		p.nearLink.hook = hook
		p.run()
		p.exercise(inline)
		err := p.nearEnd.cause(t)
		var panicked *rail.PanicError
		require.ErrorAs(t, err, &panicked)
		require.ErrorIs(t, err, errBoom)
		assert.NotEmpty(t, panicked.Stack)
		assert.True(t, isEnd(p.farEnd.cause(t)), "the peer learns that the stream has ended")
		p.settle(t, 1, 1)
		assert.Zero(t, later.Load(), "calls after the panic")
	})
}

func testEmptyPlans(t *testing.T, f Fixture) {
	for _, call := range []string{callFill, callWant} {
		near, far := f.connect(t)
		link, end := newScriptLink(piece{buf: []byte("some")}), newEnding()
		link.empty = call
		far.Run(newScriptLink(), newEnding().lost)
		near.Run(link, end.lost)
		near.Kick()
		require.Error(t, end.cause(t))
		closeSoon(t, near)
		assert.EqualValues(t, 1, end.calls.Load(), call)
	}
}

func testPeerEnds(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.run()
	p.nearLink.produce(p.near, 5000, false)
	receive(t, p.farLink, 5000)
	p.near.Kill()
	require.True(t, isEnd(p.farEnd.cause(t)))
	p.settle(t, 0, 1)
	assert.EqualValues(t, 5000, p.farLink.received.Load())
}

// fill writes until the connection's peer, which does not read, has no more room.
func fill(t *testing.T, c rail.Conn, l *streamLink) {
	t.Helper()
	l.produce(c, 64<<20, false)
	var last uint64
	require.Eventually(t, func() bool {
		l.tokenMu.Lock()
		defer l.tokenMu.Unlock()
		stuck := l.sent > 0 && l.sent == last
		last = l.sent
		return stuck
	}, patience, 50*time.Millisecond)
}

func testPeerEndsFull(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.near.Run(p.nearLink, p.nearEnd.lost)
	fill(t, p.near, p.nearLink)
	p.far.Kill()
	require.True(t, isEnd(p.nearEnd.cause(t)))
	p.settle(t, 1, 0)
}

func testKillIsSilent(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.run()
	p.exercise(false)
	p.near.Kill()
	p.near.Kill()
	_ = p.farEnd.cause(t)
	p.settle(t, 0, 1)
}

func testKillInside(t *testing.T, f Fixture) {
	calls := []string{callFill, callWrote, callWant, callGot}
	eachCall(t, calls, func(t *testing.T, call string, inline bool) {
		p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: 100})
		killed := make(chan struct{})
		p.nearLink.hook, _ = failAt(call, func() error {
			defer close(killed)
			p.near.Kill()
			return nil
		})
		p.run()
		p.exercise(inline)
		soon(t, "Kill", func() { <-killed })
		assert.True(t, isEnd(p.farEnd.cause(t)))
		p.settle(t, 0, 1)
	})
}

func testKillInsideLost(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.near.Run(p.nearLink, func(err error) {
		p.near.Kill()
		p.nearEnd.lost(err)
	})
	p.far.Kill()
	require.True(t, isEnd(p.nearEnd.cause(t)))
	p.settle(t, 1, 0)
}

func testKillBeforeRun(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.near.Kill()
	p.nearLink.silent.Store(true)
	p.run()
	p.nearLink.produce(p.near, 10, true)
	p.nearLink.produce(p.near, 10, false)
	require.True(t, isEnd(p.farEnd.cause(t)))
	p.settle(t, 0, 1)
}

func testKillMany(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.run()
	together(16, func(i int) {
		switch i % 4 {
		case 0:
			p.near.Kill()
		case 1:
			p.near.Close()
		case 2:
			p.nearLink.produce(p.near, 10000, true)
		case 3:
			p.farLink.produce(p.far, 10000, true)
		}
	})
	_ = p.farEnd.cause(t)
	p.settle(t, 0, 1)
}

// testKillBusyLink kills while both halves are inside the link and stay there: Kill must not wait for them, and the
// peer must learn of it all the same.
func testKillBusyLink(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	busy, free := make(chan struct{}, 2), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	p.nearLink.hook = func(call string) error {
		if call == callGot || call == callFill {
			busy <- struct{}{}
			<-free
		}
		return nil
	}
	p.run()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		p.nearLink.produce(p.near, 10, true)
	}()
	for range 2 {
		soon(t, "a call of the link", func() { <-busy })
	}
	soon(t, "Kill", p.near.Kill)
	assert.True(t, isEnd(p.farEnd.cause(t)), "the peer learns of it although calls are in progress")
	release()
	soon(t, "WriteNow", func() { <-wrote })
	p.settle(t, 0, 1)
}

func testKillHandshake(t *testing.T, f Fixture) {
	near, far := f.connect(t)
	failed := make(chan error, 2)
	for _, c := range []rail.Conn{near, far} {
		go func() {
			_, err := c.Read(make([]byte, 1))
			failed <- err
		}()
	}
	near.Kill()
	for range 2 {
		select {
		case err := <-failed:
			require.Error(t, err)
		case <-time.After(patience):
			require.FailNow(t, "Kill did not end the reads of the handshake")
		}
	}
	closeSoon(t, near)
	_, err := near.Write([]byte("late"))
	require.Error(t, err)
}

func testCloseFull(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.near.Run(p.nearLink, p.nearEnd.lost)
	fill(t, p.near, p.nearLink)
	p.settle(t, 0, 0)
}

func testCloseWaits(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	inside, free := make(chan struct{}), make(chan struct{})
	p.nearLink.hook = func(call string) error {
		if call == callFill {
			close(inside)
			<-free
		}
		return nil
	}
	p.run()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		p.nearLink.produce(p.near, 10, true)
	}()
	soon(t, "Fill", func() { <-inside })
	var returned atomic.Bool
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.near.Close()
		returned.Store(true)
	}()
	_ = p.farEnd.cause(t) // so Close has begun
	assert.False(t, returned.Load(), "Close returned while WriteNow was inside the link")
	close(free)
	soon(t, "Close", func() { <-closed })
	soon(t, "WriteNow", func() { <-wrote })
	p.settle(t, 0, 1)
}

func testDialNowhere(t *testing.T, f Fixture) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := f.Kind.Dial(ctx, f.Local, f.Nowhere)
	require.Error(t, err)
	require.ErrorContains(t, err, f.Nowhere)
	require.NoError(t, ctx.Err(), "the dial took as long as it was allowed to")
}

func testDialCanceled(t *testing.T, f Fixture) {
	l := f.listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	soon(t, "Dial", func() {
		_, err := f.Kind.Dial(ctx, f.Local, l.Addr())
		assert.Error(t, err)
		assert.ErrorContains(t, err, l.Addr())
	})
}

func testAddressInUse(t *testing.T, f Fixture) {
	l := f.listen(t)
	taken := rail.Binding{Kind: f.Kind.Name(), Address: l.Addr()}
	_, err := f.Kind.Listen(t.Context(), taken)
	require.Error(t, err)
	require.ErrorContains(t, err, l.Addr())
	require.NoError(t, l.Close())
	again, err := f.Kind.Listen(t.Context(), taken)
	require.NoError(t, err, "the address is free after Close")
	require.NoError(t, again.Close())
}

func testCloseListener(t *testing.T, f Fixture) {
	l := f.listen(t)
	failed := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		failed <- err
	}()
	require.NoError(t, l.Close())
	select {
	case err := <-failed:
		require.ErrorIs(t, err, net.ErrClosed)
	case <-time.After(patience):
		require.FailNow(t, "Close did not end Accept")
	}
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
