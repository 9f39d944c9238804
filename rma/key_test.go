package rma_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

func secretKey() rma.Key {
	return rma.NewKey(rma.KeyConfig{
		Region: 7, Token: wire.Token([]byte("SECRETsecret1234")), Len: 4096, Rights: rma.RemoteWrite,
	})
}

// mustNotLeak fails if text holds the token in any of the forms in which fmt could show it.
func mustNotLeak(t *testing.T, text string) {
	t.Helper()
	token := secretKey().Token()
	forms := []string{
		string(token[:]), string(token[:6]),
		hex.EncodeToString(token[:4]), fmt.Sprintf("%X", token[:4]),
		fmt.Sprint(token[0], token[1], token[2]), // decimal, in a list
		fmt.Sprintf("%#x, %#x", token[0], token[1]),
	}
	for _, form := range forms {
		assert.NotContains(t, text, form)
	}
}

func TestKeySurvivesMarshaling(t *testing.T) {
	key := secretKey()
	b, err := key.MarshalBinary()
	require.NoError(t, err)
	require.Len(t, b, rma.KeySize)

	var got rma.Key
	require.NoError(t, got.UnmarshalBinary(b))
	assert.True(t, got.Equal(key))
	assert.Equal(t, uint64(7), got.Region())
	assert.Equal(t, uint64(4096), got.Len())
	assert.Equal(t, rma.RemoteWrite, got.Rights())
	assert.True(t, got.Token() == key.Token())
}

func TestKeyThatOpensNothingCannotBeHandedOver(t *testing.T) {
	for name, key := range map[string]rma.Key{
		"zero":           {},
		"no bytes":       rma.NewKey(rma.KeyConfig{Region: 1, Rights: rma.RemoteRead}),
		"no rights":      rma.NewKey(rma.KeyConfig{Region: 1, Len: 1}),
		"unknown rights": rma.NewKey(rma.KeyConfig{Region: 1, Len: 1, Rights: 8}),
	} {
		_, err := key.MarshalBinary()
		assert.Error(t, err, name)
	}
	assert.True(t, rma.Key{}.IsZero())
	assert.False(t, secretKey().IsZero())
}

// fixSum makes the checksum of a changed key right again, so that the check behind it is reached.
func fixSum(b []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Update(0, table, b[:4]), table, b[8:])
	binary.BigEndian.PutUint32(b[4:], sum)
}

func TestKeyUnmarshalRefuses(t *testing.T) {
	good, err := secretKey().MarshalBinary()
	require.NoError(t, err)
	fixed := func(change func(b []byte)) []byte {
		b := bytes.Clone(good)
		change(b)
		fixSum(b)
		return b
	}
	cases := []struct {
		name string
		b    []byte
		says string
	}{
		{"nothing", nil, "40 bytes"},
		{"short", good[:rma.KeySize-1], "not 39"},
		{"long", append(bytes.Clone(good), 0), "not 41"},
		{"version", fixed(func(b []byte) { b[0] = 2 }), "version 2"},
		{"no rights", fixed(func(b []byte) { b[1] = 0 }), "none"},
		{"unknown rights", fixed(func(b []byte) { b[1] = 4 }), "rights(4)"},
		{"reserved", fixed(func(b []byte) { b[2] = 1 }), "reserved"},
		{"no length", fixed(func(b []byte) { clear(b[16:24]) }), "no bytes"},
	}
	seen := map[string]string{}
	for _, c := range cases {
		key := secretKey()
		err := key.UnmarshalBinary(c.b)
		require.ErrorIs(t, err, rma.ErrMalformed, c.name)
		assert.Contains(t, err.Error(), c.says, c.name)
		assert.True(t, key.Equal(secretKey()), "%s: the key has changed", c.name)
		assert.Empty(t, seen[err.Error()], "%s and another share a message", c.name)
		seen[err.Error()] = c.name
	}
}

func TestKeyUnmarshalNoticesEveryFlippedBit(t *testing.T) {
	good, err := secretKey().MarshalBinary()
	require.NoError(t, err)
	for bit := range len(good) * 8 {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		var key rma.Key
		require.ErrorIs(t, key.UnmarshalBinary(b), rma.ErrMalformed, "bit %d", bit)
	}
}

func TestKeyEqualLooksAtEverything(t *testing.T) {
	c := rma.KeyConfig{Region: 1, Token: wire.Token{1}, Len: 2, Rights: rma.RemoteRead}
	base := rma.NewKey(c)
	require.True(t, base.Equal(rma.NewKey(c)))
	for name, change := range map[string]func(c *rma.KeyConfig){
		"region": func(c *rma.KeyConfig) { c.Region++ },
		"token":  func(c *rma.KeyConfig) { c.Token[15]++ },
		"length": func(c *rma.KeyConfig) { c.Len++ },
		"rights": func(c *rma.KeyConfig) { c.Rights = rma.RemoteWrite },
	} {
		other := c
		change(&other)
		assert.False(t, base.Equal(rma.NewKey(other)), name)
	}
}

