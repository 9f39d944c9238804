package wire

import "errors"

// errShort is not an error of the frame: the bytes at hand end inside a record.
var errShort = errors.New("wire: short")

// cursor reads the parts of a record. It keeps the first error, so a parser checks once at its end.
//
// Invariant: a length over its limit is an error as soon as the bytes at hand prove it, not when
// the rest has come.
type cursor struct {
	b   []byte
	at  int
	err error
}

// byte takes one byte.
func (c *cursor) byte() byte {
	if c.err != nil {
		return 0
	}
	if c.at >= len(c.b) {
		c.err = errShort
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

// bytes takes n bytes, which alias the input.
func (c *cursor) bytes(n uint64) []byte {
	if c.err != nil {
		return nil
	}
	if n > uint64(len(c.b)-c.at) {
		c.err = errShort
		return nil
	}
	end := c.at + int(n)
	p := c.b[c.at:end:end]
	c.at = end
	return p
}

// uint64 takes 8 bytes.
func (c *cursor) uint64() uint64 {
	p := c.bytes(8)
	if p == nil {
		return 0
	}
	return le.Uint64(p)
}

// uvarint takes a varint from least to limit. Only the shortest form is taken: what is accepted has
// one encoding. limit is below 1<<63.
func (c *cursor) uvarint(what string, least, limit uint64) uint64 {
	if c.err != nil {
		return 0
	}
	if c.at < len(c.b) { // most are one byte
		if v := uint64(c.b[c.at]); v < 0x80 && v >= least && v <= limit {
			c.at++
			return v
		}
	}
	var v uint64
	for i := c.at; i < len(c.b); i++ {
		shift := 7 * uint(i-c.at)
		x := c.b[i]
		v |= uint64(x&0x7f) << shift
		if x >= 0x80 {
			// More follows, and in the shortest form it adds at least this:
			if uint64(1)<<(shift+7) > limit {
				c.err = malformed(KindBatch, "%s over the limit of %d", what, limit)
				return 0
			}
			continue
		}
		switch {
		case x == 0 && i > c.at:
			c.err = malformed(KindBatch, "%s not in the shortest form of a varint", what)
		case v > limit:
			c.err = malformed(KindBatch, "%s of %d, over the limit of %d", what, v, limit)
		case v < least:
			c.err = malformed(KindBatch, "%s of %d, below the least of %d", what, v, least)
		default:
			c.at = i + 1
			return v
		}
		return 0
	}
	c.err = errShort
	return 0
}

// label names a field in errors: the reference itself, and the length of its name.
type label struct{ ref, length string }

// ref takes a reference to a name: 0 none, 1 a name that follows, n a slot n-1.
func (c *cursor) ref(what *label) RefView {
	switch n := c.uvarint(what.ref, 0, MaxSlot+1); n {
	case 0:
		return RefView{}
	case 1:
		return RefView{Inline: c.name(what.length)}
	default:
		return RefView{Slot: uint16(n - 1)}
	}
}

// name takes a length and that many bytes.
func (c *cursor) name(what string) []byte { return c.bytes(c.uvarint(what, 1, MaxName)) }

// fail keeps an error, out of the hot path's way.
//
//go:noinline
func (c *cursor) fail(format string, value uint64) {
	if c.err == nil {
		c.err = malformed(KindBatch, format, value)
	}
}

// uvarintSize is the length of v as a varint.
func uvarintSize(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
