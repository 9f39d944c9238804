package main

import (
	"errors"

	"railyard/endpoint/session"
	"railyard/rma"
)

// What must hold of cards that write by themselves, besides what the memory shows. The checks know both ends and both cards.

// settledCards: whoever settles a generation gives its work to others; no card may write for it any more, at either end.
func (e *End) settledCards(g *session.Generation) {
	for side, other := range e.epoch.lives.of(g).gens {
		if other == nil {
			continue
		}
		c := carrierOf(other)
		if q := c.sock.qp; q != nil && !q.destroyed && !c.e.node.dead {
			e.w.violate("%s settled generation %d of rail %d; the queue pair of its end %d lives", e, g.ID, g.Lane().ID, side)
		}
	}
}

// denials is, for one end, the peer's regions of which it has been told that a card refused them.
type denials map[uint64]bool

// denied notes what a failed place tells.
func (e *End) denied(w *write, cause error) {
	if !errors.Is(cause, rma.ErrAccess) {
		return
	}
	if r, alive := e.peer.cards.find(w.key); !alive {
		e.denials[r.region] = true
	}
}

// plannedPlaces: after a refusal nothing is planned for the region until its owner has confirmed the key, which it does not
// for a region that is gone (rule 24).
func (e *End) plannedPlaces(list []rma.Place) {
	for i := range list {
		if r, alive := e.peer.cards.find(list[i].Key); !alive && e.denials[r.region] {
			e.w.violate("%s plans a place in region %d again, which its card has refused", e, r.region)
		}
	}
}

// leftCheck: with nothing under way a card has no registration but those of the generations that live.
func (e *End) leftCheck(exposed int) {
	spent := 0
	for _, r := range e.rails {
		if r.carrier != nil {
			spent += len(r.carrier.spent)
		}
	}
	if n := len(e.cards.regs); n > exposed+spent {
		e.w.violate("%s has %d registrations with its cards; only %d are of generations that live", e, n, exposed+spent)
	}
}
