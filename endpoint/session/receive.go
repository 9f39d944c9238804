package session

import (
	"errors"
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// Delivery is one message for an actor of ours. Its slices are valid until Delivered is called.
type Delivery struct {
	Target, Sender, Type *Name // Sender may be nil
	System               bool
	Headers, Payload     []byte
	// Owned: Payload is nobody else's (a large message); it may be kept.
	Owned bool
	// Cost is what Consumed gives back once the message has left our hands; 0 for system messages and notifications.
	Cost uint64
}

// landing is the payload that is being read.
type landing struct {
	kind   wire.Kind
	left   int    // bytes of the body still to come
	size   int    // bytes of the body
	dst    []byte // where they go; nil: discarded
	region *rma.Region
	id     wire.OpID
	op     *Op // get: whose Data dst is
	asm    *assembly
	code   wire.Code // put: why it is refused
	notify bool
	total  uint64
	final  bool
	pinned bool
}

// discardSize is how much of an unwanted payload is read in one call.
const discardSize = 64 << 10

// Want opens the bracket of a read call: where the next bytes go.
func (g *Generation) Want(now time.Duration, sc *rma.Scatter) error {
	s := g.s
	s.now = now
	if g.fenced || s.closed != nil {
		return ErrFenced
	}
	if g.buf == nil {
		g.buf = make([]byte, receiveBuffer)
	}
	*sc = rma.Scatter{}
	g.reading = true
	if g.land.left == 0 {
		if g.r > 0 {
			g.w = copy(g.buf, g.buf[g.r:g.w])
			g.r = 0
		}
		sc.First = g.buf[g.w:]
		return nil
	}
	n := min(g.land.left, s.cfg.MaxChunk)
	if dst := g.destination(); dst != nil {
		sc.First, sc.Region = dst[:n], g.land.region
	} else {
		n = min(n, discardSize)
		if len(g.waste) < n {
			g.waste = make([]byte, discardSize)
		}
		sc.First = g.waste[:n]
	}
	if n == g.land.left { // exactly one header behind the payload
		g.r, g.w = 0, 0
		sc.Then = g.buf[:wire.HeaderSize]
	}
	return nil
}

// destination says again where the landing payload goes: an operation canceled, or a region revoked, since the last
// read call takes no more of it.
func (g *Generation) destination() []byte {
	l := &g.land
	if l.dst == nil {
		return nil
	}
	switch {
	case l.region != nil:
		if g.s.tombs[l.id] != nil {
			l.dst = nil
			g.s.stats.ChunksDiscarded++
		} else if l.region.Revoked() {
			l.dst, l.code = nil, wire.CodeRevoked
		}
	case l.op != nil:
		if l.op.ended {
			l.dst = nil
		} else {
			l.op.pins++
			l.pinned = true
		}
	}
	return l.dst
}

// Got closes the bracket of a read call: n bytes have come. Where it returns deliveries the bracket stays open until
// Delivered; an error that Got meets behind them is Delivered's.
func (g *Generation) Got(now time.Duration, sc *rma.Scatter, n int) ([]Delivery, error) {
	s := g.s
	s.now = now
	if !g.reading {
		return nil, errors.New("session: Got without Want")
	}
	s.stats.BytesIn += uint64(n)
	g.lane.BytesIn += uint64(n)
	if l := &g.land; l.pinned {
		l.pinned = false
		s.unpin(l.op)
	}
	if n > 0 {
		g.heard = now
		g.take(n, len(sc.First))
	}
	if s.closed == nil { // what came after the end is nobody's: no ack will cover it
		if err := g.parse(); err != nil {
			g.err, g.rejected = err, true
		}
	}
	if d := g.nextDeliveries(); len(d) > 0 {
		return d, nil
	}
	return nil, g.closeRead()
}

// take notes where n bytes went: the first of the landing payload, what is behind it in the buffer.
func (g *Generation) take(n, first int) {
	l := &g.land
	if l.left == 0 {
		g.w += n
		return
	}
	k := min(n, first)
	if l.dst != nil {
		l.dst = l.dst[k:]
	}
	l.left -= k
	g.w += n - k
	if l.left == 0 {
		g.landed()
	}
}

// Delivered says that what Got (or Delivered) returned has been delivered: it counts now. There may be more,
// that was held behind it.
func (g *Generation) Delivered(now time.Duration) ([]Delivery, error) {
	s := g.s
	s.now = now
	clear(g.deliver)
	g.deliver = g.deliver[:0]
	if d := g.nextDeliveries(); len(d) > 0 {
		return d, nil
	}
	return nil, g.closeRead()
}

// closeRead ends the bracket: what was parsed is applied, and counts.
func (g *Generation) closeRead() error {
	s := g.s
	g.reading = false
	if g.parsed > 0 {
		s.workAt = s.now
		g.applied += g.parsed
		g.parsed = 0
		if len(s.tombs) > 0 {
			s.buryTombs()
		}
		g.ackDue()
	}
	s.verdictsDue(g)
	if g.fenced {
		s.quieten(g)
	}
	err := g.err
	g.err = nil
	return err
}

// ackDue decides when what was applied is acknowledged: at once if somebody waits for it, else soon, in the hope of company.
func (g *Generation) ackDue() {
	s := g.s
	switch {
	case g.ackNow, g.ackBytes >= 256<<10:
		g.ackNow = true
		s.wakeAs(g, g.offers.len() == 0 && g.segs.len() == 0)
	case g.ackAt == 0:
		g.ackAt = s.now + s.cfg.AckDelay
		s.due = true
	}
}

// parse works off the buffer as far as whole units are there.
func (g *Generation) parse() error {
	for g.land.left == 0 {
		b := g.buf[g.r:g.w]
		if g.batch > 0 {
			ok, err := g.parseRecord(b[:min(len(b), g.batch)])
			if err != nil {
				return err
			}
			if !ok {
				return nil
			}
			continue
		}
		if len(b) < wire.HeaderSize {
			return nil
		}
		ok, err := g.parseFrame(b)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
	}
	return nil
}

// parseFrame takes one header, and its body where that belongs to the header, off the buffer. False: more bytes are needed.
func (g *Generation) parseFrame(b []byte) (bool, error) {
	h, err := wire.ParseHeader(b)
	if err != nil {
		return false, broken(err)
	}
	head := b[:wire.HeaderSize]
	switch h.Kind {
	case wire.KindBatch:
		f, err := wire.ParseBatch(h, head)
		if err != nil {
			return false, broken(err)
		}
		g.r += wire.HeaderSize
		g.batch, g.batchN = int(f.Size), int(f.Count)
		return true, nil
	case wire.KindChunk, wire.KindMessageChunk, wire.KindGetData:
		g.r += wire.HeaderSize
		if err := g.startLanding(h, head); err != nil {
			return false, err
		}
		g.landBuffered()
		return true, nil
	case wire.KindPlaced:
		g.r += wire.HeaderSize
		return true, g.placedIn(h, head)
	default: // taken whole
	}
	size := wire.HeaderSize + int(h.Body)
	if size > receiveBuffer || h.Kind.Handshake() {
		return false, protocolError("a %v frame of %d bytes where none is due", h.Kind, size)
	}
	if len(b) < size {
		return false, nil
	}
	g.r += size
	body := b[wire.HeaderSize:size]
	if h.Kind.Counted() {
		if err := g.countedIn(h, head, body); err != nil {
			return false, err // it does not count: Rejected is about the frame behind the count
		}
		g.parsed++
		return true, nil
	}
	return true, g.controlIn(h, head, body)
}

func broken(err error) error { return fmt.Errorf("%w: %w", ErrProtocol, err) }

// landBuffered takes what the buffer already has of a payload.
func (g *Generation) landBuffered() {
	l := &g.land
	have := g.buf[g.r:min(g.w, g.r+l.left)]
	if len(have) > 0 && l.dst != nil {
		switch {
		case l.region != nil:
			switch {
			case g.s.tombs[l.id] != nil:
				l.dst = nil
			case !l.region.Enter():
				l.dst, l.code = nil, wire.CodeRevoked
			default:
				copy(l.dst, have)
				l.region.Leave()
			}
		default:
			copy(l.dst, have)
		}
		if l.dst != nil {
			l.dst = l.dst[len(have):]
		}
	}
	g.r += len(have)
	l.left -= len(have)
	if l.left == 0 {
		g.landed()
	}
}

// countedIn applies the small counted frames.
func (g *Generation) countedIn(h wire.Header, head, body []byte) error {
	s := g.s
	switch h.Kind {
	case wire.KindGetRequest:
		f, err := wire.ParseGetRequest(h, head)
		if err != nil {
			return broken(err)
		}
		g.ackBytes += wire.HeaderSize
		return s.getIn(f)
	case wire.KindGetDone:
		f, err := wire.ParseGetDone(h, head)
		if err != nil {
			return broken(err)
		}
		return s.getDoneIn(f)
	case wire.KindNotify:
		op, rec, err := wire.ParseNotify(h, head, body)
		if err != nil {
			return broken(err)
		}
		g.ackNow = true
		return g.notifyIn(op, &rec)
	case wire.KindForget:
		f, err := wire.ParseForget(h, head, body)
		if err != nil {
			return broken(err)
		}
		for _, op := range f.Ops {
			delete(s.tracked, op)
		}
		return nil
	default:
		return protocolError("a %v frame where none is due", h.Kind)
	}
}

// controlIn applies the uncounted frames.
func (g *Generation) controlIn(h wire.Header, head, body []byte) error {
	s := g.s
	switch h.Kind {
	case wire.KindBeat:
		f, err := wire.ParseBeat(h, head)
		if err != nil {
			return broken(err)
		}
		return g.beatIn(s.now, f)
	case wire.KindAck:
		f, err := wire.ParseAck(h, head, body)
		if err != nil {
			return broken(err)
		}
		return g.ackIn(f)
	case wire.KindCredit:
		f, err := wire.ParseCredit(h, head)
		if err != nil {
			return broken(err)
		}
		s.creditIn(f.Granted)
		return nil
	case wire.KindRetired:
		f, err := wire.ParseRetired(h, head, body)
		if err != nil {
			return broken(err)
		}
		return s.retiredIn(g, &f)
	case wire.KindCancel:
		f, err := wire.ParseCancel(h, head, body)
		if err != nil {
			return broken(err)
		}
		return g.cancelIn(f)
	case wire.KindVerdict:
		f, err := wire.ParseVerdict(h, head)
		if err != nil {
			return broken(err)
		}
		s.verdictIn(f)
		return nil
	case wire.KindMap:
		f, err := wire.ParseMap(h, head)
		if err != nil {
			return broken(err)
		}
		return g.mapIn(f)
	case wire.KindMapped:
		f, err := wire.ParseMapped(h, head)
		if err != nil {
			return broken(err)
		}
		return g.mappedIn(f)
	case wire.KindGoodbye:
		f, err := wire.ParseGoodbye(h, head, body)
		if err != nil {
			return broken(err)
		}
		return s.goodbyeIn(f)
	default:
		return protocolError("a %v frame where none is due", h.Kind)
	}
}

// goodbyeIn: the peer leaves; its final counts settle what was under way.
func (s *Session) goodbyeIn(f wire.Goodbye) error {
	for _, m := range f.Marks {
		if int(m.Rail) < len(s.lanes) && s.lanes[m.Rail] != nil {
			if g := s.lanes[m.Rail].Find(m.Generation); g != nil && m.Frame <= g.ackable() {
				if err := g.advance(m.Frame); err != nil {
					return err
				}
			}
		}
	}
	if !s.peerLeft { // it is said on every lane
		s.peerLeft = true
		s.effect(Effect{Kind: PeerLeft, Err: rma.ErrEndpointDown})
	}
	return nil
}
