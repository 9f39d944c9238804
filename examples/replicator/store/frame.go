package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// This file: an entry of the log.
//
//	 0 magic    4 kind, flags, 0, 0
//	 8 position 16 durable 24 incarnation
//	32 epoch    40 volume  48 sequence    56 id
//	64 offset   72 length  80 bytes of payload, crc32c of them  88 crc32c of 0 to 88
//	96 payload, up to the next multiple of 512
//
// Numbers are little endian. Position counts bytes since the log was made, so an entry of an earlier round of the ring is none of this one.
// Durable is the position up to which the log was durable when the entry was written: an entry that is missing before it was lost by
// the disk, not by a crash. Incarnation counts how often the store was opened, so that what a crash has left behind the end of the log
// is not taken for its continuation later.

const (
	magicFrame  = 0x52594c46
	headerBytes = 96
	sector      = 512
)

type kind uint8

const (
	kindRecord kind = iota + 1
	kindZero        // a record without data: the range is zero
	kindFill        // an extent, as of the record sequence
	kindState       // the owner's state
	kindSkip        // nothing up to the end of the ring
)

const flagReset = 1 // of a state: the last record is (epoch, sequence) from here on

// entry is what the header of a frame says.
type entry struct {
	kind                        kind
	flags                       uint8
	position                    uint64
	durable                     uint64
	incarnation                 uint64
	epoch, volume, sequence, id uint64
	offset, length              int64
	payload                     uint32 // bytes
	sum                         uint32 // crc32c of them
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// errNoFrame: no entry that anybody has finished writing.
var errNoFrame = errors.New("store: no entry of the log")

// frameSize is what a payload needs in the log.
func frameSize(payload int) int { return (headerBytes + payload + sector - 1) &^ (sector - 1) }

// size is what the entry takes of the log, but for a skip.
func (e *entry) size() int { return frameSize(int(e.payload)) }

// encode writes the header, with how much of the log is durable by now.
func (e *entry) encode(b []byte, durable uint64) {
	le.PutUint32(b, magicFrame)
	b[4], b[5], b[6], b[7] = byte(e.kind), e.flags, 0, 0
	for i, v := range []uint64{
		e.position, durable, e.incarnation, e.epoch, e.volume, e.sequence, e.id, uint64(e.offset), uint64(e.length),
	} {
		le.PutUint64(b[8+8*i:], v)
	}
	le.PutUint32(b[80:], e.payload)
	le.PutUint32(b[84:], e.sum)
	le.PutUint32(b[88:], crc32.Checksum(b[:88], castagnoli))
	clear(b[92:headerBytes])
}

// decodeHeader reads a header that is whole and makes sense within itself; the payload is for the caller to check.
func decodeHeader(b []byte) (entry, error) {
	if len(b) < headerBytes || le.Uint32(b) != magicFrame || le.Uint32(b[88:]) != crc32.Checksum(b[:88], castagnoli) {
		return entry{}, errNoFrame
	}
	e := entry{kind: kind(b[4]), flags: b[5]}
	for i, v := range []*uint64{&e.position, &e.durable, &e.incarnation, &e.epoch, &e.volume, &e.sequence, &e.id} {
		*v = le.Uint64(b[8+8*i:])
	}
	e.offset, e.length = int64(le.Uint64(b[64:])), int64(le.Uint64(b[72:]))
	e.payload, e.sum = le.Uint32(b[80:]), le.Uint32(b[84:])
	bad := e.offset < 0 || e.length < 0 || e.offset+e.length < 0
	switch e.kind {
	case kindRecord, kindFill:
		bad = bad || int64(e.payload) != e.length
	case kindZero, kindSkip:
		bad = bad || e.payload != 0
	case kindState:
	default:
		bad = true
	}
	if bad || e.payload > maxLog {
		return entry{}, errNoFrame
	}
	return e, nil
}

// frame is an entry that is on its way to the log, and then to the image.
//
// Owner: the goroutine that has it: the caller of a change, then the syncer, then the applier. Readers see its payload through pieces.
type frame struct {
	entry
	buffer []byte // of size() bytes; the syncer writes the header
	end    uint64 // the position behind it
}

func newFrame(e entry, payload []byte) *frame {
	e.payload = uint32(len(payload))
	f := &frame{entry: e, buffer: make([]byte, frameSize(len(payload)))}
	copy(f.buffer[headerBytes:], payload)
	f.sum = crc32.Checksum(payload, castagnoli)
	return f
}

func (f *frame) data() []byte { return f.buffer[headerBytes : headerBytes+int(f.payload)] }
