package wire

import "encoding/binary"

// HeaderSize is the length of every frame's header in bytes. A multiple of a cache line keeps
// payloads aligned.
const HeaderSize = 64

// fields is where the kind's own fields begin.
const fields = 8

// Header is the part of a frame's first bytes that all kinds share.
type Header struct {
	Kind  Kind
	Flags uint8
	Body  uint32 // bytes that follow the header
}

var le = binary.LittleEndian

// ParseHeader reads the shared part of a header. b begins with the 64 bytes of the header; what
// follows them is not looked at. A header that it returns has a known kind, known flags and a body
// within the kind's limits. The error wraps ErrMalformed.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, malformed(0, "a header of %d bytes where %d are due", len(b), HeaderSize)
	}
	h := Header{Kind: Kind(b[0]), Flags: b[1], Body: le.Uint32(b[4:])}
	if !h.Kind.Known() {
		return Header{}, malformed(0, "unknown kind %d", b[0])
	}
	l := &layouts[h.Kind]
	switch {
	case h.Flags&^l.flags != 0:
		return Header{}, malformed(h.Kind, "unknown flags %#x", h.Flags&^l.flags)
	case b[2] != 0 || b[3] != 0:
		return Header{}, malformed(h.Kind, "reserved bytes 2 and 3 are not zero")
	case h.Body > l.max:
		return Header{}, malformed(h.Kind, "a body of %d bytes, over the limit of %d", h.Body, l.max)
	case h.Body < l.min:
		return Header{}, malformed(h.Kind, "a body of %d bytes, below the least of %d", h.Body, l.min)
	}
	return h, nil
}

// appendHeader appends a header whose own fields are zero and gives them back as a window to fill
// in.
//
// Invariant: own aliases b, so it is filled in before b is appended to again.
func appendHeader(b []byte, h Header) (all, own []byte) {
	at := len(b)
	b = append(b, make([]byte, HeaderSize)...)
	head := b[at:]
	head[0] = byte(h.Kind)
	head[1] = h.Flags
	le.PutUint32(head[4:], h.Body)
	return b, head
}

// frame is what a parser is given: a header that ParseHeader returned, the 64 bytes that it came
// from, the body.
type frame struct {
	h    Header
	head []byte
	body []byte
}

// check guards the parsers against being handed the wrong frame, or less of it than its header
// says. own is where the bytes begin that this kind does not use; they must be zero.
func (f frame) check(k Kind, own int) error {
	switch {
	case f.h.Kind != k:
		return malformed(k, "a frame of kind %v in its place", f.h.Kind)
	case len(f.head) < HeaderSize:
		return malformed(k, "only %d bytes of header at hand", len(f.head))
	case len(f.body) != int(f.h.Body):
		return malformed(k, "%d bytes of body at hand where the header says %d",
			len(f.body), f.h.Body)
	}
	return zeros(k, f.head, own, HeaderSize)
}

// hot is check for the frames whose payload goes elsewhere and whose unused bytes nobody looks at.
func hot(h Header, head []byte, k Kind) error {
	switch {
	case h.Kind != k:
		return malformed(k, "a frame of kind %v where this one is due", h.Kind)
	case len(head) < HeaderSize:
		return malformed(k, "%d bytes of header at hand where %d are due", len(head), HeaderSize)
	}
	return nil
}

// zeros checks that b[from:to] is unused.
func zeros(k Kind, b []byte, from, to int) error {
	for i := from; i < to; i++ {
		if b[i] != 0 {
			return malformed(k, "unused byte %d of the header is not zero", i)
		}
	}
	return nil
}

// within checks that a piece lies inside its whole, without overflow.
func within(k Kind, position uint64, size uint32, total uint64) error {
	if position > total || uint64(size) > total-position {
		return malformed(k, "%d bytes at position %d of a whole of %d bytes", size, position, total)
	}
	if size == 0 && total != 0 {
		return malformed(k, "an empty piece of a whole of %d bytes", total)
	}
	return nil
}
