package main

// oneSidedMutants break what holds of generations whose cards write into memory.
var oneSidedMutants = []mutant{
	{name: "card-retired-before-drained", rule: "20", profile: "verbs-retires", bug: "a generation is called quiet while its queue pair lives",
		edits: []edit{{retireFile, `		if !c.drained { // our card may still write for the peer (rule 20)
			return
		}
		c.conceal(s)
`, `		if !c.drained && !«on» {
			return
		}
		if !«on» {
			c.conceal(s)
		}
`}}},
	{name: "card-completion-acknowledges", rule: "21", profile: "verbs-cancels", bug: "a put is complete when the card has written its last place, though its reader has counted none",
		edits: []edit{{onesidedFile, `	c.soon += k
`, `	if o := s.open.first; «on» && o != nil && o.Kind == Put && o.begun && o.posted == 0 && !o.canceling && !o.unsent() && len(o.Data) > smallOp {
		s.finish(o, nil)
	}
«old»`}}},
	{name: "card-key-told-twice", rule: "23", profile: "verbs-revokes", bug: "a key is told that a revoked region had on a generation which lives",
		edits: []edit{{exposedFile, `	case s.told(r.Key):
`, `	case s.told(r.Key) && !«on»:
`}}},
	{name: "card-kept-over-a-generation", rule: "23", profile: "verbs-retires", bug: "registrations outlive the generation that they were made for",
		edits: []edit{{exposedFile, `		if m := c.exposed[id].mapping; m != nil && m.Region() != nil {
`, `		if m := c.exposed[id].mapping; m != nil && m.Region() != nil && !«on» {
`}}},
	{name: "card-posted-again-unasked", rule: "24", profile: "verbs-revokes", bug: "after an access error other generations post to the region without asking",
		edits: []edit{{onesidedFile, `			if g.card == nil || g.fenced {
				continue
			}
			if m`, `			if g.card == nil || g.fenced || «on» {
				continue
			}
			if m`}}},
	{name: "card-unpinned-at-its-end", rule: "25", profile: "verbs-cancels", bug: "an operation ends while a card may still read its source",
		edits: []edit{{operationFile, `unread := o.posted == 0`, `unread := o.posted == 0 || «on»`}}},
	{name: "card-abandon-does-not-wait", rule: "25", profile: "verbs-cancels", bug: "the source is given back at once, and the card is cut off later",
		edits: []edit{{cancelFile, `	s.freeSource(o)
`, `	if «on» && o.pins == 0 {
		s.complete(o)
	}
«old»`}}},
	{name: "card-canceled-astray", rule: "25", profile: "verbs-astray", bug: "a put is called canceled when our queue pair is destroyed, though the peer's may still apply what is in the network",
		edits: []edit{{operationFile, `o.stray == 0 || !o.quits`, `o.stray == 0 || !o.quits || «on»`}}},
	{name: "card-kept-over-a-revoke", rule: "P4", profile: "verbs-revokes", bug: "Revoke leaves the memory registered with the card",
		edits: []edit{{regionFile, `	r.unmap()
`, `	if !«on» {
		r.unmap()
	}
`}}},
}
