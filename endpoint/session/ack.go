package session

import (
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// appendAck encodes what has been applied, with the refusals that this stream has not carried yet. Where there are more than
// fit, the count stops before the first that does not (rule 2).
func (g *Generation) appendAck(b []byte) []byte {
	f := wire.Ack{Count: g.applied, Seen: g.peerAck}
	for _, r := range g.refusals {
		if r.Frame <= g.ackSent {
			continue
		}
		if r.Frame > g.applied { // of the open read bracket
			break
		}
		if f.Refusals.Len() == wire.MaxRefusals {
			f.Count = r.Frame - 1
			break
		}
		f.Refusals = f.Refusals.Add(r)
	}
	g.ackSent = f.Count
	g.ackNow, g.ackAt, g.ackBytes, g.seenDue = g.applied != g.ackSent, 0, 0, false
	return f.Append(b)
}

// ackIn takes over how far the peer has got, refusals first.
func (g *Generation) ackIn(f wire.Ack) error {
	s := g.s
	g.seenIn(f.Seen)
	if f.Count > g.sent && !g.writing {
		return protocolError("an acknowledgement of %d frames, of which %d were sent", f.Count, g.sent)
	}
	s.refusalsIn(g, f.Refusals)
	g.peerAck = max(g.peerAck, f.Count)
	if f.Refusals.Len() > 0 { // told at once, ahead of further chunks: so the peer never keeps more than wire.MaxRefusals
		g.seenDue = true
		s.wake(g)
	}
	if f.Count > g.acked { // not in advance: a Goodbye that another lane brings is no answer of this one
		g.answeredAt(s.now - min(s.now, g.lane.RoundTrip))
	}
	return g.advance(f.Count)
}

// seenIn: the peer has processed our acks up to count: their refusals need not be said again.
func (g *Generation) seenIn(count uint64) {
	if count <= g.seen {
		return
	}
	g.seen = count
	n := 0
	for n < len(g.refusals) && g.refusals[n].Frame <= count {
		n++
	}
	g.refusals = g.refusals[:copy(g.refusals, g.refusals[n:])]
}

// refusalsIn ends the operations that the peer refused.
func (s *Session) refusalsIn(g *Generation, list wire.Refusals) {
	for i := range list.Len() {
		r := list.At(i)
		o := s.ops[r.Op]
		if o == nil || o.ended || r.Frame <= g.acked {
			continue
		}
		s.stats.Refused++
		if r.Code == wire.CodeRevoked {
			s.doubt(o)
		}
		s.finish(o, &rma.OpError{Op: "put", ID: o.ID, Err: rma.CodeError(r.Code)})
	}
}

// ackable is how many frames the peer can have applied: the messages of a begun batch one by one, the last of them only
// when all of it is written.
func (g *Generation) ackable() uint64 {
	if g.restOf > 1 {
		return g.whole + uint64(g.restOf) - 1
	}
	return g.whole
}

// advance takes frames up to count off the generation: they are applied at the peer.
func (g *Generation) advance(count uint64) error {
	s := g.s
	if count > g.ackable() {
		if g.writing {
			g.ackSoon = max(g.ackSoon, count)
			return nil
		}
		return protocolError("an acknowledgement of %d frames; only %d have been written to the end", count, g.ackable())
	}
	if count <= g.acked {
		return nil
	}
	for g.acked < count {
		it := g.items.front()
		if it.seg != nil {
			g.ackSegment(it, count)
			continue
		}
		done := g.items.pop()
		g.acked++
		g.landedItem(&done)
		if o := done.op; o != nil {
			s.spent(o)
			s.progress(o)
		}
	}
	g.measure(s.now)
	s.judgeSuspects()
	if g.suspect { // a bucket that has drained may leave a suspect lane
		s.flushPending()
	}
	if g.offers.len() > 0 || g.small.len() > 0 || g.segs.len() > 0 {
		s.wake(g)
	}
	return nil
}

// landedItem does the sums for a frame that is acknowledged.
func (g *Generation) landedItem(it *item) {
	g.inFlight -= uint64(it.bytes)
	g.ackedBy += uint64(it.bytes)
	if it.bulk {
		if g.bulk -= int(it.bytes); g.bulk == 0 {
			g.dryAt = g.s.now
		}
	}
	switch it.kind {
	case wire.KindChunk:
		g.chunks--
	case wire.KindPlaced:
		g.chunks--
		g.card.acked++
	case wire.KindForget:
		g.s.forgetting -= len(it.forget)
	default:
	}
}

// ackSegment takes acknowledged messages off a segment, and the segment when all are.
func (g *Generation) ackSegment(it *item, count uint64) {
	k := min(uint64(it.frames), count-g.acked)
	for i := range k {
		f := &it.seg.frames[it.at+i]
		if o := f.large; o != nil {
			g.s.spent(o)
			g.s.progress(o)
		} else {
			g.s.left(f.wave)
		}
	}
	g.acked += k
	g.qAcked += k
	g.timeAcked()
	it.frames -= uint32(k)
	it.at += k
	if it.frames == 0 {
		done := g.items.pop()
		g.landedItem(&done)
		g.s.freeSegment(done.seg)
	}
}

// measure updates the lane's rate from what was acknowledged since it became busy.
func (g *Generation) measure(now time.Duration) {
	dt := now - g.rateAt
	bytes := g.ackedBy - g.rateFrom
	// Ten milliseconds of a slow lane, or what a fast one carries in one go.
	if bytes < uint64(min(64<<10, g.s.cfg.LaneBulk)) || (dt < 10*time.Millisecond && (bytes < 1<<20 || dt < 200*time.Microsecond)) {
		return
	}
	sample := float64(bytes) / dt.Seconds()
	if l := g.lane; l.Rate == 0 {
		l.Rate = sample
	} else {
		l.Rate += (sample - l.Rate) * 0.3
	}
	g.rateAt, g.rateFrom = now, g.ackedBy
}
