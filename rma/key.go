package rma

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"railyard/wire"
)

// Key lets its holder at a region of another node, with the rights that the owner gave. It is a
// secret, handed over in a message (MarshalBinary); String, and every format of fmt, shows a
// fingerprint only.
//
// fmt calls no method of an unexported field: keep keys in exported fields of what may be printed.
type Key struct {
	region uint64
	length uint64
	token  wire.Token
	rights Rights
}

const (
	// TokenSize is the length of a key's secret in bytes.
	TokenSize = len(wire.Token{})
	// KeySize is the length of a marshaled key in bytes.
	KeySize = 40

	keyVersion = 1
)

// A marshaled key, big endian:
//
//	0 version u8 | 1 rights u8 | 2 zero u16 | 4 checksum u32 (CRC-32C of all the rest)
//	8 region u64 | 16 length u64 | 24 token, 16 bytes
const (
	keyAtSum    = 4
	keyAtRegion = 8
	keyAtLength = 16
	keyAtToken  = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// KeyConfig are the parts of a key.
type KeyConfig struct {
	Region uint64
	Token  wire.Token
	Len    uint64
	Rights Rights
}

// NewKey puts a key together: for a session, which knows the parts from elsewhere. Table.Register
// makes the keys that open something.
func NewKey(c KeyConfig) Key {
	return Key{region: c.Region, token: c.Token, length: c.Len, rights: c.Rights}
}

// Region is the region's number at its owner.
func (k Key) Region() uint64 { return k.region }

// Token is the secret. It must reach neither logs nor errors.
func (k Key) Token() wire.Token { return k.token }

// Len is the region's length in bytes.
func (k Key) Len() uint64 { return k.length }

// Rights are what the key allows.
func (k Key) Rights() Rights { return k.rights }

// IsZero tells whether k is the zero key, which opens nothing.
func (k Key) IsZero() bool { return k.Equal(Key{}) }

// Equal tells whether both are the same key; its time tells nothing of the tokens.
func (k Key) Equal(other Key) bool {
	same := subtle.ConstantTimeCompare(k.token[:], other.token[:]) == 1
	return same && k.region == other.region && k.length == other.length && k.rights == other.rights
}

// String shows region, length, rights and a fingerprint by which two keys can be told apart.
func (k Key) String() string {
	sum := sha256.Sum256(k.token[:])
	return fmt.Sprintf("key(region %d, %d bytes, %s, #%s)",
		k.region, k.length, k.rights, hex.EncodeToString(sum[:4]))
}

// GoString is String: a key has no form that could be pasted into a program.
func (k Key) GoString() string { return k.String() }

// Format writes String whatever the verb, so that no verb shows the token.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// MarshalBinary gives the key as KeySize bytes, the token in clear. The zero key and one with
// unknown rights are refused.
func (k Key) MarshalBinary() ([]byte, error) { return k.AppendBinary(make([]byte, 0, KeySize)) }

// AppendBinary is MarshalBinary behind b.
func (k Key) AppendBinary(b []byte) ([]byte, error) {
	if k.length == 0 || !k.rights.valid() {
		return b, fmt.Errorf("%s cannot be handed over: only a key from Region.Key can", k)
	}
	var out [KeySize]byte
	out[0], out[1] = keyVersion, byte(k.rights)
	binary.BigEndian.PutUint64(out[keyAtRegion:], k.region)
	binary.BigEndian.PutUint64(out[keyAtLength:], k.length)
	copy(out[keyAtToken:], k.token[:])
	binary.BigEndian.PutUint32(out[keyAtSum:], keySum(out[:]))
	return append(b, out[:]...), nil
}

// UnmarshalBinary reads what MarshalBinary gave. Errors wrap ErrMalformed; k is then as it was.
func (k *Key) UnmarshalBinary(b []byte) error {
	if len(b) != KeySize {
		return fmt.Errorf("a key has %d bytes, not %d: %w", KeySize, len(b), ErrMalformed)
	}
	if b[0] != keyVersion {
		return fmt.Errorf("a key of version %d, this node knows %d: %w",
			b[0], keyVersion, ErrMalformed)
	}
	if binary.BigEndian.Uint32(b[keyAtSum:]) != keySum(b) {
		return fmt.Errorf("a key that was damaged on its way (checksum): %w", ErrMalformed)
	}
	got := Key{
		rights: Rights(b[1]),
		region: binary.BigEndian.Uint64(b[keyAtRegion:]),
		length: binary.BigEndian.Uint64(b[keyAtLength:]),
		token:  wire.Token(b[keyAtToken:]),
	}
	switch {
	case b[2] != 0 || b[3] != 0:
		return fmt.Errorf("a key with reserved bytes set: %w", ErrMalformed)
	case !got.rights.valid():
		return fmt.Errorf("a key with %s: %w", got.rights, ErrMalformed)
	case got.length == 0:
		return fmt.Errorf("a key to a region of no bytes: %w", ErrMalformed)
	}
	*k = got
	return nil
}

// keySum covers everything but the sum itself.
func keySum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:keyAtSum])
	return crc32.Update(sum, castagnoli, b[keyAtRegion:])
}
