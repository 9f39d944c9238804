package wire

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Version is the version of the protocol that this package speaks.
const Version = 1

// Features are the optional parts of the protocol that this package knows, one bit each: none yet.
// A node offers its own; unknown bits are ignored, and what both offer is in force.
const Features uint64 = 0

// Features of one connection: its acceptor takes TLS on it, and nothing but TLS.
const (
	FeatureTLS uint64 = 1 << iota
	FeatureTLSOnly
)

// Sizes in bytes of the fixed fields in handshake messages.
const (
	NonceSize   = 32
	SessionSize = 16
	MACSize     = 32
	MaxToken    = 64 // of the session's secret in a first hello
)

// maxParts bounds the fields of one handshake message, the repeated ones counted each: no few bytes
// unfold into many objects.
const maxParts = MaxDevices + MaxFenced + 64

// AppendHandshake appends a handshake frame: m is the *Challenge, *Hello, *Answer or *Confirm that
// k says. It refuses what ReadHandshake would refuse at the peer; the error wraps ErrMalformed.
func AppendHandshake(b []byte, k Kind, m proto.Message) ([]byte, error) {
	if err := validate(k, m); err != nil {
		return b, unsendable(k, "%s", reason(err))
	}
	size := proto.Size(m)
	if size > MaxHandshake {
		return b, unsendable(k, "a message of %d bytes, at most %d are possible: "+
			"use fewer devices or shorter names", size, MaxHandshake)
	}
	at := len(b)
	all, _ := appendHeader(b, Header{Kind: k, Body: uint32(size)})
	all, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(all, m)
	if err != nil {
		return b, unsendable(k, "its message does not encode: %v", err)
	}
	le.PutUint32(all[at+4:], uint32(len(all)-at-HeaderSize))
	return all, nil
}

// ReadHandshake reads one frame of kind want from r into m, and not one byte more, so that the
// stream can go on with frames of other kinds. At most MaxHandshake bytes are allocated for it. An
// error of r is wrapped; any other wraps ErrMalformed. It blocks as long as r does: the caller sets
// a deadline.
func ReadHandshake(r io.Reader, want Kind, m proto.Message) error {
	var head [HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("wire: waiting for the header of a %v: %w", want, err)
	}
	h, err := ParseHeader(head[:])
	if err != nil {
		return err
	}
	if h.Kind != want || !want.Handshake() {
		return malformed(want, "the handshake's next frame is a %v", h.Kind)
	}
	if err := zeros(want, head[:], fields, HeaderSize); err != nil {
		return err
	}
	body := make([]byte, h.Body)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("wire: waiting for the %d bytes of a %v: %w", h.Body, want, noEOF(err))
	}
	return decodeHandshake(want, body, m)
}

// noEOF makes an end of the stream inside a frame an error of its own: io.EOF means that it ended
// before one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func decodeHandshake(k Kind, body []byte, m proto.Message) error {
	if err := countParts(k, body); err != nil {
		return err
	}
	// Unknown fields come from newer versions and are nothing to keep.
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
		return malformed(k, "its message does not decode: %v", err)
	}
	return validate(k, m)
}

// countParts walks the outermost fields without decoding them.
func countParts(k Kind, body []byte) error {
	parts := 0
	for at := 0; at < len(body); {
		_, _, n := protowire.ConsumeField(body[at:])
		if n < 0 {
			return malformed(k, "its message has no valid field at byte %d", at)
		}
		at += n
		if parts++; parts > maxParts {
			return malformed(k, "its message has more than %d fields", maxParts)
		}
	}
	return nil
}
