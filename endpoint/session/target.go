package session

import (
	"railyard/rma"
	"railyard/wire"
)

// tombstone says that an operation was canceled: nothing more of it is applied (rule 14).
type tombstone struct {
	marks   []wire.Mark // each generation's last frame of it
	waits   int         // read calls that were in progress on its memory
	verdict bool        // owed once waits is 0
}

// tracked is what the target keeps of an operation with a notification, until the initiator says Forget.
type tracked struct {
	applied, total uint64
	begun          bool // total is known
	empty          bool // the one empty chunk of an empty put has come
	notify         *Delivery
	decided        wire.Code // Canceled: never notified; OK with notified: told
	notified       bool
}

// startLanding decides where the payload of a chunk goes.
func (g *Generation) startLanding(h wire.Header, head []byte) error {
	s := g.s
	l := landing{kind: h.Kind, left: int(h.Body), size: int(h.Body)}
	switch h.Kind {
	case wire.KindChunk:
		f, err := wire.ParseChunk(h, head)
		if err != nil {
			return broken(err)
		}
		l.id, l.notify, l.total = f.Op, f.Notify, f.Total
		if f.Notify {
			if err := s.trackable(f.Op); err != nil {
				return err
			}
		}
		if s.tombs[f.Op] == nil {
			l.region, l.code = s.regions.Check(rma.Claim{Region: f.Region, Token: f.Token, Want: rma.RemoteWrite,
				Offset: f.Base, Length: f.Total})
		}
		if l.region != nil {
			l.dst, _ = l.region.Slice(f.Base+f.Position, uint64(f.Size))
		}
	case wire.KindMessageChunk:
		f, err := wire.ParseMessageChunk(h, head)
		if err != nil {
			return broken(err)
		}
		if l.asm, err = s.assemble(f.ID, f.Total); err != nil {
			return err
		}
		if l.asm.got+uint64(f.Size) > f.Total {
			return protocolError("more pieces of message %d than it has bytes", f.ID)
		}
		l.dst = l.asm.buf[f.Position : f.Position+uint64(f.Size)]
	default:
		f, err := wire.ParseGetData(h, head)
		if err != nil {
			return broken(err)
		}
		l.id, l.final = f.Op, f.Final
		if o := s.ops[f.Op]; o != nil && o.Kind == Get && !o.ended {
			if f.Total != uint64(len(o.Data)) {
				return protocolError("get %d of %d bytes is answered by %d", f.Op, len(o.Data), f.Total)
			}
			l.op, l.dst = o, o.Data[f.Position:f.Position+uint64(f.Size)]
		}
	}
	g.land = l
	return nil
}

// landed counts a chunk whose payload is in place, or has been discarded.
func (g *Generation) landed() {
	s := g.s
	l := g.land
	g.land = landing{}
	g.parsed++
	g.ackBytes += wire.HeaderSize + l.size
	g.ackNow = true
	switch {
	case l.kind == wire.KindMessageChunk:
		g.pieceLanded(l.asm, l.size)
	case l.kind == wire.KindGetData:
		if o := l.op; o != nil && !o.ended {
			o.landed += uint64(l.size)
			o.verdict = o.verdict || l.final
			s.getProgress(o)
		}
	case s.tombs[l.id] != nil:
	case l.code != wire.CodeOK:
		g.refusals = append(g.refusals, wire.Refusal{Frame: g.applied + g.parsed, Op: l.id, Code: l.code})
		delete(s.tracked, l.id)
	case l.notify:
		if t := s.track(l.id); t != nil {
			t.applied += uint64(l.size)
			t.total, t.begun, t.empty = l.total, true, l.total == 0
			g.notifyIfWhole(t)
		}
	}
}

// trackable tells whether a record of the operation can be kept: the peer has MaxOpen at the most, those included that it
// has given up.
func (s *Session) trackable(id wire.OpID) error {
	if len(s.tracked) >= s.cfg.PeerMaxOpen && s.tracked[id] == nil {
		return protocolError("more than %d operations with notifications", s.cfg.PeerMaxOpen)
	}
	return nil
}

