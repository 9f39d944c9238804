package session

import (
	"railyard/wire"
)

// hold keeps the order of one target while a large message to it is not whole: what comes behind waits here (rule 12).
//
// Invariant: while owner's bracket is open it alone takes from the queue, so that two readers never deliver
// to one target at a time.
type hold struct {
	target string
	owner  *Generation
	queue  []held
}

// held is a message behind a large one, or a large one's place.
type held struct {
	d   Delivery
	asm *assembly // nil: d is whole
}

// assembly is a large message that is being put together.
type assembly struct {
	id    wire.OpID
	buf   []byte
	got   uint64
	place bool  // the placeholder has come
	hold  *hold // where the place is
}

func (a *assembly) whole() bool { return a.got == uint64(len(a.buf)) }

// parseRecord takes one record off the batch. False: more bytes are needed.
func (g *Generation) parseRecord(b []byte) (bool, error) {
	rec, n, err := wire.NextRecord(b)
	if err != nil {
		return false, broken(err)
	}
	if n == 0 {
		if len(b) == g.batch {
			return false, protocolError("a batch ends inside a record")
		}
		return false, nil
	}
	g.r += n
	g.batch -= n
	g.ackBytes += n
	if rec.Counted() {
		if g.batchN == 0 {
			return false, protocolError("a batch with more messages than it says")
		}
		g.batchN--
	}
	if g.batch == 0 && g.batchN != 0 {
		return false, protocolError("a batch ends %d messages short", g.batchN)
	}
	switch rec.Tag {
	case wire.TagDefine:
		for int(rec.Slot) >= len(g.defs) {
			g.defs = append(g.defs, nil)
		}
		g.defs[rec.Slot] = g.s.peerNames.getBytes(rec.Name)
		return true, nil
	case wire.TagMessage:
		err = g.messageIn(&rec)
	default:
		err = g.placeholderIn(&rec)
	}
	if err != nil {
		return false, err // it does not count: Rejected is about the frame behind the count
	}
	g.parsed++
	return true, nil
}

// name resolves a reference of this stream.
func (g *Generation) name(r wire.RefView) (*Name, error) {
	switch {
	case r.Slot != 0:
		if int(r.Slot) >= len(g.defs) || g.defs[r.Slot] == nil {
			return nil, protocolError("a reference to name %d, which was not defined", r.Slot)
		}
		return g.defs[r.Slot], nil
	case r.Inline != nil:
		return g.s.peerNames.known(r.Inline), nil
	default:
		return nil, nil
	}
}

// envelope makes a delivery of what messages and placeholders share.
func (g *Generation) envelope(rec *wire.Record) (Delivery, error) {
	d := Delivery{System: rec.System(), Headers: rec.Headers}
	var err error
	if d.Target, err = g.name(rec.Target); err != nil {
		return d, err
	}
	if d.Sender, err = g.name(rec.Sender); err != nil {
		return d, err
	}
	d.Type, err = g.name(rec.Type)
	return d, err
}

// charge says what a message costs; it is taken once the frame is accepted. A peer that uses more than it was granted breaks the protocol.
func (s *Session) charge(d *Delivery, payload uint64) error {
	if d.System {
		return nil
	}
	d.Cost = payload + uint64(len(d.Headers)) + MessageOverhead
	if s.received+d.Cost > s.grantSent {
		return protocolError("%d bytes of messages; only %d were granted", s.received+d.Cost, s.grantSent)
	}
	return nil
}

func (g *Generation) messageIn(rec *wire.Record) error {
	s := g.s
	d, err := g.envelope(rec)
	if err != nil {
		return err
	}
	if err := s.charge(&d, uint64(len(rec.Payload))); err != nil {
		return err
	}
	d.Payload = rec.Payload
	s.received += d.Cost
	s.stats.MessagesReceived++
	if len(s.holds) > 0 {
		if h := s.holds[d.Target.S]; h != nil {
			d.Payload, d.Headers, d.Owned = clone(d.Payload), clone(d.Headers), true
			h.queue = append(h.queue, held{d: d})
			return nil
		}
	}
	g.deliver = append(g.deliver, d)
	return nil
}

