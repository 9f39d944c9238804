package session

import (
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// Message is one message to an actor of the peer.
type Message struct {
	Target, Sender, Type *Name // Sender may be nil
	// System messages (watch, stop, …) take no room of the window: they are never held up by bulk.
	System  bool
	Headers []byte
	// Payload may be reused after Send unless it is larger than wire.MaxInline: then the session owns it.
	Payload []byte
}

// maxHeaders bounds the headers of one message, in bytes.
const maxHeaders = 8 << 10

const bucketCount = 256

// bucket is the affinity of the targets that hash to it (rule 11).
//
// Invariant: what is on gen precedes what is pending; gen changes only when everything put on it
// is acknowledged or it is settled.
type bucket struct {
	gen     *Generation
	last    uint64 // the bucket's newest message among gen's queued ones
	pending []queued
}

// queued is a message that is on no generation yet.
type queued struct {
	target, sender, typ *Name
	system              bool
	strikes             uint8
	wave                uint64
	headers, payload    []byte
	large               *Op // the message travels in chunks; what is queued is its placeholder
}

// msgFrame remembers a message of a segment, so that it can be put on another lane.
type msgFrame struct {
	target, sender, typ *Name
	system              bool
	strikes             uint8
	wave                uint64
	hdrAt, hdrLen       int32
	at, n               int32
	large               *Op
}

// segment is a batch frame being filled, and what it needs to be sent again elsewhere.
type segment struct {
	buf    []byte // header and records
	frames []msgFrame
	base   uint64 // number of its first frame, once it is begun
	sealed bool   // planned: nothing is added any more
	shared bool   // its memory is referred to from elsewhere: not recycled
}

func cost(payload, headers int) uint64 { return uint64(payload + headers + MessageOverhead) }

// Send puts a message on its way: exactly once and in order for its target. It never waits: rma.ErrWindowFull
// says that there is no room now (a Room effect follows), rma.ErrTooLarge that there never will be.
func (s *Session) Send(now time.Duration, m *Message) error {
	s.now, s.workAt = now, now
	if s.closed != nil {
		return s.closed
	}
	if s.goodbye {
		return fmt.Errorf("message to %s: this side is leaving: %w", m.Target, rma.ErrShutdown)
	}
	size := uint64(len(m.Payload))
	if size > s.cfg.PeerMaxMessage {
		return fmt.Errorf("message of %d bytes to %s is over the peer's limit of %d (Config.MaxMessage): %w",
			size, m.Target, s.cfg.PeerMaxMessage, rma.ErrTooLarge)
	}
	for _, n := range [...]*Name{m.Target, m.Sender, m.Type} {
		if n != nil && len(n.S) > wire.MaxName {
			return fmt.Errorf("a name of %d bytes in a message; the limit is %d: %w", len(n.S), wire.MaxName, rma.ErrTooLarge)
		}
	}
	if len(m.Headers) > maxHeaders {
		return fmt.Errorf("headers of %d bytes in a message to %s; the limit is %d: %w",
			len(m.Headers), m.Target, maxHeaders, rma.ErrTooLarge)
	}
	if !m.System {
		c := cost(len(m.Payload), len(m.Headers))
		if s.reserved+c > s.granted {
			s.starved = true
			return fmt.Errorf("message of %d bytes to %s: %d bytes are under way to its node: %w",
				size, m.Target, s.reserved-(s.granted-min(s.granted, s.cfg.PeerWindow)), rma.ErrWindowFull)
		}
		s.reserved += c
	}
	q := queued{target: m.Target, sender: m.Sender, typ: m.Type, system: m.System, headers: m.Headers, payload: m.Payload}
	q.wave = s.waves.join()
	if size > wire.MaxInline {
		s.nextOp++
		q.large = &Op{ID: s.nextOp, Kind: LargeMessage, Data: m.Payload, out: 1, wave: q.wave} // its placeholder is owed
		q.payload, q.headers = nil, clone(m.Headers)
		envelope := q
		q.large.envelope = &envelope
	}
	b := &s.buckets[m.Target.bucket]
	g := s.affine(b, m.Target.bucket)
	if g != nil && len(b.pending) == 0 {
		s.enqueue(b, g, &q)
	} else {
		g = nil
		q.payload, q.headers = clone(q.payload), clone(q.headers)
		b.pending = append(b.pending, q)
	}
	s.stats.MessagesSent++
	if g != nil {
		s.wakeAs(g, g.inFlight == 0 && g.segs.len() == 1)
	}
	if q.large != nil {
		s.ops[q.large.ID] = q.large
		s.addBody(q.large)
		s.startBulk(q.large)
	}
	return nil
}

func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

// affine gives the generation that the bucket's next message goes on; nil: it has to wait.
func (s *Session) affine(b *bucket, i uint8) *Generation {
	if g := b.gen; g != nil {
		drained := g.settled || g.qAcked >= b.last
		if g.Usable() && !drained {
			return g
		}
		if !drained {
			return nil
		}
	}
	b.gen = s.preferred(i)
	b.last = 0
	return b.gen
}

// preferred spreads the buckets over the lanes that are up.
func (s *Session) preferred(i uint8) *Generation {
	n := 0
	for _, l := range s.lanes {
		if l != nil && l.Up() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	k := int(i) % n
	for _, l := range s.lanes {
		if l != nil && l.Up() {
			if k == 0 {
				return l.current
			}
			k--
		}
	}
	return nil
}

// enqueue writes the message's record into the generation's open segment.
func (s *Session) enqueue(b *bucket, g *Generation, q *queued) {
	seg := g.openSegment(s)
	ref := func(n *Name) wire.Ref {
		if n == nil {
			return wire.Ref{}
		}
		if n.slot == 0 {
			return wire.Ref{Name: n.S}
		}
		if !g.isDefined(n.slot) {
			seg.buf = wire.AppendDefine(seg.buf, n.slot, n.S)
		}
		return wire.Ref{Slot: n.slot}
	}
	target, sender, typ := ref(q.target), ref(q.sender), ref(q.typ)
	f := msgFrame{target: q.target, sender: q.sender, typ: q.typ, system: q.system, strikes: q.strikes, wave: q.wave, large: q.large}
	f.hdrLen, f.n = int32(len(q.headers)), int32(len(q.payload))
	if q.large != nil {
		seg.buf = wire.AppendPlaceholder(seg.buf, &wire.Placeholder{
			System: q.system, Target: target, Sender: sender, Type: typ, Headers: q.headers,
			ID: q.large.ID, Total: uint64(len(q.large.Data)),
		})
	} else {
		seg.buf = wire.AppendMessage(seg.buf, &wire.Message{
			System: q.system, Target: target, Sender: sender, Type: typ, Headers: q.headers, Payload: q.payload,
		})
		f.at = int32(len(seg.buf)) - f.n
		if f.hdrLen > 0 { // headers stand before the size and the payload
			f.hdrAt = f.at - uvarintLen(f.n) - f.hdrLen
		}
	}
	seg.frames = append(seg.frames, f)
	g.queued++
	g.time()
	b.last = g.queued
}

// uvarintLen is the number of bytes that n takes as a varint.
func uvarintLen(n int32) int32 {
	l := int32(1)
	for ; n >= 0x80; n >>= 7 {
		l++
	}
	return l
}

// openSegment gives the segment that takes the next message, making a new one when the last is full.
func (g *Generation) openSegment(s *Session) *segment {
	if n := g.segs.len(); n > 0 {
		seg := *g.segs.at(n - 1)
		if !seg.sealed && len(seg.buf) < segmentSize && len(seg.frames) < maxBatch {
			return seg
		}
	}
	var seg *segment
	if n := len(s.freeSegs); n > 0 {
		seg = s.freeSegs[n-1]
		s.freeSegs = s.freeSegs[:n-1]
	} else {
		seg = &segment{buf: make([]byte, 0, 4<<10)}
	}
	seg.buf = wire.AppendBatchHeader(seg.buf[:0])
	g.segs.push(seg)
	return seg
}

// maxBatch bounds the messages of one batch.
const maxBatch = 1024

// maxFreeSegments bounds the recycled batch buffers of a session.
const maxFreeSegments = 64

func (s *Session) freeSegment(seg *segment) {
	if seg.shared || len(s.freeSegs) >= maxFreeSegments {
		return
	}
	clear(seg.frames)
	seg.frames, seg.base, seg.sealed = seg.frames[:0], 0, false
	s.freeSegs = append(s.freeSegs, seg)
}

// isDefined tells whether the peer knows the slot on this generation, and notes that from now on it does.
func (g *Generation) isDefined(slot uint16) bool {
	w := int(slot / 64)
	for w >= len(g.defined) {
		g.defined = append(g.defined, 0)
	}
	bit := uint64(1) << (slot % 64)
	known := g.defined[w]&bit != 0
	g.defined[w] |= bit
	return known
}

// flushPending moves waiting messages onto lanes, bucket by bucket, as far as order allows.
func (s *Session) flushPending() {
	for i := range s.buckets {
		b := &s.buckets[i]
		if len(b.pending) == 0 {
			continue
		}
		g := s.affine(b, uint8(i))
		if g == nil {
			continue
		}
		for j := range b.pending {
			s.enqueue(b, g, &b.pending[j])
		}
		b.pending = nil
		s.wake(g)
	}
}

// requeue puts the unapplied messages of a settled generation back in front of their buckets, in order (rule 11).
func (s *Session) requeue(frames []queued) {
	var front [bucketCount][]queued
	for i := range frames {
		k := frames[i].target.bucket
		front[k] = append(front[k], frames[i])
	}
	for k := range front {
		if len(front[k]) == 0 {
			continue
		}
		b := &s.buckets[k]
		b.pending = append(front[k], b.pending...)
		b.gen, b.last = nil, 0
	}
}

// unqueue turns a segment's frame back into a message that is on no lane. The segment's memory stays in use.
func (seg *segment) unqueue(i int) queued {
	f := &seg.frames[i]
	seg.shared = true
	q := queued{target: f.target, sender: f.sender, typ: f.typ, system: f.system, strikes: f.strikes, wave: f.wave, large: f.large}
	if f.large != nil {
		q.headers = f.large.envelope.headers
		return q
	}
	q.headers = seg.buf[f.hdrAt : f.hdrAt+f.hdrLen : f.hdrAt+f.hdrLen]
	q.payload = seg.buf[f.at : f.at+f.n : f.at+f.n]
	return q
}

// undelivered says that a message will not be sent again. A large one is met with its placeholder and with its body.
func (s *Session) undelivered(q *queued, err error) {
	if q.large != nil {
		if q.large.gaveUp {
			return
		}
		q.large.gaveUp = true
	}
	m := &Message{Target: q.target, Sender: q.sender, Type: q.typ, System: q.system, Headers: q.headers, Payload: q.payload}
	if q.large != nil {
		m.Payload = q.large.Data
	}
	s.effect(Effect{Kind: Undelivered, Message: m, Err: err})
}

// abandonMessages gives up every message that is not acknowledged: the session is over.
func (s *Session) abandonMessages(err error) {
	segment := func(seg *segment, from uint64) {
		for i := from; i < uint64(len(seg.frames)); i++ {
			q := seg.unqueue(int(i))
			s.undelivered(&q, err)
		}
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			for _, it := range g.items.all() {
				if it.seg != nil {
					segment(it.seg, it.at)
				}
			}
			for _, seg := range g.segs.all() {
				segment(seg, 0)
			}
		}
	}
	for i := range s.buckets {
		for j := range s.buckets[i].pending {
			s.undelivered(&s.buckets[i].pending[j], err)
		}
		s.buckets[i].pending = nil
	}
	for _, o := range s.bodies { // their placeholders may have been acknowledged long ago
		if o.Kind == LargeMessage {
			s.undelivered(o.envelope, err)
		}
	}
}

// Room tells whether a message with that payload and headers would find room now.
func (s *Session) Room(payload, headers int) bool {
	return s.closed != nil || s.reserved+cost(payload, headers) <= s.granted
}

// Free is how many bytes of messages, with what each costs besides, would find room now.
func (s *Session) Free() uint64 { return s.granted - min(s.granted, s.reserved) }

// PeerWindow is how many bytes of messages the peer lets us have under way.
func (s *Session) PeerWindow() uint64 { return s.cfg.PeerWindow }

// AwaitRoom has the next grant say that there is room, as if a message had been refused.
func (s *Session) AwaitRoom() { s.starved = true }

// creditIn takes over a grant of the peer's: an absolute total.
func (s *Session) creditIn(total uint64) {
	if total <= s.granted {
		return
	}
	s.granted = total
	if s.starved {
		s.starved = false
		s.effect(Effect{Kind: Room})
	}
}

// Consumed gives n bytes of the peer's window back: messages of that cost have left our hands. The grant is said once
// an eighth of the window has come together (Config keeps the largest message below the rest).
func (s *Session) Consumed(now time.Duration, n uint64) {
	s.now = now
	s.consumed += n
	if total := s.consumed + s.cfg.Window; total-s.grantSent >= s.cfg.Window/8 {
		s.grantSent = total
		for _, l := range s.lanes {
			if l != nil && l.Up() {
				s.wake(l.current)
				return
			}
		}
	}
}
