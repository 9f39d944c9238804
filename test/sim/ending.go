package main

import (
	"errors"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
)

// Ending is how a world ends.
type Ending uint8

// The endings: all work is done in peace; one end breaks off in the middle; one end says goodbye while the other works on.
const (
	Peace Ending = iota
	BreakOff
	Goodbye
)

// byeLimit is how long a goodbye may take on paths that work.
const byeLimit = 20 * time.Second

// breakOff has one end close its session in the middle of everything, and the other one later.
func (w *World) breakOff() {
	p := w.pairs[0]
	w.agreed(p)
	w.calm = true
	first := p.end(w.number(0, 1))
	first.node.soon("close", func() { first.close(errOver) })
	w.Run(w.now+w.between(0, 700*time.Millisecond), nil)
	first.peer.node.soon("close", func() { first.peer.close(errOver) })
	for _, path := range p.paths {
		path.heal()
	}
	w.over(first, first.peer)
}

// sayGoodbye has one end leave in good order while the other goes on working.
func (w *World) sayGoodbye() {
	p := w.pairs[0]
	w.agreed(p)
	w.calm = true
	for _, path := range p.paths {
		path.heal()
	}
	leaver := p.end(w.number(0, 1))
	stayer := leaver.peer
	stayer.app.goesOn = true
	stayer.app.next()
	leaver.note("leaves")
	leaver.s.Leave()
	leaver.app.backlog = nil
	leaver.app.refusedNow()
	if !w.Run(w.now+calmLimit, func() bool { return len(leaver.app.open) == 0 && !leaver.s.Open() }) {
		w.violate("%s wants to leave, and its work is not done after %s:\n%s", leaver, calmLimit, w.left())
	}
	if n := leaver.app.outbox.open; n > 0 && len(stayer.s.Fenced()) == 0 {
		w.violate("%s has nothing open, and %d of its messages have not arrived", leaver, n)
	}
	leaver.s.SayGoodbye(leaver.now())
	leaver.pump()
	if !w.Run(w.now+byeLimit, func() bool { return stayer.left }) {
		w.violate("%s said goodbye (%v), and its peer has not heard it", leaver, leaver.s.SaidGoodbye())
	}
	stayer.app.goesOn = false
	leaver.node.soon("close", func() { leaver.close(errOver) })
	w.over(leaver, stayer)
	if w.opt.Return {
		w.meetAgain(p, leaver.epoch)
	}
}

// meetAgain has two nodes of which one had said goodbye begin another epoch, as a policy's end or a bug has it: nothing of the old one
// is in it, and all that it is for works.
func (w *World) meetAgain(p *Pair, old *Epoch) {
	w.agreed(p)
	for side := range 2 {
		e := p.end(side)
		if e.epoch == old {
			w.violate("%s lives on in %s after a goodbye", e, old)
		}
		e.app.goesOn = true
		e.app.next()
	}
	w.Run(w.now+w.between(50*time.Millisecond, 500*time.Millisecond), nil)
	for side := range 2 {
		p.end(side).app.goesOn = false
	}
	w.settleDown()
}

// agreed lets the world go on until the two nodes have a session.
func (w *World) agreed(p *Pair) {
	both := func() bool {
		a, b := p.end(0), p.end(1)
		return a != nil && b != nil && a.agreed && b.agreed
	}
	if both() {
		return
	}
	w.calm = true
	for _, path := range p.paths {
		path.heal()
	}
	if !w.Run(w.now+calmLimit, both) {
		w.violate("two nodes have no session after %s:\n%s", calmLimit, w.left())
	}
}

// refusedNow: an end that leaves takes no new work.
func (a *App) refusedNow() {
	a.orders++
	k := &work{app: a, kind: session.Flush, id: a.nextID(), order: a.orders, evil: rma.ErrShutdown,
		op: session.Op{Kind: session.Flush}}
	a.begin(k)
	err := a.e.s.Send(a.e.now(), &session.Message{Target: a.e.s.Intern("nobody"), Type: a.e.s.Intern("none")})
	if !errors.Is(err, rma.ErrShutdown) {
		a.w.violate("%s takes a message while it leaves: %v", a.e, err)
	}
}

// over waits until both ends are over; what they leave behind is checked by then.
func (w *World) over(ends ...*End) {
	done := func() bool {
		for _, e := range ends {
			if !e.over {
				return false
			}
		}
		return true
	}
	if !w.Run(w.now+byeLimit, done) {
		w.violate("two sessions were closed, and are not over after %s:\n%s", byeLimit, w.left())
	}
	w.Run(w.now+2*time.Second, nil)
}

// undelivered takes back a message that the session has given up. It may have arrived all the same.
func (a *App) undelivered(m *session.Message, err error) {
	if !a.e.ended || !errors.Is(err, a.e.cause) {
		a.w.violate("%s gave up a message to %s: %v", a.e, m.Target, err)
	}
	a.outbox.givenUp(m)
}
