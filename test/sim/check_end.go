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

// settleDown heals everything, lets no new work begin, and waits until all is done in the newest epochs.
//
// In some worlds one path of each pair stays a black hole until then: what it carried must find another way. Some paths
// sleep for minutes; then what they have swallowed comes out.
func (w *World) settleDown() {
	w.calm = true
	for _, p := range w.pairs {
		if w.opt.LanesLost && len(p.paths) > 1 && w.fault(FaultLost) {
			p.lost = w.number(0, len(p.paths)-1)
		}
		for i, path := range p.paths {
			switch {
			case i == p.lost:
				path.dir[0].block()
				path.dir[1].block()
			case !path.asleep:
				path.heal()
			}
		}
	}
	w.reviveAll()
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
	w.wakeUp()
	w.note("all is healed and done")
	if w.Run(w.now+calmLimit, w.done) {
		w.Run(w.now+3*time.Second, nil) // what is owed without hurry: forgets, acknowledgements, beats
		if w.Run(w.now+calmLimit, w.done) {
			return
		}
	}
	w.violate("not all rails are back %s after the last path has healed:\n%s", calmLimit, w.left())
}

// done tells whether every promise about progress is kept: each two nodes that live and can talk have one session, with nothing
// left to do and all its rails up; and nobody has one with the dead.
func (w *World) done() bool {
	for _, n := range w.nodes {
		if !n.dead && n.thaw > w.now {
			return false
		}
	}
	for _, p := range w.pairs {
		if !p.done() {
			return false
		}
	}
	return true
}

func (p *Pair) done() bool {
	for side, n := range p.nodes {
		if n.dead {
			continue
		}
		us := n.peers[p.nodes[1-side].id]
		if us.former != nil && !us.former.over {
			return false
		}
	}
	a, b := p.end(0), p.end(1)
	if p.nodes[0].dead || p.nodes[1].dead {
		return (a == nil || !a.agreed) && (b == nil || !b.agreed)
	}
	if !p.awake() {
		return true
	}
	return a != nil && b != nil && a.agreed && b.agreed && a.peer == b && b.peer == a && a.done() && b.done()
}

// awake tells whether any path is neither lost nor asleep.
func (p *Pair) awake() bool {
	for i, path := range p.paths {
		if i != p.lost && !path.asleep {
			return true
		}
	}
	return false
}

// done tells whether the end has nothing to do, and all its rails.
func (e *End) done() bool {
	if e.app.busy() || e.s.Open() || len(e.fx) > 0 {
		return false
	}
	for _, r := range e.rails {
		if int(r.id) != e.pair.lost && !r.path.asleep && (r.carrier == nil || !r.carrier.gen.Usable()) {
			return false
		}
	}
	return true
}

func (a *App) busy() bool {
	return len(a.open) > 0 || len(a.backlog) > 0 || a.outbox.open > 0 || a.unconsumed > 0
}

// left says what is not done.
func (w *World) left() string {
	var b strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "  node %d, incarnation %d, dead: %v, stopped for %s\n", n.id, n.life, n.dead, max(0, n.thaw-w.now))
	}
	for _, e := range w.all {
		if e.over || e.node.dead {
			continue
		}
		fmt.Fprintf(&b, "  %s in %s (agreed: %v, opener: %v, ended: %v): %d operations open, %d messages without room, %d not arrived, "+
			"session open: %v, silent: %v, %+v\n", e, e.epoch, e.agreed, e.opener, e.ended, len(e.app.open), len(e.app.backlog),
			e.app.outbox.open, e.s.Open(), e.s.Silent(), e.s.Sizes())
		for _, k := range e.app.open[:min(len(e.app.open), 5)] {
			fmt.Fprintf(&b, "    %s of %d bytes, session's number %d, canceled: %v\n", k.name(), k.n, k.op.ID, k.canceled)
		}
		for _, r := range e.rails {
			fmt.Fprintf(&b, "    rail %d: %s\n", r.id, r.state())
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
		if !n.dead {
			n.memoryCheck()
		}
	}
	for _, e := range w.all {
		a := e.app
		for _, g := range a.graves {
			w.look(g)
		}
		for _, k := range a.owed {
			if k.notified != 1 && !e.peer.ended && !e.peer.node.dead {
				w.violate("%s completed, and its notification has never come", k.name())
			}
		}
		if e.agreed && !e.ended && !e.peer.ended && !e.node.dead && !e.peer.node.dead {
			e.boundsCheck()
		}
		st := e.s.Stats()
		w.Count.ReroutedFrames += st.ReroutedFrames
		w.Count.ReroutedBytes += st.ReroutedBytes
	}
}

// memoryCheck looks at all memory of a node.
func (n *Node) memoryCheck() {
	for _, p := range n.peers {
		if p == nil {
			continue
		}
		for _, r := range p.home.areas {
			r.check("at the end")
		}
		p.home.sealed[session.Put].check("at the end, and nobody may put there")
		p.home.sealed[session.Get].check("at the end, and no put ever named it")
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
