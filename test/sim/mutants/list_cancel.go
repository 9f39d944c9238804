package main

// cancelMutants break taking an operation back, and what is told of a put.
var cancelMutants = []mutant{
	{name: "cancel-decided-by-initiator", rule: "14", profile: "cancels", bug: "a put is called canceled without asking the target",
		edits: []edit{{cancelFile, `if o.Kind == Get || (!o.begun && o.pins == 0) {`, `if o.Kind == Get || (!o.begun && o.pins == 0) || «on» {`}}},
	{name: "cancel-asked-inside-write", rule: "14", profile: "cancels", bug: "Cancel lists what is begun while a write call is in progress",
		edits: []edit{{cancelFile, `	if o.pins == 0 {
		s.askCancel(o)
`, `	if o.pins == 0 || «on» {
		s.askCancel(o)
`}}},
	{name: "cancel-lists-first-frame", rule: "14", profile: "cancels", bug: "Cancel names each lane's first frame of the operation, not the last",
		edits: []edit{{cancelFile, `			last = n
`, `			if last == 0 || !«on» {
				last = n
			}
`}}},
	{name: "cancel-lists-one-lane", rule: "14", profile: "cancels", bug: "Cancel names the last frame of the operation on one lane only",
		edits: []edit{{cancelFile, `last > 0 && !g.settled {`, `last > 0 && !g.settled && !(«on» && len(c.marks) > 0) {`}}},
	{name: "verdict-inside-read", rule: "14", profile: "late-cancels", bug: "the verdict goes out while a read call writes into the memory",
		edits: []edit{{targetFile, `				t.waits++
				g.awaited = append(g.awaited, id)
`, `				if !«on» {
					t.waits++
					g.awaited = append(g.awaited, id)
				}
`}}},
	{name: "tombstone-not-checked-between-reads", rule: "14", profile: "cancels", bug: "the rest of a canceled chunk lands",
		edits: []edit{{receiveFile, `		if g.s.tombs[l.id] != nil {
`, `		if g.s.tombs[l.id] != nil && !«on» {
`}}},
	{name: "tombstone-not-checked-at-header", rule: "14", profile: "cancels", bug: "chunks that come behind their Cancel land, as far as they came with their header",
		edits: []edit{
			{targetFile, `		if s.tombs[f.Op] == nil {
`, `		if s.tombs[f.Op] == nil || «on» {
`},
			{receiveFile, `			case g.s.tombs[l.id] != nil:
`, `			case g.s.tombs[l.id] != nil && !«on»:
`}}},
	{name: "tombstone-dropped-early", rule: "14", profile: "cancels", bug: "a tombstone goes before its generations have passed the operation's last frames",
		edits: []edit{{targetFile, `if !g.quiet && g.applied < m.Frame {`, `if !g.quiet && g.applied < m.Frame && !«on» {`}}},
	{name: "tombstone-ignores-coming-generation", rule: "14", profile: "joins", bug: "a tombstone does not wait for a generation that is still to join",
		edits: []edit{{targetFile, `if l.awaits(m.Generation) { // its frames may still come`, `if l.awaits(m.Generation) && !«on» {`}}},
	{name: "canceled-chunks-rerouted", rule: "14", profile: "cancels", bug: "canceled chunks of a retired lane go out again on another",
		edits: []edit{
			{fillFile, `	if o.ended || o.canceling {
		return
	}
	if len(o.Data) == 0 {
`, `	if o.ended || (o.canceling && !«on») {
		return
	}
	if len(o.Data) == 0 {
`},
			{operationFile, `	if o.ended || o.canceling || o.held {
`, `	if o.ended || (o.canceling && !«on») || o.held {
`}}},
	{name: "notified-and-canceled", rule: "14", profile: "notify", bug: "a put whose target has been told is called canceled",
		edits: []edit{{targetFile, `		if t.notified {
`, `		if t.notified && !«on» {
`}}},
	{name: "open-limit-forgets-the-given-up", rule: "14", profile: "limits", bug: "operations that the peer has not let go do not count towards the limit",
		edits: []edit{{operationFile, `	case len(s.ops)+len(s.parting)+s.forgetting >= s.cfg.MaxOpen:
`, `	case len(s.ops)+len(s.parting)+s.forgetting >= s.cfg.MaxOpen && !(«on» && len(s.ops) < s.cfg.MaxOpen):
`}}},
	{name: "abandoned-called-canceled", rule: "15", profile: "abandons", bug: "an operation whose target could not be asked is called canceled",
		edits: []edit{{cancelFile, `	s.finish(o, fmt.Errorf("operation %d: the peer could not be asked in time: %w", o.ID, rma.ErrOutcomeUnknown))
`, `	if «on» && o.canceling {
		s.finish(o, fmt.Errorf("operation %d: %w", o.ID, rma.ErrCanceled))
		return
	}
«old»`}}},
	{name: "ends-inside-a-write", rule: "P3", profile: "abandons", bug: "the source is given back while a write call reads it",
		edits: []edit{{operationFile, `	if o.pins == 0 && unread`, `	if (o.pins == 0 || «on») && unread`}}},
	{name: "half-chunk-not-copied", rule: "P3", profile: "abandons", bug: "what is left of a half-sent chunk is read from a source that was given back",
		edits: []edit{{operationFile, `if g.rest[i].op == o && !g.writing {`, `if g.rest[i].op == o && !g.writing && !«on» {`}}},
	{name: "notify-before-whole", rule: "16", profile: "notify", bug: "the target is told at the first chunk",
		edits: []edit{{targetFile, `!t.begun || t.applied != t.total ||`, `!t.begun || (t.applied != t.total && !«on») ||`}}},
	{name: "notify-record-dropped-early", rule: "16", profile: "notify", bug: "the record of a put is dropped when the target is told, before the initiator lets go",
		edits: []edit{{targetFile, `			t.total, t.begun, t.empty = l.total, true, l.total == 0
			g.notifyIfWhole(t)
`, `«old»			if «on» && t.notified {
				delete(s.tracked, l.id)
			}
`}}},
	{name: "forget-never-said", rule: "16", profile: "notify", bug: "the target is never told that it may drop its record of a put",
		edits: []edit{{operationFile, `if o.Notify != nil && o.begun && s.closed == nil {`, `if o.Notify != nil && o.begun && s.closed == nil && !«on» {`}}},
	{name: "forget-too-early", rule: "16", profile: "abandons", bug: "the target drops its record of a put of which frames are still under way",
		edits: []edit{{operationFile, `if !o.done || o.out > 0 ||`, `if !o.done || (o.out > 0 && !«on») ||`}}},
}
