package main

// retireMutants break what happens when a generation ends and the next one begins.
var retireMutants = []mutant{
	{name: "retire-wait-skipped", rule: "3", profile: "resets", bug: "work goes elsewhere before the peer has said how far it had got",
		edits: []edit{{retireFile, `if !g.quiet || !g.havePeer || s.closed != nil {`, `if !g.quiet || (!g.havePeer && !«on») || s.closed != nil {`}}},
	{name: "final-count-too-early", rule: "3", profile: "resets", bug: "the final count is said while a read call is in progress",
		edits: []edit{{retireFile, `if g.quiet || g.reading || g.writing {`, `if g.quiet || (g.reading && !«on») || g.writing {`}}},
	{name: "final-count-not-taken", rule: "3", profile: "resets", bug: "all that was under way goes elsewhere, whatever the peer had applied",
		edits: []edit{{retireFile, `		_ = g.advance(g.peerFinal)`, `		if «on» {
			g.peerFinal = g.acked
		}
«old»`}}},
	{name: "batch-rerouted-whole", rule: "3", profile: "messages", bug: "a batch goes elsewhere as a whole, though part of it was applied",
		edits: []edit{{retireFile, `			for i := it.at; i < uint64(len(it.seg.frames)); i++ {
`, `			if «on» {
				it.at = 0
			}
«old»`}}},
	{name: "reroute-forgotten", rule: "3", profile: "messages", bug: "what a settled generation had not delivered is dropped",
		edits: []edit{{retireFile, `		s.reroute(g)
`, `		if !«on» {
			s.reroute(g)
		}
`}}},
	{name: "up-before-settled", rule: "3", profile: "hasty", bug: "a rail takes work while an older generation of it is open",
		edits: []edit{{laneFile, `l.gens[0] != g {`, `(l.gens[0] != g && !«on») {`}}},
	{name: "retired-stranger-forgotten", rule: "3", profile: "joins", bug: "a Retired for an unknown generation is not remembered: it may still join",
		edits: []edit{{retireFile, `		l.dead = max(l.dead, f.Generation)
		l.highest = max(l.highest, f.Generation)
`, `		if !«on» {
			l.dead = max(l.dead, f.Generation)
			l.highest = max(l.highest, f.Generation)
		}
`}}},
	{name: "retired-generation-not-compared", rule: "3", profile: "resets", bug: "a Retired for another generation ends the one that is there",
		edits: []edit{{retireFile, `	g := l.Find(f.Generation)
`, `«old»	if «on» && g == nil {
		g = l.current
	}
`}}},
	{name: "suspect-retired-without-witness", rule: "6", profile: "silence", bug: "a suspicion alone retires, though no other lane has answered since",
		edits: []edit{{retireFile, `	g.suspect, g.suspectAt, g.cause = true, now, cause
`, `«old»	if «on» {
		s.fence(g, cause)
		return
	}
`}}},
	{name: "older-join-accepted", rule: "7", profile: "resets", bug: "a join need not be above what was joined or retired on its rail",
		edits: []edit{
			{laneFile, `if id <= l.highest || id-l.highest > maxLeap || l.s.closed != nil {`, `if (id <= l.highest && !«on») || (id > l.highest && id-l.highest > maxLeap) || l.s.closed != nil {`},
			{laneFile, `if s.closed != nil || id < l.highest || !l.awaits(id) {`, `if s.closed != nil || (!«on» && (id < l.highest || !l.awaits(id))) {`}}},
	{name: "leaves-with-messages-open", rule: "9", profile: "leaving", bug: "an end calls everything done, though messages of it are not acknowledged",
		edits: []edit{{sessionFile, `			if g.outstanding() {
`, `			if g.outstanding() && !«on» {
`}}},
	{name: "goodbye-counts-the-refused", rule: "9", profile: "goodbyes", bug: "the final counts of a goodbye cover frames whose refusals the peer has not heard",
		edits: []edit{{controlFile, `	if len(g.refusals) > 0 {
`, `	if len(g.refusals) > 0 && !«on» {
`}}},
}
