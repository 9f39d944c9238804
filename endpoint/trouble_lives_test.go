package endpoint

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

// This file: a peer's lives one after the other, and what is still under way of those that are over.

// life is a caller's process with a session to open.
type life struct {
	c                    *caller
	session, incarnation []byte
	key                  []byte
}

func (c *caller) life(n byte) *life {
	l := &life{c: c, session: bytes.Repeat([]byte{n}, wire.SessionSize), incarnation: bytes.Repeat([]byte{n}, wire.NodeIDSize)}
	l.key = session.Key(c.secret, nil, l.session)
	return l
}

// join does a whole handshake with a first hello.
func (l *life) join(t testing.TB, g uint64) wire.RefusalCode {
	t.Helper()
	l.c.key = l.key
	_, a := l.c.join(t, func(h *wire.Hello) { h.Session, h.Incarnation, h.Generation = l.session, l.incarnation, g })
	return a.GetCode()
}

// ask says a first hello on a connection that was greeted, and gives the answer.
func (l *life) ask(t testing.TB, conn rail.Conn, ch *wire.Challenge) wire.RefusalCode {
	t.Helper()
	h := l.c.hello(ch)
	h.Session, h.Incarnation = l.session, l.incarnation
	h.Mac = session.HelloProof(l.key, ch, h)
	say(t, conn, wire.KindHello, h)
	a := &wire.Answer{}
	require.NoError(t, wire.ReadHandshake(conn, wire.KindAnswer, a))
	return a.GetCode()
}

// A peer whose connection stays open and silent, as that of a host that lost its power: its next life is turned away while the
// old one was heard of lately, and ends it afterwards. Nobody else would for as long as the kernel keeps the socket.
func TestASilentSessionGivesWayToTheNextLife(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		c := newCaller(bd)
		require.Equal(t, wire.RefusalCode_OK, c.life(10).join(t, 1))
		var old *Endpoint
		eventually(t, "the session is up", func() (bool, any) {
			old = bd.b.peer(c.node)
			return old != nil && len(old.Rails()) == 1 && old.Rails()[0].State == rail.Up, nil
		})
		next := c.life(11)
		require.Equal(t, wire.RefusalCode_OLD_SESSION_ALIVE, next.join(t, 1))
		require.NoError(t, old.Err())
		eventually(t, "the new life is taken", func() (bool, any) {
			return next.join(t, 1) == wire.RefusalCode_OK, old.Rails()
		})
		require.ErrorIs(t, old.Err(), rma.ErrPeerRestarted)
		require.Len(t, bd.b.downCauses(), 1)
	})
}

// A hello that a process said before it died, and that comes when its next life has agreed on a session: it ends nothing, though
// no rail of the new session is up yet.
func TestAHelloOfADeadProcessEndsNoSession(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		c := newCaller(bd)
		before, after := c.life(10), c.life(11)
		late := call(t, bd)
		old := challenged(t, late)
		fresh := call(t, bd)
		require.Equal(t, wire.RefusalCode_OK, after.ask(t, fresh, challenged(t, fresh)))
		e := bd.b.peer(c.node)
		require.Equal(t, wire.RefusalCode_BUSY, before.ask(t, late, old))
		require.NoError(t, e.Err())
		require.Same(t, e, bd.b.peer(c.node))
		require.Equal(t, wire.RefusalCode_OK, after.join(t, 3), "it goes on")
		// A life that is greeted now is a later one.
		eventually(t, "the third life is taken", func() (bool, any) {
			return c.life(12).join(t, 1) == wire.RefusalCode_OK, e.Rails()
		})
		require.ErrorIs(t, e.Err(), rma.ErrPeerRestarted)
	})
}

// A session that one end has given up is not opened again by an early hello of it: the other end may still live in it.
func TestAnEndedSessionIsNotOpenedAgain(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		c := newCaller(bd)
		l := c.life(10)
		require.Equal(t, wire.RefusalCode_OK, l.join(t, 1))
		bd.b.peer(c.node).end(rma.ErrEndpointDown)
		require.Equal(t, wire.RefusalCode_UNKNOWN_SESSION, l.join(t, 3))
		require.Nil(t, bd.b.peer(c.node))
		require.Equal(t, wire.RefusalCode_OK, c.life(11).join(t, 1))
	})
}

// What greets a dial of a session that was given up for the peer's own judges nothing: it may be the peer's old life.
func TestAGreetingOfAYieldedDialEndsNoSession(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{})
		back := bd.back()
		for _, c := range bd.cables {
			c.Cut()
		}
		eventually(t, "a is silent", func() (bool, any) {
			back.mu.Lock()
			defer back.mu.Unlock()
			return back.s.Silent(), nil
		})
		err := back.checkChallenge(&wire.Challenge{Version: wire.Version, Node: bd.a.Address(),
			Incarnation: bytes.Repeat([]byte{5}, wire.NodeIDSize)})
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.NotErrorIs(t, err, rma.ErrPeerRestarted)
		bd.heal()
		bd.allUp()
		bd.nobodyDown()
	})
}
