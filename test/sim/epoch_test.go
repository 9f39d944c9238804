package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
)

func TestACrashBeginsANewEpoch(t *testing.T) {
	w, a, b := quietWorld(t)
	put := a.app.newWork(1, 100)
	require.NotNil(t, put)
	b.node.crash(false)
	old := b.app.home.areas[0].key
	b.node.restartIn(10 * time.Millisecond)
	require.True(t, w.Run(w.now+calmLimit, func() bool { w.calm = true; return w.done() && w.nodes[1].life == 2 }), w.left())
	next := w.pairs[0].end(0)
	require.NotSame(t, a, next)
	require.True(t, a.over)
	require.NotEqual(t, a.incarnation, next.incarnation)
	k := &work{app: next.app, kind: 1, id: 99, n: 10, order: 1, evil: rma.ErrUnknownRegion, data: make([]byte, 10)}
	k.op.Kind, k.op.Region, k.op.Token, k.op.Data = 1, old.Region(), old.Token(), k.data
	next.app.begin(k)
	require.True(t, w.Run(w.now+time.Second, func() bool { return k.completed }))
	require.ErrorIs(t, k.err, rma.ErrUnknownRegion, "a key of the earlier incarnation")
}

func TestABugOrAnOutageBeginsANewEpochBetweenTheSameNodes(t *testing.T) {
	w, a, b := quietWorld(t)
	a.close(errBug)
	w.calm = true
	require.True(t, w.Run(w.now+calmLimit, func() bool { return w.done() && a.over && b.over }), w.left())
	require.Equal(t, 1, w.nodes[0].life)
	require.Contains(t, broke(func() { w.pairs[0].end(0).closeCheck(errRestarted) }), "it is not")
	require.Contains(t, broke(func() { w.pairs[0].end(1).closeCheck(errReplaced) }), "its peer has not")
}

func TestEpochCheckersSee(t *testing.T) {
	w, a, b := quietWorld(t)
	twin := newEnd(a.node, a.us(), true)
	require.Contains(t, broke(func() { twin.agree(b, 1<<20, 1<<20) }), "lives there")
	a.ended = true
	require.Contains(t, broke(func() { twin.agree(b, 1<<20, 1<<20) }), "may still apply")

	// A message that has neither arrived nor come back, once both are gone.
	a.app.outbox.sent("t", sentMessage{id: 1, seq: 1, size: 100, kind: "k"})
	a.over, b.over = true, true
	require.Contains(t, broke(func() { arrivedCheck(a, b) }), "neither arrived nor been given up")

	// A byte of a put whose end is over, after its peer's was.
	area := b.app.home.areas[0]
	k := &work{app: a.app, kind: 1, id: 5, n: 100, slot: area.reserve(100, true, 5)}
	a.app.dangling = append(a.app.dangling, k)
	a.app.landed()
	require.Empty(t, a.app.dangling)
	copy(area.mem[k.slot.at:], pattern(5, 1))
	require.Contains(t, broke(w.nodes[1].memoryCheck), "no open put has a slot")
}

func TestAClockThatLeapsMakesWhatWaitsDue(t *testing.T) {
	w, a, _ := quietWorld(t)
	var at time.Duration
	before := a.node.clock()
	begun := w.now
	a.node.after(time.Minute, "test", func() { at = w.now })
	w.nodes = []*Node{a.node} // so that the dice have no choice
	for a.node.clock()-before < 2*time.Minute {
		w.jump()
	}
	w.Run(w.now+time.Second, nil)
	require.NotZero(t, at)
	require.Less(t, at-begun, time.Second)
}

func TestAWriteThatIsTornArrivesInPart(t *testing.T) {
	w, a, b := quietWorld(t)
	c := newConn(a.pair.paths[0])
	c.socks[a.side].out.tear = true
	n, err := c.socks[a.side].write([][]byte{make([]byte, 1000)})
	require.NoError(t, err)
	require.Positive(t, n)
	require.EqualValues(t, 1, w.Count.HalfFrames)
	w.Run(w.now+time.Second, nil)
	got, err := c.socks[b.side].read([2][]byte{make([]byte, 2000), nil}, 2000)
	require.NoError(t, err)
	require.Greater(t, n, got)
	require.Positive(t, got)
	_, err = c.socks[b.side].read([2][]byte{make([]byte, 2000), nil}, 2000)
	require.ErrorIs(t, err, errReset)
}

func TestWhatIsStuckComesOutAfterTheClose(t *testing.T) {
	w, a, b := quietWorld(t)
	c := newConn(a.pair.paths[0])
	s := c.socks[a.side]
	s.out.stuck = w.now + time.Second
	_, _ = s.write([][]byte{make([]byte, 100)})
	s.close(true)
	w.Run(w.now+900*time.Millisecond, nil)
	n, _ := c.socks[b.side].read([2][]byte{make([]byte, 2000), nil}, 2000)
	require.Zero(t, n)
	w.Run(w.now+time.Second, nil)
	n, _ = c.socks[b.side].read([2][]byte{make([]byte, 2000), nil}, 2000)
	require.NotZero(t, n)
}
