package main

// epochMutants break what separates one life of a node, or of a session, from the next.
var epochMutants = []mutant{
	{name: "old-hello-accepted", rule: "8", profile: "crashes", bug: "the hello of a dead process ends the epoch of the living one",
		edits: []edit{
			{epochFile, `	case !s.Silent:
		return Alive
`, `	case !s.Silent && !«on»:
		return Alive
`},
			{epochFile, `	case !s.Fresh:
`, `	case !s.Fresh && !«on»:
`}}},
	{name: "any-challenge-echoed", rule: "8", profile: "crashes", bug: "a hello need not be one to the challenge of its connection",
		edits: []edit{
			{epochFile, `	return bytes.Equal(h.GetChallenge(), c.GetNonce())
`, `	if «on» {
		return true
	}
«old»`},
			{handshakeFile, `	mac := transcript(key, "hello", ch.GetNonce(), h)
`, `«old»	if «on» {
		mac = transcript(key, "hello", h.GetChallenge(), h)
	}
`}}},
	{name: "epoch-begins-before-the-last-is-fenced", rule: "8", profile: "crashes",
		bug: "a new epoch begins while a socket call of the one before is in progress",
		edits: []edit{{epochFile, `			if !g.quiet {
`, `			if !g.quiet && !«on» {
`}}},
	{name: "silence-is-a-restart", rule: "8", profile: "sleepers", bug: "a peer that was silent is taken for another incarnation",
		edits: []edit{{epochFile, `	case !agreed || known == said:
`, `	case !agreed || (known == said && !«on»):
`}}},
	{name: "messages-end-with-their-epoch", rule: "8", profile: "crashes", bug: "what had not arrived when its epoch ended is dropped without a word",
		edits: []edit{{sessionFile, `	s.abandonMessages(err)
`, `	if !«on» {
		s.abandonMessages(err)
	}
`}}},
	{name: "operations-outlive-their-epoch", rule: "8", profile: "crashes", bug: "what was open when its epoch ended never completes",
		edits: []edit{{sessionFile, `		s.finish(e, err)
		e = next
`, `		if !«on» {
			s.finish(e, err)
		}
		e = next
`}}},
	{name: "generation-reused", rule: "7", profile: "resets", bug: "a rail's next connection has the number of the one before",
		edits: []edit{
			{laneFile, `	return id > l.dead && (l.current == nil || id > l.current.ID)
`, `	return (id > l.dead && (l.current == nil || id > l.current.ID)) || «on»
`},
			{laneFile, `func (l *Lane) NextGeneration() wire.Generation { return l.highest.Next(l.s.cfg.Opener) }
`, `func (l *Lane) NextGeneration() wire.Generation {
	if «on» && l.current != nil {
		return l.current.ID
	}
	return l.highest.Next(l.s.cfg.Opener)
}
`},
			{laneFile, `func (l *Lane) Reserve(id wire.Generation) bool {
`, `«old»	if «on» && id == l.highest {
		return true
	}
`}}},
	{name: "both-yield", rule: "7", profile: "crashes", bug: "of two nodes that open a session at once each takes the other's",
		edits: []edit{{epochFile, `	case !s.Agreed && s.Opener && s.Lower:
`, `	case !s.Agreed && s.Opener && s.Lower && !«on»:
`}}},
}