// track gives the record of an operation with a notification.
func (s *Session) track(id wire.OpID) *tracked {
	t := s.tracked[id]
	if t == nil {
		t = &tracked{}
		s.tracked[id] = t
	}
	return t
}

// notifyIn takes the message that is due when the operation's last byte is applied (rule 16).
func (g *Generation) notifyIn(id wire.OpID, rec *wire.Record) error {
	s := g.s
	if err := s.trackable(id); err != nil {
		return err
	}
	d, err := g.envelope(rec)
	if err != nil {
		return err
	}
	d.Payload, d.Headers, d.Owned = clone(rec.Payload), clone(rec.Headers), true
	if s.tombs[id] != nil {
		return nil
	}
	t := s.track(id)
	if t.notify != nil || t.notified {
		return protocolError("a second notification for operation %d", id)
	}
	if t.decided == wire.CodeCanceled {
		return nil
	}
	t.notify = &d
	g.notifyIfWhole(t)
	return nil
}

func (g *Generation) notifyIfWhole(t *tracked) {
	if t.notify == nil || !t.begun || t.applied != t.total || t.decided == wire.CodeCanceled {
		return
	}
	t.notified = true
	g.deliver = append(g.deliver, *t.notify)
	t.notify = nil
}

// cancelIn sets the tombstone and answers with the verdict, once no read call is in progress on the memory.
func (g *Generation) cancelIn(f wire.Cancel) error {
	s := g.s
	if t := s.tracked[f.Op]; t != nil {
		if t.notified {
			g.say(control{verdict: &wire.Verdict{Op: f.Op, Code: wire.CodeOK}})
			return nil
		}
		t.decided, t.notify = wire.CodeCanceled, nil
	}
	t := s.tombs[f.Op]
	if t == nil {
		t = &tombstone{marks: f.Marks}
		s.awaitReads(g, f.Op, t)
		if s.passed(t) { // a Cancel that was said again, and comes late: nothing is to be kept of it
			s.sayVerdict(f.Op, t)
			return nil
		}
		if len(s.tombs) >= s.cfg.PeerMaxOpen {
			return protocolError("more than %d canceled operations", s.cfg.PeerMaxOpen)
		}
		s.tombs[f.Op] = t
	}
	t.verdict = true
	if t.waits == 0 {
		s.sayVerdict(f.Op, t)
	}
	return nil
}

// awaitReads has a tombstone wait for the read calls that are in progress on the operation's memory. On the generation from
// that its Cancel came on there is none.
func (s *Session) awaitReads(from *Generation, id wire.OpID, t *tombstone) {
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if g.reading && g.land.left > 0 && g.land.kind == wire.KindChunk && g.land.id == id && g != from {
				t.waits++
				g.awaited = append(g.awaited, id)
			}
		}
	}
}

func (s *Session) sayVerdict(id wire.OpID, t *tombstone) {
	t.verdict = false
	v := &wire.Verdict{Op: id, Code: wire.CodeCanceled}
	s.sayAll(control{verdict: v})
	if s.passed(t) {
		delete(s.tombs, id)
	}
}

// verdictsDue: the read call that some verdicts waited for has ended.
func (s *Session) verdictsDue(g *Generation) {
	for _, id := range g.awaited {
		t := s.tombs[id]
		if t == nil {
			continue
		}
		if t.waits--; t.waits == 0 && t.verdict {
			s.sayVerdict(id, t)
		}
	}
	g.awaited = g.awaited[:0]
}

// passed tells whether every generation that carried the operation is past its last frame, or cut off.
func (s *Session) passed(t *tombstone) bool {
	if t.waits > 0 {
		return false
	}
	for _, m := range t.marks {
		if int(m.Rail) >= len(s.lanes) || s.lanes[m.Rail] == nil {
			continue
		}
		l := s.lanes[m.Rail]
		g := l.Find(m.Generation)
		if g == nil {
			if l.awaits(m.Generation) { // its frames may still come
				return false
			}
			continue
		}
		if !g.quiet && g.applied < m.Frame {
			return false
		}
	}
	return true
}

// buryTombs drops the tombstones that nothing can meet any more.
func (s *Session) buryTombs() {
	for id, t := range s.tombs {
		if !t.verdict && s.passed(t) {
			delete(s.tombs, id)
		}
	}
}
