package sabotage

import (
	"slices"

	"railyard/wire"
)

// maxHeld bounds what an editor holds back while it waits for the second of two messages.
const maxHeld = 64 << 10

// editor reads the frames of one connection. It keeps back a frame until all of it is there, except a chunk's
// payload, which passes as it comes.
//
// Invariant: every frame that goes in comes out, once, in its place; only contents change.
type editor struct {
	saboteur *Saboteur
	kind     Kind
	names    map[uint16]string // slots as the stream has defined them

	buf     []byte // bytes of a frame that is not yet whole
	passing int    // bytes of a payload that pass
	blind   bool   // the stream was not understood; from here on everything passes

	batches uint64 // parsed so far

	last []byte // double: the last numbered message, names spelled out
	held held   // reorder: frames that wait for a second message
}

// held are whole frames that wait, the first of which has the message to be swapped.
type held struct {
	first  *batch
	index  int // of the message in first
	target string
	behind []byte // the frames that came after it
}

// Edit implements cable.Editor.
func (e *editor) Edit(dst, src []byte) []byte {
	if e.blind {
		return append(dst, src...)
	}
	e.buf = append(e.buf, src...)
	in := e.buf
	for len(in) > 0 {
		if e.passing > 0 {
			n := min(e.passing, len(in))
			dst = append(dst, in[:n]...)
			in, e.passing = in[n:], e.passing-n
			continue
		}
		var n int
		if dst, n = e.frame(dst, in); n == 0 {
			break
		}
		in = in[n:]
	}
	if e.blind {
		dst, in = append(e.flush(dst), in...), nil
	}
	e.buf = append(e.buf[:0], in...)
	return dst
}

// frame takes the frame at the start of in and appends what becomes of it. 0: more bytes are needed.
func (e *editor) frame(dst, in []byte) ([]byte, int) {
	if len(in) < wire.HeaderSize {
		return dst, 0
	}
	h, err := wire.ParseHeader(in[:wire.HeaderSize])
	if err != nil {
		e.blind = true
		return dst, 0
	}
	size := wire.HeaderSize + int(h.Body)
	switch h.Kind {
	case wire.KindChunk:
		return e.chunk(dst, in, h)
	case wire.KindMessageChunk, wire.KindGetData:
		e.passing = int(h.Body)
		return append(e.flush(dst), in[:wire.HeaderSize]...), wire.HeaderSize
	case wire.KindBatch:
		if len(in) < size {
			return dst, 0
		}
		return e.batch(dst, in[:size]), size
	default:
		if len(in) < size {
			return dst, 0
		}
		return e.emit(dst, in[:size]), size
	}
}

// emit appends a whole frame, or holds it back behind others that are held.
func (e *editor) emit(dst, frame []byte) []byte {
	if e.held.first == nil {
		return append(dst, frame...)
	}
	e.held.behind = append(e.held.behind, frame...)
	if len(e.held.behind) > maxHeld {
		return e.flush(dst)
	}
	return dst
}

// flush lets go what is held, unchanged.
func (e *editor) flush(dst []byte) []byte {
	if e.held.first == nil {
		return dst
	}
	dst = append(append(dst, e.held.first.frame...), e.held.behind...)
	e.held = held{behind: e.held.behind[:0]}
	return dst
}

// chunk handles a piece of a put.
func (e *editor) chunk(dst, in []byte, h wire.Header) ([]byte, int) {
	f, err := wire.ParseChunk(h, in[:wire.HeaderSize])
	if err != nil {
		e.blind = true
		return dst, 0
	}
	start := wire.HeaderSize + min(int(f.Size), FillerPut)
	if e.kind == LateWrite && len(in) < start {
		return dst, 0
	}
	dst = e.flush(dst)
	if e.kind != LateWrite || f.Position != 0 || f.Size < FillerPut {
		e.passing = int(h.Body)
		return append(dst, in[:wire.HeaderSize]...), wire.HeaderSize
	}
	data := in[wire.HeaderSize:start]
	e.passing = int(f.Size) - FillerPut
	if f.Notify {
		e.saboteur.remember(f.Region, f.Base, data)
		return append(dst, in[:start]...), start
	}
	if f.Total == FillerPut && e.saboteur.due() {
		if o, ok := e.saboteur.recall(f.Region); ok {
			f.Base = o.base
			e.saboteur.done()
			return append(f.Append(dst), o.data[:]...), start
		}
	}
	return append(dst, in[:start]...), start
}

// batch handles a whole frame of messages.
func (e *editor) batch(dst, frame []byte) []byte {
	b, ok := e.parse(frame)
	if !ok {
		e.blind = true
		return e.emit(dst, frame)
	}
	switch e.kind {
	case Drop:
		return append(dst, e.drop(b)...)
	case Double:
		return append(dst, e.double(b)...)
	case Reorder:
		return e.reorder(dst, b)
	case None, LateWrite:
	}
	return append(dst, frame...)
}

