package session

// Sizes is how much a session keeps at a moment, for metrics and for tests of its bounds. All but Names, Remote and Exposed
// are 0 when nothing is under way.
type Sizes struct {
	Ops, Bodies, Owed, Cancels, Verdicts, Forget, Pending, Held, Parting, Forgetting int
	Holds, Assemblies, Tombs, Tracked, Serving, Refusals                             int
	// Unsettled is the generations that are fenced and not forgotten.
	Unsettled int
	// Assembling is the bytes of large messages that are being put together.
	Assembling uint64
	// Asks is the questions for remote keys that are open, at either end; Places those that cards have not completed, or that
	// may still land.
	Asks, Places int
	// Remote and Exposed are the peer's regions of which we know, and ours of which we have told.
	Remote, Exposed int
	// Names is how many names of the peer's are kept.
	Names int
}

// Sizes counts what is kept now.
func (s *Session) Sizes() Sizes {
	z := Sizes{
		Ops: len(s.ops), Bodies: len(s.bodies), Owed: len(s.owed), Cancels: len(s.cancels),
		Verdicts: len(s.verdicts), Forget: len(s.forget), Holds: len(s.holds), Assemblies: len(s.assemblies),
		Tombs: len(s.tombs), Parting: len(s.parting), Forgetting: s.forgetting, Tracked: len(s.tracked),
		Serving: len(s.serving), Assembling: s.assembling,
		Names: len(s.peerNames.byString),
	}
	for i := range s.buckets {
		z.Pending += len(s.buckets[i].pending)
	}
	for _, h := range s.holds {
		z.Held += len(h.queue)
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			z.Refusals += len(g.refusals)
			if g.fenced {
				z.Unsettled++
			}
			if c := g.card; c != nil {
				z.Asks += len(c.asks) + c.pending
				z.Places += c.places.len() + len(c.strays)
				z.Remote += len(c.maps)
				z.Exposed += len(c.exposed)
			}
		}
	}
	return z
}
