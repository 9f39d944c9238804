package actors

import (
	"encoding/binary"
	"errors"
	"fmt"

	"railyard/endpoint"
	"railyard/wire"
)

// Frames of streams travel as system messages to targets that no actor can be: a listener's, or one end of a stream. So they
// take no room of the window for actors' messages; each stream has its own.
const (
	listenPrefix = reservedPrefix + "listen/"
	streamPrefix = reservedPrefix + "stream/"
	streamType   = "railyard.Stream"
)

type frameKind byte

const (
	// frameOpen, to a listener: make a stream with the end id here, whose window is n; pos is the version.
	frameOpen frameKind = iota + 1
	// frameAccepted: the stream's other end is id, and its window n.
	frameAccepted
	// frameRefused: there will be no stream; n says why.
	frameRefused
	// frameData: body follows at pos.
	frameData
	// frameLanded: n bytes for pos are in the ring at id.
	frameLanded
	// frameWantRing: register memory for me to put into.
	frameWantRing
	// frameRing: body is its key.
	frameRing
	// frameCredit: n bytes of the window have been given back in total.
	frameCredit
	// frameFin: the stream ends at pos.
	frameFin
	// frameClosed: nothing more is read at this end.
	frameClosed
	// frameReset: what is not read yet, or was not written yet, never will be.
	frameReset
)

// Why an Open is refused.
const (
	refusedNoService = iota + 1
	refusedBusy
	refusedVersion
)

// streamVersion is that of these frames.
const streamVersion = 1

// frame is one of them, in either direction.
type frame struct {
	kind       frameKind
	pos, id, n uint64
	body       []byte
}

var errBadFrame = errors.New("the frame of a stream does not decode: the peer speaks another version")

// maxFrameHead is the longest frame without its body.
const maxFrameHead = 1 + 3*binary.MaxVarintLen64

func (f *frame) append(b []byte) []byte {
	b = append(b, byte(f.kind))
	b = binary.AppendUvarint(b, f.pos)
	b = binary.AppendUvarint(b, f.id)
	b = binary.AppendUvarint(b, f.n)
	return append(b, f.body...)
}

// parseFrame reads a frame; its body is part of b.
func parseFrame(b []byte) (frame, error) {
	if len(b) == 0 || b[0] == 0 || frameKind(b[0]) > frameReset {
		return frame{}, fmt.Errorf("%w: an unknown kind", errBadFrame)
	}
	f := frame{kind: frameKind(b[0])}
	b = b[1:]
	for _, v := range []*uint64{&f.pos, &f.id, &f.n} {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return frame{}, fmt.Errorf("%w: a number is cut off", errBadFrame)
		}
		*v, b = x, b[n:]
	}
	f.body = b
	return f, nil
}

// notify makes the message that carries the frame.
func (f *frame) notify(target string) *endpoint.Outgoing {
	return &endpoint.Outgoing{Target: endpoint.NewRefOnce(target), Type: endpoint.NewRef(streamType),
		Payload: f.append(make([]byte, 0, maxFrameHead))}
}

// maxData is the longest body of a data frame.
const maxData = wire.MaxInline - maxFrameHead
