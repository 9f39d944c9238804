package main

import (
	"time"

	"railyard/endpoint/session"
)

// lookEvery is how often the bounds are looked at while the world goes on.
const lookEvery = 7 * time.Millisecond

// watchBounds sees to it that no table of a session outgrows what its configuration allows, whatever the peer does.
func (w *World) watchBounds() {
	w.After(lookEvery, "bounds", func() {
		for _, e := range w.ends() {
			e.limitsCheck()
		}
		w.watchBounds()
	})
}

// limitsCheck: what an end keeps for its peer is bounded by the peer's open operations and by the window.
func (e *End) limitsCheck() {
	if !e.agreed || e.ended {
		return
	}
	z, c := e.s.Sizes(), e.s.Config()
	open := e.peer.s.Config().MaxOpen
	switch {
	case z.Tombs > open, z.Tracked > open, z.Serving > open:
		e.w.violate("%s keeps more than %d tombstones, notifications or gets of its peer's: %+v", e, open, z)
	case z.Assembling > c.Window:
		e.w.violate("%s puts together %d bytes of large messages; its window is %d", e, z.Assembling, c.Window)
	case uint64(z.Held+z.Assemblies)*session.MessageOverhead > c.Window:
		e.w.violate("%s holds %d messages; its window is %d", e, z.Held, c.Window)
	case z.Unsettled > 64*len(e.rails):
		e.w.violate("%s has %d generations that are not settled", e, z.Unsettled)
	}
}
