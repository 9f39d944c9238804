package main

import (
	"errors"

	"railyard/endpoint/session"
)

// agreedCheck: an epoch begins at a node only when nothing of an earlier one with the same peer can be applied there any more,
// and with a peer that is not dead for another session's sake.
func (e *End) agreedCheck() {
	for _, old := range e.w.all {
		if old == e || old.node != e.node || old.pair != e.pair {
			continue
		}
		if !old.ended {
			e.w.violate("%s agrees on %s while %s lives there", e, e.epoch, old.epoch)
		}
		for k, l := range old.epoch.lives.lives {
			if g := l.gens[e.side]; g != nil && !g.IsQuiet() {
				e.w.violate("%s agrees on %s while generation %d of rail %d of %s may still apply",
					e, e.epoch, k.gen, k.rail, old.epoch)
			}
		}
	}
}

// verdictCheck: what a stranger plays back changes nothing, and of two that open at once one yields.
func (a *acceptance) verdictCheck(v session.Verdict) {
	switch v {
	case session.Joins, session.Opens, session.Replaces, session.Yields:
		if a.h.played {
			a.n.w.violate("node %d takes a hello of %s that was played back by a stranger", a.n.id, a.h.from)
		}
		if from := a.h.from; v != session.Joins && from.agreed && from.epoch == a.h.epoch {
			a.n.w.violate("node %d opens %s anew; %s lives in it already", a.n.id, a.h.epoch, from)
		}
		if v == session.Yields && a.h.from.epoch != a.h.epoch {
			a.n.w.violate("%s yields to a session that %s has given up for its own", a.n.peers[a.from()].end, a.h.from)
		}
	default: // refused: nothing changes
	}
}

// closeCheck: an end is over for a reason. What the peer did, it has done.
func (e *End) closeCheck(cause error) {
	p := e.peer
	switch {
	case errors.Is(cause, errRestarted):
		if p == nil || !p.node.dead {
			e.w.violate("%s ends %s because its peer is another incarnation; it is not", e, e.epoch)
		}
	case errors.Is(cause, errReplaced), errors.Is(cause, errForgotten):
		if p != nil && !p.ended && !p.node.dead && p.peer == e {
			e.w.violate("%s ends %s (%v); its peer has not", e, e.epoch, cause)
		}
	}
}

// overCheck: an end that is over keeps nothing open, and has given back what it does not know to have arrived. Its memory is
// touched by nothing of the epoch from now on.
func (e *End) overCheck() {
	w := e.w
	if n := len(e.app.open); n > 0 || e.s.OpenOps() > 0 {
		w.violate("%s is over, with %d operations open (the session counts %d)", e, n, e.s.OpenOps())
	}
	z := e.s.Sizes()
	if z.Ops+z.Bodies+z.Owed+z.Cancels+z.Forget+z.Pending > 0 {
		w.violate("%s is over and keeps work: %+v", e, z)
	}
	for _, other := range e.epoch.ends {
		if other.peer == e {
			other.app.landed()
		}
		if other.peer == e || e.peer == other {
			arrivedCheck(e, other)
			arrivedCheck(other, e)
		}
	}
}

// gone tells whether the end can neither send nor apply anything any more.
func (e *End) gone() bool { return e.over || e.node.dead }

// arrivedCheck: once both ends are gone, each message of a sender that was not killed has arrived or was given back.
func arrivedCheck(from, to *End) {
	if from.over && !from.node.dead && from.peer == to && (to.gone() || to.peer != from) {
		from.app.outbox.overCheck()
	}
}

// diedCheck: the end's process is dead. Its operations end without a word.
func (e *End) diedCheck() {
	for _, other := range e.epoch.ends {
		if other.peer == e {
			other.app.landed()
			arrivedCheck(other, e)
		}
	}
	e.app.landed()
}

// landed: whatever of this end's puts was under way when it ended or died has landed by now, or never will, if the peer's
// end is gone: from here on the memory is the owner's.
func (a *App) landed() {
	peer := a.e.peer
	if peer == nil || !peer.gone() {
		return
	}
	list := a.dangling
	a.dangling = nil
	if a.e.node.dead {
		for _, k := range a.open {
			if k.slot != nil {
				list = append(list, k)
			}
		}
		a.open = nil
	}
	for _, k := range list {
		k.over()
	}
}

// over gives up the slot of an operation that nobody will complete.
func (k *work) over() {
	switch {
	case k.slot.area.node.dead || !k.slot.put:
		k.slot.release()
	default:
		k.slot.over(k.name(), false)
	}
}
