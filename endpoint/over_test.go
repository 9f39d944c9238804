package endpoint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/wire"
)

func TestGravesAreBoundedInNumberAndTime(t *testing.T) {
	id := func(n byte) (s [wire.SessionSize]byte) { s[0] = n; return s }
	g := graves{room: 3, keep: time.Second}
	require.False(t, g.holds(id(0)))
	for n := range byte(4) {
		g.bury(time.Duration(n), id(n))
	}
	require.False(t, g.holds(id(0)), "the oldest made room")
	for n := byte(1); n < 4; n++ {
		require.True(t, g.holds(id(n)))
	}
	g.bury(time.Second+3, id(9))
	require.False(t, g.holds(id(2)), "its time is over")
	require.True(t, g.holds(id(3)))
	require.True(t, g.holds(id(9)))
}
