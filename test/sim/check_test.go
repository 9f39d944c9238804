package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rma"
	"railyard/wire"
)

// quietWorld is two nodes and one rail on which nothing goes wrong.
func quietWorld(t *testing.T) (*World, *End, *End) {
	t.Helper()
	opt := OptionsOf(1)
	opt.Nodes, opt.Lanes, opt.Faults = 2, 1, Faults{}
	opt.Load = Load{Every: time.Hour, Burst: 1, Messages: 1, Regions: 1, RegionSize: 4096, Targets: 1}
	opt.JoinCut, opt.JoinHole, opt.Hasty, opt.LateFx, opt.BothOpen = 0, 0, false, 0, 0
	opt.Ending, opt.OutageLimit, opt.Verbs = Peace, outageLimit, 0
	w := NewWorld(opt)
	w.build()
	w.Run(200*time.Millisecond, nil)
	a := w.pairs[0].end(0)
	require.NotNil(t, a.rails[0].carrier, "the rail is up")
	return w, a, a.peer
}

// broke gives what fn violates; empty: nothing.
func broke(fn func()) (text string) {
	defer func() {
		if v, ok := recover().(violation); ok {
			text = v.text
		}
	}()
	fn()
	return ""
}

func TestMessageCheckerSees(t *testing.T) {
	_, a, _ := quietWorld(t)
	deliver := func(id, seq uint64, n int) func() {
		return func() {
			a.app.outbox.delivered(&session.Delivery{Target: a.s.Intern("t"), Type: a.s.Intern("k"),
				Payload: messageBytes(id, seq, n)})
		}
	}
	send := func(id, seq uint64) {
		a.app.outbox.sent("t", sentMessage{id: id, seq: seq, size: 100, kind: "k"})
	}
	send(1, 1)
	send(2, 2)
	send(3, 3)
	require.Empty(t, broke(deliver(1, 1, 100)))
	require.Contains(t, broke(deliver(1, 1, 100)), "came where 2 was due", "a message twice")
	require.Contains(t, broke(deliver(3, 3, 100)), "came where 2 was due", "a message lost")
	require.Contains(t, broke(deliver(2, 2, 99)), "other bytes", "a message cut off")
	require.Empty(t, broke(deliver(2, 2, 100)))
	require.Empty(t, broke(deliver(3, 3, 100)))
	require.Contains(t, broke(deliver(3, 3, 100)), "never sent", "the last one twice")
}

func TestMessageCheckerAtTheEnd(t *testing.T) {
	_, a, _ := quietWorld(t)
	out, large := a.app.outbox, wire.MaxInline+1
	over := func() string { return broke(out.overCheck) }
	arrive := func(id, seq uint64, size int) {
		require.Empty(t, broke(func() {
			out.delivered(&session.Delivery{Target: a.s.Intern("t"), Type: a.s.Intern("k"), Payload: messageBytes(id, seq, size)})
		}))
	}
	for i, size := range []int{large, 100, large, 100} {
		out.sent("t", sentMessage{id: uint64(i + 1), seq: uint64(i + 1), size: size, kind: "k"})
	}
	arrive(1, 1, large)
	require.Contains(t, over(), "message 2 to t has neither arrived")
	out.lost[1] = true
	require.Empty(t, over(), "its receiver was still at the large one before it")
	out.lost[1] = false
	arrive(2, 2, 100)
	require.Contains(t, over(), "message 3 to t has neither arrived")
	out.lost[3] = true
	require.Empty(t, over(), "it is behind a large one that never became whole")
}

func TestMemoryCheckerSees(t *testing.T) {
	w, a, _ := quietWorld(t)
	fresh := func() (*area, *slot) {
		r := newArea(a.node, rma.RemoteWrite|rma.RemoteRead, 4096)
		s := r.reserve(100, true, 7)
		copy(s.mem(), pattern(7, 50))
		return r, s
	}
	r, s := fresh()
	require.Empty(t, broke(func() { r.check("now") }), "a put that has half landed")
	require.Contains(t, broke(func() { s.over("it", true) }), "not all of its bytes")

	r, s = fresh()
	require.Empty(t, broke(func() { s.over("it", false) }), "canceled half way")
	copy(r.mem[s.at:], pattern(7, 1))
	require.Contains(t, broke(func() { r.check("now") }), "no open put has a slot", "one byte after the end")

	_, s = fresh()
	s.mem()[60] ^= 1
	require.Contains(t, broke(func() { s.over("it", false) }), "neither", "a foreign byte")

	r, s = fresh()
	r.revoke()
	require.Empty(t, broke(func() { s.over("it", false) }))
	r.mem[s.at+70] ^= 1
	require.Contains(t, broke(func() { r.check("now") }), "no open put has a slot", "a byte after the revoke")

	_, s = fresh()
	copy(s.mem(), pattern(7, 100))
	s.area.revoke()
	require.Empty(t, broke(func() { s.over("it", true) }), "all had landed before the revoke")

	require.Contains(t, broke(func() { w.look(graveBuffer{[]byte{poison, 0}, "a get"}) }), "after its end")
}

