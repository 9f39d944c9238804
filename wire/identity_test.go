package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNextGenerationIsTheLeastAbove(t *testing.T) {
	tests := []struct {
		g      Generation
		dialer bool
		want   Generation
	}{
		{0, true, 1}, {0, false, 2}, {1, true, 3}, {1, false, 2}, {2, true, 3}, {2, false, 4},
		{math.MaxUint64 - 2, false, math.MaxUint64 - 1},
		{math.MaxUint64 - 1, true, math.MaxUint64},
		{math.MaxUint64 - 1, false, 0}, {math.MaxUint64, true, 0}, {math.MaxUint64, false, 0},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, tt.g.Next(tt.dialer), "after %d, dialer %v", tt.g, tt.dialer)
	}
	rapid.Check(t, func(t *rapid.T) {
		g := Generation(rapid.Uint64Max(math.MaxUint64-2).Draw(t, "g"))
		dialer := rapid.Bool().Draw(t, "dialer")
		next := g.Next(dialer)
		assert.Equal(t, dialer, next.Dialer())
		assert.Greater(t, next, g)
		assert.LessOrEqual(t, next-g, Generation(2))
	})
}

func TestNodeID(t *testing.T) {
	id := NodeID{0xab, 0xcd, 0xef, 0x01, 0xff}
	assert.Equal(t, "abcdef01", id.String())
	got, err := ParseNodeID(id[:])
	require.NoError(t, err)
	assert.Equal(t, id, got)
	for _, n := range []int{0, 15, 17} {
		_, err := ParseNodeID(make([]byte, n))
		assert.ErrorIs(t, err, ErrMalformed)
	}
}

func TestTokenNeverShows(t *testing.T) {
	secret := Token{0: 0xde, 1: 0xad, 15: 0xbe}
	f := Chunk{Op: 1, Token: secret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%d", "%s", "%q"} {
		for _, v := range []any{secret, &secret, f, &f} {
			s := fmt.Sprintf(verb, v)
			assert.Contains(t, s, "****", "%s of %T", verb, v)
			assert.NotRegexp(t, "222|0xde|dead", s, "%s of %T", verb, v)
		}
	}
	b, err := json.Marshal(f)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "222")
	assert.Equal(t, "****", secret.String())
}
