package main

import (
	"errors"
	"fmt"
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

// errOver is what the open operations of an end that is over complete with.
var errOver = fmt.Errorf("sim: this end is over: %w", rma.ErrEndpointDown)

// byeLimit is how long a goodbye may take on paths that work.
const byeLimit = 20 * time.Second

// close ends the session of this end. Its generations are killed, and no rail of it comes back.
func (e *End) close() {
	if e.ended {
		return
	}
	e.ended = true
	e.note("the session is over")
	e.s.Close(e.now(), errOver)
	e.pump()
}

// breakOff has one end close its session in the middle of everything, and the other one later.
func (w *World) breakOff() {
	w.calm = true
	p := w.pairs[0]
	first := p.ends[w.number(0, 1)]
	first.node.soon("close", first.close)
	w.Run(w.now+w.between(0, 700*time.Millisecond), nil)
	first.peer.node.soon("close", first.peer.close)
	for _, path := range p.paths {
		path.heal()
	}
	w.over(p)
}

// sayGoodbye has one end leave in good order while the other goes on working.
func (w *World) sayGoodbye() {
	w.calm = true
	p := w.pairs[0]
	for _, path := range p.paths {
		path.heal()
	}
	leaver := p.ends[w.number(0, 1)]
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
	if n := stayer.app.inbox.open; n > 0 && len(stayer.s.Fenced()) == 0 {
		w.violate("%s has nothing open, and %d of its messages have not arrived", leaver, n)
	}
	leaver.s.SayGoodbye(leaver.now())
	leaver.pump()
	if !w.Run(w.now+byeLimit, func() bool { return stayer.left }) {
		w.violate("%s said goodbye (%v), and its peer has not heard it", leaver, leaver.s.SaidGoodbye())
	}
	stayer.app.goesOn = false
	leaver.node.soon("close", leaver.close)
	w.over(p)
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

// over waits until both ends of the pair are over, and checks what they leave behind.
func (w *World) over(p *Pair) {
	done := func() bool {
		for _, e := range p.ends {
			if !e.ended || len(e.fx) > 0 || len(e.app.open) > 0 || e.s.OpenOps() > 0 {
				return false
			}
		}
		return p.lives.allQuiet()
	}
	if !w.Run(w.now+byeLimit, done) {
		w.violate("two sessions were closed, and are not over after %s:\n%s", byeLimit, w.left())
	}
	// Nobody touches anything any more.
	for _, e := range p.ends {
		for _, k := range e.app.dangling {
			k.slot.over(k.name(), false)
		}
		e.app.inbox.overCheck()
	}
	w.Run(w.now+2*time.Second, nil)
}

// undelivered takes back a message that the session has given up. It may have arrived all the same.
func (a *App) undelivered(m *session.Message, err error) {
	if !a.e.ended || !errors.Is(err, errOver) {
		a.w.violate("%s gave up a message to %s: %v", a.e, m.Target, err)
	}
	a.e.peer.app.inbox.givenUp(m)
}
