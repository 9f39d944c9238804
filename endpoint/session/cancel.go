package session

import (
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// cancel is one operation taken back, until the target's verdict.
type cancel struct {
	op    *Op
	id    wire.OpID
	marks []wire.Mark
	at    time.Duration // when it is said again
	every time.Duration
}

// Cancel takes an operation back (rule 14). It ends with ErrCanceled, or as it had ended before the target heard of
// it. Every lane that carries it is told once by a Withdrawn effect.
func (s *Session) Cancel(now time.Duration, o *Op) {
	s.now = now
	if o.ended || o.canceling {
		return
	}
	if o.Kind == Get || (!o.begun && o.pins == 0) {
		s.withdraw(o)
		s.stats.Canceled++
		s.finish(o, fmt.Errorf("operation %d: %w", o.ID, rma.ErrCanceled))
		return
	}
	o.canceling = true
	o.returned = nil
	s.withdraw(o)
	if o.pins == 0 {
		s.askCancel(o)
	}
}

// Abandon ends an operation whose outcome cannot be learned (P3): its memory is free, bytes already sent may still
// land until the region is revoked or the next epoch begins. The target is still told as soon as it can be.
func (s *Session) Abandon(now time.Duration, o *Op) {
	s.now = now
	s.reopen(o)
	s.finish(o, fmt.Errorf("operation %d: the peer could not be asked in time: %w", o.ID, rma.ErrOutcomeUnknown))
	s.freeSource(o)
}

// reopen takes back the end of an operation that is to be called canceled, and may still land.
func (s *Session) reopen(o *Op) {
	if o.quits && !o.done {
		s.stats.Canceled--
		o.ended, o.quits = false, false
	}
}

// withdraw tells each transport that has work of the operation.
func (s *Session) withdraw(o *Op) {
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if !g.fenced && g.carries(o) {
				s.effect(Effect{Kind: Withdrawn, Gen: g, Op: o})
			}
		}
	}
}

// carries tells whether the operation is offered to, or has frames on, the generation.
func (g *Generation) carries(o *Op) bool {
	for _, have := range o.on {
		if have == g {
			return true
		}
	}
	for _, it := range g.items.all() {
		if it.op == o {
			return true
		}
	}
	return false
}

// Withdraw is the transport's answer to Withdrawn: the operation leaves the generation's queue and Cancel goes out.
func (s *Session) Withdraw(now time.Duration, g *Generation, o *Op) {
	s.now = now
	o.off(g)
	for _, c := range s.cancels {
		if c.op == o && g.live() {
			g.say(control{cancel: c})
			s.wake(g)
		}
	}
}

// askCancel makes the Cancel frame: no socket call names the operation's memory any more, so what has been
// begun on each generation is fixed.
func (s *Session) askCancel(o *Op) {
	for _, c := range s.cancels {
		if c.op == o {
			return
		}
	}
	if !o.begun {
		s.stats.Canceled++
		s.finish(o, fmt.Errorf("operation %d, before its first byte: %w", o.ID, rma.ErrCanceled))
		return
	}
	s.cutLoose(o)
	c := &cancel{op: o, id: o.ID, every: s.cfg.ResendEvery, at: s.now + s.cfg.ResendEvery}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if last := g.lastOf(o); last > 0 && !g.settled {
				c.marks = append(c.marks, wire.Mark{Rail: l.ID, Generation: g.ID, Frame: last})
			}
		}
	}
	o.asking = true
	s.cancels = append(s.cancels, c)
	s.due = true
	s.sayAll(control{cancel: c})
}

// lastOf is the number of the last frame of the operation on the generation; 0: none.
func (g *Generation) lastOf(o *Op) uint64 {
	var last uint64
	n := g.acked
	for i := range g.items.all() {
		it := g.items.at(i)
		n += uint64(it.frames)
		if it.op == o {
			last = n
		}
	}
	return last
}

// verdictIn is the target's answer to a Cancel: final.
func (s *Session) verdictIn(v wire.Verdict) {
	for i, c := range s.cancels {
		if c.id != v.Op {
			continue
		}
		s.cancels = append(s.cancels[:i], s.cancels[i+1:]...)
		c.op.asking = false
		if c.op.ended {
			s.part(c.op)
			return
		}
		switch v.Code {
		case wire.CodeOK:
			s.finish(c.op, nil)
		case wire.CodeCanceled:
			s.stats.Canceled++
			c.op.quits = true
			s.finish(c.op, fmt.Errorf("operation %d: %w", v.Op, rma.ErrCanceled))
		default:
			s.finish(c.op, fmt.Errorf("operation %d: %w", v.Op, rma.CodeError(v.Code)))
		}
		return
	}
}
