package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/rma"
)

// What a connection that broke off had planned goes over the other lane, whether or not the peer has had it, and lands once.
func TestBreakOffInsideAWrite(t *testing.T) {
	for _, written := range []bool{false, true} {
		h := newHandTable(t, 0, 2)
		op := &Op{Kind: Put, Region: h.region.Key().Region(), Token: h.region.Key().Token(), Data: make([]byte, 100)}
		for i := range op.Data {
			op.Data[i] = byte(i + 1)
		}
		h.s[0].Start(h.now, op)
		h.carryOut(0)
		var g *Generation
		var plan rma.Gather
		for _, pair := range h.gens {
			if pair[0].token && pair[0].Fill(h.now, &plan) {
				g = pair[0]
				if written {
					var all []byte
					for _, b := range plan.Bufs {
						all = append(all, b...)
					}
					h.arrive(pair[1], all)
				}
				break
			}
		}
		require.NotNil(t, g)
		g.BreakOff(h.now, ErrFenced)
		require.True(t, g.IsQuiet())
		require.Empty(t, h.ends[op], "the peer has not said what it had")
		h.settle()
		require.Equal(t, []error{nil}, h.ends[op])
		require.Equal(t, op.Data, h.region.Bytes()[:100])
		require.Zero(t, op.pins)
		g.BreakOff(h.now, ErrFenced) // twice is nothing
	}
}

// A read call that nobody ends does not hold up the generation, nor the operation whose memory it was for.
func TestBreakOffInsideARead(t *testing.T) {
	h := newHandTable(t, 0, 2)
	g := h.gens[0][0]
	var in rma.Scatter
	require.NoError(t, g.Want(h.now, &in))
	h.s[0].Lost(h.now, g, ErrFenced)
	require.False(t, g.IsQuiet())
	g.BreakOff(h.now, ErrFenced)
	require.True(t, g.IsQuiet())
	h.settle()
	require.False(t, h.s[0].Open())
}
