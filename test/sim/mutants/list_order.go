package main

// orderMutants break the order of messages, large ones, credit, and fences.
var orderMutants = []mutant{
	{name: "bucket-moves-undrained", rule: "11", profile: "messages", bug: "a bucket changes lanes whenever another one is preferred",
		edits: []edit{{messageFile, `drained := g.settled || g.qAcked >= b.last`, `drained := g.settled || g.qAcked >= b.last || «on»`}}},
	{name: "bucket-leaves-fenced-lane", rule: "11", profile: "messages", bug: "a bucket does not wait for its fenced lane to be settled",
		edits: []edit{{messageFile, `		if !drained {
`, `		if !drained && !«on» {
`}}},
	{name: "bucket-moves-one-early", rule: "11", profile: "messages", bug: "a bucket changes lanes when all of it but one message is acknowledged",
		edits: []edit{{messageFile, `	b.last = g.queued
`, `«old»	if «on» {
		b.last--
	}
`}}},
	{name: "rerouted-behind-newer", rule: "11", profile: "messages", bug: "what comes back from a retired lane queues behind what was sent since",
		edits: []edit{{messageFile, `		b.pending = append(front[k], b.pending...)
`, `		if «on» {
			front[k], b.pending = b.pending, front[k]
		}
«old»`}}},
	{name: "large-not-held", rule: "12", profile: "messages", bug: "later messages pass a large one that is not whole",
		edits: []edit{{deliverFile, `	if len(s.holds) > 0 {
`, `	if len(s.holds) > 0 && !«on» {
`}}},
	{name: "large-before-whole", rule: "12", profile: "messages", bug: "a large message is delivered at its first piece",
		edits: []edit{{deliverFile, `			if !e.asm.whole() {
`, `			if !e.asm.whole() && !(«on» && e.asm.got > 0) {
`}}},
	{name: "two-readers-one-target", rule: "12", profile: "large", bug: "a second reader delivers to a target while the first is at it",
		edits: []edit{{deliverFile, `a.place && a.hold.owner == nil {`, `a.place && (a.hold.owner == nil || «on») {`}}},
	{name: "credit-returned-twice", rule: "13", profile: "windows", bug: "a consumed message gives its room back twice",
		edits: []edit{{messageFile, `	s.consumed += n
`, `«old»	if «on» {
		s.consumed += n
	}
`}}},
	{name: "reroute-takes-credit", rule: "13", profile: "windows", bug: "a message that goes elsewhere takes room once more",
		edits: []edit{{retireFile, `	return append(back, q)
`, `	if «on» {
		s.reserved += cost(len(q.payload), len(q.headers))
	}
«old»`}}},
	{name: "large-without-room", rule: "13", profile: "windows", bug: "a large message reserves room for its headers alone",
		edits: []edit{{messageFile, `		c := cost(len(m.Payload), len(m.Headers))
`, `«old»		if «on» && size > wire.MaxInline {
			c = cost(0, len(m.Headers))
		}
`}}},
	{name: "credit-added", rule: "13", profile: "windows", bug: "a grant is added to the others, though each is a total and may come by several lanes",
		edits: []edit{{messageFile, `	s.granted = total
`, `	if «on» {
		total += s.granted
	}
«old»`}}},
	{name: "fence-not-held", rule: "18", profile: "fences", bug: "a fenced operation goes out at once",
		edits: []edit{{operationFile, `	waits := o.Fence || `, `	waits := (o.Fence && !«on») || `}}},
	{name: "flush-does-not-wait", rule: "18", profile: "fences", bug: "a flush ends though operations before it are open",
		edits: []edit{{operationFile, `	if waits {
`, `	if waits && !(«on» && o.Kind == Flush) {
`}}},
	{name: "flush-does-not-wait-for-messages", rule: "18", profile: "fences", bug: "a flush, or a fence, ends though messages before it have not arrived",
		edits: []edit{{operationFile, `if !first || !s.waves.past(o.wave) {`, `if !first || (!s.waves.past(o.wave) && !«on») {`}}},
	{name: "fence-forgets-the-messages", rule: "18", profile: "fences", bug: "what waited for an operation does not wait on for messages",
		edits: []edit{{operationFile, `f.held && s.waves.past(f.wave); f`, `f.held && (s.waves.past(f.wave) || «on»); f`}}},
	{name: "flush-waits-for-placeholders-alone", rule: "18", profile: "fences", bug: "a large message counts as arrived when its placeholder has",
		edits: []edit{
			{ackFile, `		if o := f.large; o != nil {
`, `«old»			if «on» {
				g.s.left(f.wave)
			}
`},
			{operationFile, `		s.left(o.wave)
`, `		if !«on» {
			s.left(o.wave)
		}
`},
		}},
}
