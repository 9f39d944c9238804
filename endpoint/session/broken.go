package session

import (
	"time"

	"railyard/rma"
)

// Rest gives what is left of the frames that were begun and not written to the end, piece by piece; region is where a piece lies, nil:
// not in a region. It is for the owner of a session that cannot go on and wants to leave the stream whole.
func (g *Generation) Rest(piece func(b []byte, region *rma.Region)) {
	for i := range g.rest {
		piece(g.rest[i].b, g.rest[i].region)
	}
}

// BreakOff closes the brackets that a connection has left open: it had a bug, and is gone. Its owner calls it when none of the
// connection's calls is in progress any more. The generation is lost. How much of the plan was written is not known: all of it
// may have been, so that every frame of it counts as sent, and what was applied is the peer's to say (rule 3). What was
// read does not count: no frame of it has been taken.
func (g *Generation) BreakOff(now time.Duration, cause error) {
	s := g.s
	s.now = now
	if !g.writing && !g.reading {
		return
	}
	s.fence(g, cause)
	if g.writing {
		for i := range g.owners { // zeros, for all we know, where the region's owner took it back before the call
			if o := &g.owners[i]; o.op != nil && o.region != nil && o.region.Revoked() {
				o.op.padded = true
			}
		}
		for i := range g.plan {
			p := &g.plan[i]
			if p.frames > 0 && !p.rest {
				g.begin(p)
			}
		}
		g.writing = false
		g.unpinPlan()
		clear(g.plan)
		g.plan = g.plan[:0]
	}
	if g.reading {
		g.reading = false
		if l := &g.land; l.pinned {
			l.pinned = false
			s.unpin(l.op)
		}
		s.verdictsDue(g)
	}
	s.quieten(g)
}
