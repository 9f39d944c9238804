package main

import (
	"fmt"
	"strings"
	"time"

	"railyard/endpoint/session"
)

// calmLimit is how long everything may take after the last fault has healed: the longest wait for a redial, a
// suspicion, a join and a mailbox, and the work that is left.
const calmLimit = 60 * time.Second

// settleDown heals everything, lets no new work begin, and waits until all is done.
//
// In some worlds one path of each pair stays a black hole until then: what it carried must find another way.
func (w *World) settleDown() {
	w.calm = true
	for _, p := range w.pairs {
		p.lost = -1
		if w.opt.LanesLost && len(p.paths) > 1 && w.fault(FaultLost) {
			p.lost = w.number(0, len(p.paths)-1)
		}
		for i, path := range p.paths {
			if i != p.lost {
				path.heal()
			} else {
				path.dir[0].block()
				path.dir[1].block()
			}
		}
	}
	w.note("all is healed, where it will be; no new work")
	if !w.Run(w.now+calmLimit, w.done) {
		w.violate("not done %s after the last fault has healed:\n%s", calmLimit, w.left())
	}
	for _, p := range w.pairs {
		if p.lost >= 0 {
			p.paths[p.lost].heal()
			p.lost = -1
		}
	}
	w.note("all is healed and done")
	if w.Run(w.now+calmLimit, w.done) {
		w.Run(w.now+3*time.Second, nil) // what is owed without hurry: forgets, acknowledgements, beats
		if w.Run(w.now+calmLimit, w.done) {
			return
		}
	}
	w.violate("not all rails are back %s after the last path has healed:\n%s", calmLimit, w.left())
}

// done tells whether every promise about progress is kept.
func (w *World) done() bool {
	for _, n := range w.nodes {
		if n.thaw > w.now {
			return false
		}
		for _, e := range n.ends {
			if e.app.busy() || e.s.Open() || len(e.fx) > 0 {
				return false
			}
			for _, r := range e.rails {
				if int(r.id) != e.pair.lost && (r.carrier == nil || !r.carrier.gen.Usable()) {
					return false
				}
			}
		}
	}
	return true
}

func (a *App) busy() bool {
	return len(a.open) > 0 || len(a.backlog) > 0 || a.inbox.open > 0 || a.unconsumed > 0
}

// left says what is not done.
func (w *World) left() string {
	var b strings.Builder
	for _, n := range w.nodes {
		for _, e := range n.ends {
			fmt.Fprintf(&b, "  %s: %d operations open, %d messages without room, %d not arrived, session open: %v, %+v\n",
				e, len(e.app.open), len(e.app.backlog), e.app.inbox.open, e.s.Open(), e.s.Sizes())
			for _, k := range e.app.open[:min(len(e.app.open), 5)] {
				fmt.Fprintf(&b, "    %s of %d bytes, session's number %d, canceled: %v\n", k.name(), k.n, k.op.ID, k.canceled)
			}
			for _, r := range e.rails {
				fmt.Fprintf(&b, "    rail %d: %s\n", r.id, r.state())
			}
		}
	}
	return b.String()
}

func (r *railEnd) state() string {
	c := r.carrier
	if c == nil {
		return fmt.Sprintf("no connection (dialing: %v)", r.dialing)
	}
	return fmt.Sprintf("generation %d, usable: %v, suspect: %v, %d bytes in flight, socket: %v",
		c.gen.ID, c.gen.Usable(), c.suspect, c.gen.BytesInFlight(), c.sock.err)
}

// checkEnd is the last look at everything.
func (w *World) checkEnd() {
	for _, n := range w.nodes {
		for _, e := range n.ends {
			a := e.app
			for _, r := range a.areas {
				r.check("at the end")
			}
			a.sealed[session.Put].check("at the end, and nobody may put there")
			a.sealed[session.Get].check("at the end, and no put ever named it")
			for _, g := range a.graves {
				w.look(g)
			}
			for _, k := range a.owed {
				if k.notified != 1 {
					w.violate("%s completed, and its notification has never come", k.name())
				}
			}
			if !e.ended {
				e.boundsCheck()
			}
			st := e.s.Stats()
			w.Count.ReroutedFrames += st.ReroutedFrames
			w.Count.ReroutedBytes += st.ReroutedBytes
		}
	}
}

// boundsCheck: with nothing under way a session keeps nothing, and all of the peer's window is free again, but for the eighth
// that the peer does not say at once.
func (e *End) boundsCheck() {
	z := e.s.Sizes()
	e.leftCheck(z.Exposed)
	z.Names, z.Remote, z.Exposed = 0, 0, 0
	if z != (session.Sizes{}) {
		e.w.violate("%s keeps something though nothing is under way: %+v", e, z)
	}
	window := int(e.s.Config().PeerWindow)
	if !e.s.Room(window-window/8-session.MessageOverhead, 0) {
		e.w.violate("%s finds no room in the peer's window of %d though nothing is under way", e, window)
	}
}
