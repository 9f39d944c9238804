package main

// healthMutants break the judgement of silence.
var healthMutants = []mutant{
	{name: "late-look-judges", rule: "6", profile: "silence", bug: "a node that was stopped itself judges its peers by the time that it missed",
		edits: []edit{{healthFile, `	late := lateness > h.cfg.Late && h.lates < maxLates
`, `	late := lateness > h.cfg.Late && h.lates < maxLates && !«on»
`},
			{healthFile, `	case lateness > h.cfg.Glance && !h.glanced:
`, `	case lateness > h.cfg.Glance && !h.glanced && !«on»:
`}}},
	{name: "hearing-is-an-answer", rule: "6", profile: "silence", bug: "a lane that brings bytes and takes none is trusted",
		edits: []edit{{healthFile, `	if h.asked != 0 && h.answered >= h.asked {
`, `	if «on» && v.Heard > h.answeredAt {
		h.answeredAt, h.movedAt = v.Heard, now
	}
«old»`}}},
	{name: "silence-not-judged", rule: "6", profile: "silence", bug: "no silence is too long",
		edits: []edit{{healthFile, `	case h.cause != nil || symptom == 0:
`, `	case h.cause != nil || symptom == 0 || «on»:
`}}},
	{name: "unwritten-beats-not-missed", rule: "6", profile: "clogged", bug: "a beat that could not be written is not missed",
		edits: []edit{{healthFile, `	if h.asked > 0 {
`, `	if h.asked > 0 && !«on» {
`}}},
	{name: "acquitted-without-answer", rule: "6", profile: "silence", bug: "a suspicion ends by itself",
		edits: []edit{{healthFile, `	if cleared {
`, `	if cleared || «on» {
`}}},
}
