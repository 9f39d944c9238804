package session

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

// A read call that was open when the session ended may still bring frames. Nobody will acknowledge them: they are applied as
// little as what comes after.
func TestWhatAnOpenReadBringsAfterTheEndIsNotApplied(t *testing.T) {
	h := newHandTable(t, 0, 1)
	near, far := h.gens[0][0], h.gens[0][1]
	require.NoError(t, h.s[0].Send(h.now, &Message{Target: h.s[0].Intern("target"), Type: h.s[0].Intern("type"), Payload: []byte("late")}))
	var plan rma.Gather
	require.True(t, near.Fill(h.now, &plan))
	bytes := slices.Concat(plan.Bufs...)
	require.NoError(t, near.Wrote(h.now, &plan, len(bytes)))

	applied := far.applied
	var sc rma.Scatter
	require.NoError(t, far.Want(h.now, &sc))
	n := copy(sc.First, bytes)
	require.Equal(t, len(bytes), n)
	h.s[1].Close(h.now, errors.New("over"))
	require.False(t, far.quiet, "a call is open")
	deliveries, err := far.Got(h.now, &sc, n)
	require.NoError(t, err)
	require.Empty(t, deliveries)
	require.Equal(t, applied, far.applied)
	require.True(t, far.quiet)
	require.ErrorIs(t, far.Want(h.now, &sc), ErrFenced)
}

// A Cancel goes out on every lane, and is said again: a copy may come when its operation is long over, and the target keeps as
// much as it may of others.
func TestALateCancelNeedsNoRoom(t *testing.T) {
	h := newHandTable(t, 0, 2)
	s, g := h.s[1], h.gens[0][1]
	s.cfg.PeerMaxOpen = 1
	ahead := func(op wire.OpID) wire.Cancel {
		return wire.Cancel{Op: op, Marks: []wire.Mark{{Rail: 1, Generation: 3, Frame: 100}}}
	}
	require.NoError(t, g.cancelIn(ahead(1)))
	require.NoError(t, g.cancelIn(wire.Cancel{Op: 2, Marks: []wire.Mark{{Rail: 0, Generation: 3, Frame: g.applied}}}))
	require.NoError(t, g.cancelIn(ahead(1)))
	require.Len(t, s.tombs, 1)
	require.ErrorIs(t, g.cancelIn(ahead(3)), ErrProtocol)
}