func TestNoFormatShowsTheToken(t *testing.T) {
	key := secretKey()
	op := rma.NewOp(rma.OpConfig{Key: key, Data: []byte("SECRETsecret1234")})
	table := rma.NewTable(bytes.NewReader([]byte("SECRETsecret1234")), 1)
	region, err := table.Register(make([]byte, 4), rma.RemoteWrite)
	require.NoError(t, err)
	require.True(t, region.Key().Token() == key.Token())

	claim := rma.Claim{Region: 7, Token: key.Token()}
	type wrapper struct{ Key rma.Key }
	shown := []any{
		key, &key, wrapper{key}, []rma.Key{key}, op, region, claim,
		rma.Put{Key: key, Data: []byte("SECRETsecret1234")},
		&rma.Get{Key: key, Dst: []byte("SECRETsecret1234")},
		rma.KeyConfig{Token: key.Token()},
	}
	for _, v := range shown {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			mustNotLeak(t, fmt.Sprintf(verb, v))
		}
	}
	mustNotLeak(t, errors.Join(fmt.Errorf("with %v", key)).Error())
	encoded, err := json.Marshal(map[string]any{"key": key})
	require.NoError(t, err)
	mustNotLeak(t, string(encoded))
	_, err = rma.NewKey(rma.KeyConfig{Token: key.Token()}).MarshalBinary()
	mustNotLeak(t, err.Error())
}

func TestKeyFingerprintTellsKeysApart(t *testing.T) {
	a := rma.NewKey(rma.KeyConfig{Region: 1, Token: wire.Token{1}, Len: 1, Rights: rma.RemoteRead})
	b := rma.NewKey(rma.KeyConfig{Region: 1, Token: wire.Token{2}, Len: 1, Rights: rma.RemoteRead})
	assert.NotEqual(t, a.String(), b.String())
	assert.Equal(t, a.String(), fmt.Sprintf("%v", a))
	assert.Equal(t, a.String(), a.GoString())
	assert.Contains(t, a.String(), "region 1, 1 bytes, read")
}

func TestRightsNames(t *testing.T) {
	names := map[rma.Rights]string{
		0: "none", rma.RemoteWrite: "write", rma.RemoteRead: "read",
		rma.RemoteWrite | rma.RemoteRead: "read+write", 12: "rights(12)",
	}
	for r, name := range names {
		assert.Equal(t, name, r.String())
	}
	assert.True(t, (rma.RemoteWrite | rma.RemoteRead).Allows(rma.RemoteRead))
	assert.False(t, rma.RemoteWrite.Allows(rma.RemoteRead))
	assert.False(t, rma.RemoteWrite.Allows(rma.RemoteWrite|rma.RemoteRead))
}

// What is accepted gives the same bytes again, whether the checksum is the input's own or made
// right.
func FuzzKey(f *testing.F) {
	for _, c := range []rma.KeyConfig{
		{Region: 1, Token: wire.Token{1, 2, 3}, Len: 1, Rights: rma.RemoteRead},
		{Region: math.MaxUint64, Len: math.MaxUint64, Rights: rma.RemoteRead | rma.RemoteWrite},
	} {
		b, err := rma.NewKey(c).MarshalBinary()
		require.NoError(f, err)
		f.Add(b, false)
	}
	f.Add([]byte{1}, true)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) == rma.KeySize {
			b = bytes.Clone(b)
			fixSum(b)
		}
		var key rma.Key
		if err := key.UnmarshalBinary(b); err != nil {
			require.ErrorIs(t, err, rma.ErrMalformed)
			require.True(t, key.IsZero())
			return
		}
		again, err := key.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, b, again)
		requirePlainText(t, key)
	})
}

// requirePlainText: however a key is shown, it is the same short text, which has the token's fingerprint in it and goes into any log.
func requirePlainText(t *testing.T, key rma.Key) {
	t.Helper()
	text := key.String()
	require.Less(t, len(text), 120)
	for _, r := range text {
		require.True(t, unicode.IsPrint(r), "%q", text)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.Equal(t, text, fmt.Sprintf(verb, key), verb)
	}
	token := key.Token()
	token[0] ^= 1
	other := rma.NewKey(rma.KeyConfig{Region: key.Region(), Token: token, Len: key.Len(), Rights: key.Rights()})
	require.NotEqual(t, text, other.String(), "the fingerprint does not depend on the token")
	require.False(t, key.Equal(other))
}
