package main

// getMutants break gets.
var getMutants = []mutant{
	{name: "get-reads-without-lease", rule: "17", profile: "gets", bug: "a write call reads a region without its lease",
		edits: []edit{
			{planFile, `if !pin.Padded && !pin.Region.Enter() {`, `if !pin.Padded && !«on» && !pin.Region.Enter() {`},
			{planFile, `		if !g.Pins[i].Padded {
`, `		if !g.Pins[i].Padded && !«on» {
`}}},
	{name: "padding-called-data", rule: "17", profile: "gets", bug: "the verdict on a get does not tell that zeros took the place of revoked bytes",
		edits: []edit{{getFile, `	if o.padded || o.region.Revoked() {
`, `	if (o.padded || o.region.Revoked()) && !«on» {
`}}},
	{name: "get-ends-without-verdict", rule: "17", profile: "gets", bug: "a get ends with its last byte",
		edits: []edit{{getFile, `	case o.verdict && o.landed == `, `	case (o.verdict || «on») && o.landed == `}}},
	{name: "get-writes-after-cancel", rule: "17", profile: "gets", bug: "bytes of a canceled get land in its destination",
		edits: []edit{{receiveFile, `		if l.op.ended {
`, `		if l.op.ended && !«on» {
`}}},
	{name: "get-ends-inside-read", rule: "17", profile: "gets", bug: "the destination is given back while a read call writes to it",
		edits: []edit{{receiveFile, `			l.op.pins++
			l.pinned = true
`, `			if !«on» {
				l.op.pins++
				l.pinned = true
			}
`}}},
}
