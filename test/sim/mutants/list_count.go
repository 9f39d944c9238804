package main

// countMutants break the counting of frames and the refusals that travel with the counts.
var countMutants = []mutant{
	{name: "beat-is-counted", rule: "1", bug: "a heartbeat counts as a frame at the receiver",
		edits: []edit{{controlFile, `func (g *Generation) beatIn(now time.Duration, f wire.Beat) error {
	s := g.s
`, `«old»	if «on» {
		g.parsed++
	}
`}}},
	{name: "numbered-when-planned", rule: "1", bug: "a frame has its number before its first byte is written",
		edits: []edit{{fillFile, `begun := at < n || p.rest || p.ctl`, `begun := at < n || p.rest || p.ctl || «on»`}}},
	{name: "cut-frame-begins-anew", rule: "1", bug: "a frame that was written in part is written again from its first byte",
		edits: []edit{{fillFile, `		if !begun {
			return i
		}
`, `		if !begun || («on» && p.frames > 0 && !p.rest && at+p.size > n) {
			return i
		}
`}}},
	{name: "ack-without-refusals", rule: "2", profile: "revokes", bug: "an acknowledgement leaves the refusals out",
		edits: []edit{{ackFile, `if r.Frame <= g.ackSent {`, `if r.Frame <= g.ackSent || «on» {`}}},
	{name: "ack-before-its-refusals", rule: "2", profile: "revokes", bug: "a count is taken over before the refusals that came with it",
		edits: []edit{{ackFile, `	s.refusalsIn(g, f.Refusals)
`, `	if «on» {
		if err := g.advance(f.Count); err != nil {
			return err
		}
	}
«old»`}}},
	{name: "refusals-forgotten-when-said", rule: "2", profile: "revokes", bug: "refusals are dropped once they are sent, before the peer is known to have them",
		edits: []edit{{ackFile, `	g.ackSent = f.Count
`, `«old»	if «on» {
		g.seenIn(f.Count)
	}
`}}},
	{name: "retired-without-refusals", rule: "2", profile: "revokes", bug: "Retired says the final count and no refusals",
		edits: []edit{{retireFile, `	return wire.Retired{Rail: g.lane.ID, Generation: g.ID, Count: g.applied, HaveYours: g.havePeer,
`, `	if «on» {
		return wire.Retired{Rail: g.lane.ID, Generation: g.ID, Count: g.applied, HaveYours: g.havePeer, Rejected: g.rejected}
	}
«old»`}}},
	{name: "join-without-refusals", rule: "2", profile: "revokes", bug: "a join lists final counts and no refusals",
		edits: []edit{{retireFile, `				list = append(list, g.retired())
`, `				f := g.retired()
				if «on» {
					f.Refusals = nil
				}
				list = append(list, f)
`}}},
	{name: "refusal-not-noted", rule: "2", profile: "revokes", bug: "a refused chunk counts as applied",
		edits: []edit{{targetFile, `	case l.code != wire.CodeOK:
`, `	case l.code != wire.CodeOK && !«on»:
`}}},
	{name: "counted-before-applied", rule: "4", profile: "revokes", bug: "a chunk counts when its header has come",
		edits: []edit{
			{receiveFile, `		if err := g.startLanding(h, head); err != nil {
			return false, err
		}
`, `«old»		if «on» {
			g.applied, g.ackNow = g.applied+1, true
			g.s.wake(g)
		}
`},
			{targetFile, `	g.parsed++
	g.ackBytes += wire.HeaderSize + l.size
`, `	if !«on» {
		g.parsed++
	}
	g.ackBytes += wire.HeaderSize + l.size
`}}},
	{name: "applied-and-not-counted", rule: "4", profile: "resets", bug: "what a read bracket applies while its generation is fenced is not in the final count",
		edits: []edit{{receiveFile, `		g.applied += g.parsed
`, `		if !(«on» && g.fenced) {
			g.applied += g.parsed
		}
`}}},
	{name: "begun-chunk-moves", rule: "5", bug: "a chunk whose first bytes are written is given to another lane as well",
		edits: []edit{{fillFile, `			g.keep(out, max(at, n), end)
`, `«old»			if «on» && !p.rest && (p.kind == wire.KindChunk || p.kind == wire.KindMessageChunk || p.kind == wire.KindGetData) {
				p.op.giveBack(span{p.at, uint64(p.n)})
				g.s.offerAgain(g, p.op)
			}
`}}},
}