func TestOperationCheckerSees(t *testing.T) {
	_, a, b := quietWorld(t)
	fresh := func() *work {
		r := b.app.home.areas[0]
		return &work{app: a.app, kind: session.Put, area: r, region: r.key.Region(), notify: true,
			op: session.Op{Notify: &session.Message{}}}
	}
	k := fresh()
	require.Empty(t, broke(func() { k.outcome(nil) }))
	require.Contains(t, broke(func() { k.outcome(nil) }), "twice")
	require.Contains(t, broke(k.notifyCheck), "has not come")
	k.notified = 1
	require.Empty(t, broke(k.notifyCheck))
	require.Contains(t, broke(k.arrived), "notified twice")

	require.Contains(t, broke(func() { fresh().outcome(rma.ErrCanceled) }), "nobody canceled")
	require.Contains(t, broke(func() { fresh().outcome(rma.ErrRevoked) }), "was not")
	require.Contains(t, broke(func() { fresh().outcome(rma.ErrOutcomeUnknown) }), "nobody abandoned")
	require.Contains(t, broke(func() { fresh().outcome(rma.ErrEndpointDown) }), "ended with")

	k = fresh()
	k.evil = rma.ErrBounds
	require.Contains(t, broke(func() { k.outcome(nil) }), "had to be refused")

	k = fresh()
	k.canceled, k.err, k.completed = true, rma.ErrCanceled, true
	require.Contains(t, broke(k.arrived), "notified though")
	require.Contains(t, broke(k.notifyCheck), "was notified")

	k = fresh()
	k.slot = b.app.home.areas[0].reserve(10, true, 3)
	require.Contains(t, broke(k.arrived), "before all of its bytes")

	first, second := fresh(), fresh()
	first.order, second.order, second.op.Fence = 1, 2, true
	a.app.open = []*work{first, second}
	require.Contains(t, broke(func() { a.app.orderCheck(second) }), "had to wait for")
	a.app.open = nil
	a.app.outbox.sent("t", sentMessage{id: 77, seq: 1, after: 2})
	require.Empty(t, broke(func() { a.app.orderCheck(second) }), "it was sent behind")
	a.app.outbox.sent("u", sentMessage{id: 78, seq: 1, after: 1})
	require.Contains(t, broke(func() { a.app.orderCheck(second) }), "before message 1 to u arrived")
}

func TestLivesCheckerSees(t *testing.T) {
	_, a, b := quietWorld(t)
	g := a.rails[0].carrier.gen
	require.Contains(t, broke(func() { a.epoch.lives.settled(a, g) }), "may still apply")
	require.Contains(t, broke(func() { a.epoch.lives.attached(a, g) }), "twice")

	lane := b.s.Lane(0)
	late := lane.Attach(b.now(), g.ID+2, b.rails[0].carrier)
	a.epoch.lives.of(late).settled[a.side] = true
	require.Contains(t, broke(func() { b.epoch.lives.attached(b, late) }), "has settled")
	require.Contains(t, broke(func() { b.epoch.lives.up(b, late) }), "before")
}

func TestEndCheckersSee(t *testing.T) {
	w, a, _ := quietWorld(t)
	require.True(t, w.done())
	require.Empty(t, broke(a.boundsCheck))
	a.app.flush()
	require.True(t, w.done(), "a flush with nothing before it is over at once")

	op := &session.Op{Kind: session.Put, Data: make([]byte, 10)}
	a.s.Start(a.now(), op)
	require.False(t, w.done())
	require.Contains(t, broke(a.boundsCheck), "keeps something")

	a.app.unconsumed = a.s.Config().Window + 1
	require.Contains(t, broke(a.app.windowCheck), "its window is")
}

// TestPathsDoWhatTheySay: the faults are real, or the checkers would have nothing to see.
func TestPathsDoWhatTheySay(t *testing.T) {
	open := func() (*World, *Path, *conn) {
		opt := OptionsOf(1)
		opt.ShortWrites, opt.Swallow, opt.MinBuffer, opt.MaxBuffer = 0, 0, 1000, 1000
		w := NewWorld(opt)
		p := newPath(w, "p")
		return w, p, newConn(p)
	}
	read := func(s *sock) (int, error) { return s.read([2][]byte{make([]byte, 5000), nil}, 5000) }
	hello := [][]byte{make([]byte, 600), make([]byte, 600)}

	t.Run("bytes arrive, as many as there is room for", func(t *testing.T) {
		w, _, c := open()
		n, err := c.socks[0].write(hello)
		require.NoError(t, err)
		require.Equal(t, 1000, n)
		n, _ = c.socks[0].write(hello)
		require.Zero(t, n)
		w.Run(time.Second, nil)
		n, err = read(c.socks[1])
		require.NoError(t, err)
		require.Equal(t, 1000, n)
		n, _ = c.socks[0].write(hello)
		require.Equal(t, 1000, n)
	})
	t.Run("a black hole holds them until it heals", func(t *testing.T) {
		w, p, c := open()
		p.dir[0].blocked = true
		_, _ = c.socks[0].write(hello)
		w.Run(time.Second, nil)
		n, err := read(c.socks[1])
		require.NoError(t, err)
		require.Zero(t, n)
		p.heal()
		w.Run(2*time.Second, nil)
		n, _ = read(c.socks[1])
		require.Equal(t, 1000, n)
	})
	t.Run("a zombie's bytes arrive after its close, and nobody else's", func(t *testing.T) {
		for _, zombie := range []bool{false, true} {
			w, p, c := open()
			p.dir[0].blocked = true
			_, _ = c.socks[0].write(hello)
			c.socks[0].close(zombie)
			p.heal()
			w.Run(time.Second, nil)
			n, err := read(c.socks[1])
			if zombie {
				require.Equal(t, 1000, n)
				_, err = read(c.socks[1])
			} else {
				require.Zero(t, n)
			}
			require.ErrorIs(t, err, errReset)
		}
	})
	t.Run("a reset that only one end hears", func(t *testing.T) {
		w, _, c := open()
		c.cut([2]bool{true, false})
		w.Run(time.Second, nil)
		_, err := c.socks[0].write(hello)
		require.ErrorIs(t, err, errReset)
		_, err = c.socks[1].write(hello)
		require.NoError(t, err)
	})
}