func (e *editor) drop(b *batch) []byte {
	for i := range b.records {
		if b.records[i].typ == e.saboteur.config.Numbered && e.saboteur.due() {
			m := b.records[i].message
			m.Target = wire.Ref{Name: "nobody"}
			e.saboteur.done()
			return b.replace(i, wire.AppendMessage(nil, &m))
		}
	}
	return b.frame
}

func (e *editor) double(b *batch) []byte {
	out, done := b.frame, false
	for i := range b.records {
		r := &b.records[i]
		switch {
		case r.typ == e.saboteur.config.Numbered:
			e.last = wire.AppendMessage(e.last[:0], &r.message)
		case r.typ == e.saboteur.config.Filler && len(e.last) > 0 && !done && e.saboteur.due():
			e.saboteur.done()
			out, done = b.replace(i, e.last), true
		}
	}
	return out
}

// reorder swaps two messages to one actor, in one frame or in two.
func (e *editor) reorder(dst []byte, b *batch) []byte {
	for i := range b.records {
		r := &b.records[i]
		if r.typ != e.saboteur.config.Numbered {
			continue
		}
		if e.held.first == nil {
			if e.saboteur.due() {
				e.held.first, e.held.index, e.held.target = b.clone(), i, r.message.Target.Name
			}
			continue
		}
		if r.message.Target.Name == e.held.target {
			return e.swap(dst, b, i)
		}
	}
	if e.held.first != nil && e.held.first.serial == b.serial {
		return dst // this very frame is the one held
	}
	return e.emit(dst, b.frame)
}

// swap exchanges the held message with the one at index of b, and lets everything go.
func (e *editor) swap(dst []byte, b *batch, index int) []byte {
	first := e.held.first
	later := wire.AppendMessage(nil, &b.records[index].message)
	earlier := wire.AppendMessage(nil, &first.records[e.held.index].message)
	e.saboteur.done()
	if first.serial == b.serial {
		dst = append(dst, b.replaceTwo(e.held.index, later, index, earlier)...)
		e.held = held{behind: e.held.behind[:0]}
		return dst
	}
	dst = append(dst, first.replace(e.held.index, later)...)
	dst = append(dst, e.held.behind...)
	e.held = held{behind: e.held.behind[:0]}
	return append(dst, b.replace(index, earlier)...)
}

// record is one record of a batch, its names spelled out.
type record struct {
	from, to int // in the frame
	typ      string
	message  wire.Message // of message records alone
}

// batch is a parsed frame of messages.
type batch struct {
	serial  uint64 // in the stream
	frame   []byte
	count   int
	records []record
}

func (e *editor) parse(frame []byte) (*batch, bool) {
	h, err := wire.ParseHeader(frame[:wire.HeaderSize])
	if err != nil {
		return nil, false
	}
	head, err := wire.ParseBatch(h, frame[:wire.HeaderSize])
	if err != nil {
		return nil, false
	}
	e.batches++
	b := &batch{serial: e.batches, frame: frame, count: int(head.Count)}
	for at := wire.HeaderSize; at < len(frame); {
		rec, n, err := wire.NextRecord(frame[at:])
		if err != nil || n == 0 {
			return nil, false
		}
		r := record{from: at, to: at + n}
		at += n
		switch rec.Tag {
		case wire.TagDefine:
			e.names[rec.Slot] = string(rec.Name)
		case wire.TagMessage:
			r.message = wire.Message{
				System: rec.System(), Target: e.spell(rec.Target), Sender: e.spell(rec.Sender),
				Type: e.spell(rec.Type), Headers: rec.Headers, Payload: rec.Payload,
			}
			r.typ = r.message.Type.Name
		case wire.TagPlaceholder:
		}
		b.records = append(b.records, r)
	}
	return b, true
}

// spell gives a reference by name, so that it means the same anywhere in the stream.
func (e *editor) spell(r wire.RefView) wire.Ref {
	if r.Slot != 0 {
		return wire.Ref{Name: e.names[r.Slot]}
	}
	return wire.Ref{Name: string(r.Inline)}
}

// clone gives a copy that outlives the buffer that the frame was read into.
func (b *batch) clone() *batch {
	c := &batch{serial: b.serial, frame: slices.Clone(b.frame), count: b.count, records: slices.Clone(b.records)}
	for i := range c.records {
		m := &c.records[i].message
		m.Headers, m.Payload = slices.Clone(m.Headers), slices.Clone(m.Payload)
	}
	return c
}

// replace gives the frame with another record in the place of one.
func (b *batch) replace(index int, with []byte) []byte {
	r := b.records[index]
	return b.patch(slices.Concat(b.frame[:r.from], with, b.frame[r.to:]))
}

// replaceTwo replaces two records, i before j.
func (b *batch) replaceTwo(i int, withI []byte, j int, withJ []byte) []byte {
	first, second := b.records[i], b.records[j]
	return b.patch(slices.Concat(b.frame[:first.from], withI, b.frame[first.to:second.from],
		withJ, b.frame[second.to:]))
}

func (b *batch) patch(frame []byte) []byte {
	wire.PatchBatch(frame, len(frame)-wire.HeaderSize, b.count)
	return frame
}
