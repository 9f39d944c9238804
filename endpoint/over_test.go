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
	holds := func(n byte) bool {
		key, ok := g.find(id(n))
		require.Equal(t, ok, len(key) == 1 && key[0] == n, "the key is its own")
		return ok
	}
	require.False(t, holds(1))
	for n := byte(1); n < 5; n++ {
		g.bury(time.Duration(n), id(n), []byte{n})
	}
	require.False(t, holds(1), "the oldest made room")
	for n := byte(2); n < 5; n++ {
		require.True(t, holds(n))
	}
	g.bury(time.Second+4, id(9), []byte{9})
	require.False(t, holds(3), "its time is over")
	require.True(t, holds(4))
	require.True(t, holds(9))
}