func (g *Generation) placeholderIn(rec *wire.Record) error {
	s := g.s
	d, err := g.envelope(rec)
	if err != nil {
		return err
	}
	if rec.Total > s.cfg.MaxMessage {
		return protocolError("a message of %d bytes; the limit is %d", rec.Total, s.cfg.MaxMessage)
	}
	if err := s.charge(&d, rec.Total); err != nil {
		return err
	}
	a, err := s.assemble(rec.ID, rec.Total)
	if err != nil {
		return err
	}
	if a.place {
		return protocolError("a second placeholder of message %d", rec.ID)
	}
	s.received += d.Cost
	s.stats.MessagesReceived++
	d.Headers, d.Owned = clone(d.Headers), true
	h := s.holds[d.Target.S]
	if h == nil {
		// What this bracket has for the target is delivered before anybody takes from the hold.
		h = &hold{target: d.Target.S, owner: g}
		g.draining = append(g.draining, h)
		s.holds[d.Target.S] = h
	}
	a.place, a.hold = true, h
	h.queue = append(h.queue, held{d: d, asm: a})
	return nil
}

// nextDeliveries gives what is to be delivered now. When nothing is, the holds that this bracket kept to itself are
// free again, which may make their next messages ready.
func (g *Generation) nextDeliveries() []Delivery {
	if len(g.deliver) == 0 && len(g.draining) > 0 && g.s.closed == nil {
		holds := g.draining
		g.draining = nil
		for _, h := range holds {
			h.owner = nil
			g.drain(h)
		}
	}
	return g.deliver
}

// assemble gives the assembly of a large message, made at the first sign of it.
func (s *Session) assemble(id wire.OpID, total uint64) (*assembly, error) {
	if a := s.assemblies[id]; a != nil {
		if uint64(len(a.buf)) != total {
			return nil, protocolError("message %d has %d bytes and then %d", id, len(a.buf), total)
		}
		return a, nil
	}
	if total > s.cfg.MaxMessage || s.assembling+total > s.cfg.Window {
		return nil, protocolError("a message of %d bytes beside %d of others; the window is %d", total, s.assembling, s.cfg.Window)
	}
	a := &assembly{id: id, buf: make([]byte, total)}
	s.assemblies[id] = a
	s.assembling += total
	return a, nil
}

// pieceLanded counts a piece of a large message; when it is whole and has its place, it is delivered.
func (g *Generation) pieceLanded(a *assembly, n int) {
	a.got += uint64(n)
	if a.whole() && a.place && a.hold.owner == nil {
		g.drain(a.hold)
	}
}

// Held counts, for each target, the messages that wait behind a large one which is not whole. They have been acknowledged; where
// the session ends before they are delivered, only this side knows.
func (s *Session) Held() map[string]int {
	held := make(map[string]int, len(s.holds))
	for target, h := range s.holds {
		for i := range h.queue {
			if e := &h.queue[i]; e.asm == nil || e.asm.whole() {
				held[target]++
			}
		}
	}
	return held
}

// drain takes from the hold what is ready, and the hold away when it is empty.
func (g *Generation) drain(h *hold) {
	s := g.s
	n := 0
	for ; n < len(h.queue); n++ {
		e := &h.queue[n]
		if e.asm != nil {
			if !e.asm.whole() {
				break
			}
			e.d.Payload = e.asm.buf
			delete(s.assemblies, e.asm.id)
			s.assembling -= uint64(len(e.asm.buf))
		}
		g.deliver = append(g.deliver, e.d)
	}
	if n > 0 {
		clear(h.queue[:n]) // what follows stays where it is: a long queue must not be copied for each large message
		h.queue = h.queue[n:]
		h.owner = g
		g.draining = append(g.draining, h)
		return
	}
	if len(h.queue) == 0 {
		delete(s.holds, h.target)
	}
}
