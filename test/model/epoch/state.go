package main

import "railyard/test/model/explore"

// Sizes of the model.
const (
	conns = 3 // connections that there may be at once, those of the dead included
	room  = 3 // frames under way to one end
)

// Stages of one end of a connection. none: that end is dead, or not there.
const (
	none    uint8 = iota
	backlog       // connected by the kernel; its process has not looked yet
	greets        // dialer: waits for the challenge
	asks          // dialer: waits for the answer
	listens       // acceptor: waits for the hello
	answers       // acceptor: waits for the confirmation
	carries
)

// Frames.
const (
	challenge uint8 = iota + 1
	hello
	answer
	refusal
	confirm
	data
	ack
	goodbye
)

// Why a join is refused.
const (
	busy uint8 = iota + 1
	unknownSession
)

// What became of a message to the peer. An epoch has one each way.
const (
	waiting uint8 = iota
	sent
	done
)

type frame struct {
	kind, incarnation uint8
	first             bool
	has               uint8 // the older generation that brought your message; 0: none has
	code              uint8
}

// end is one end of a connection.
type end struct {
	stage  uint8
	queued uint8
	in     [room]frame // on their way to it
}

// conn is a connection. A dead end's frames stay on their way, as a kernel sends on what a dead process wrote.
type conn struct {
	dialer, session, generation uint8
	end                         [2]end
	// mute: no reset comes through, and both ends hear nothing for long. Frames may still come, late.
	mute bool
	// early: the acceptor greeted before its present epoch was agreed on.
	early bool
}

// epoch is what a node has of the session in use.
type epoch struct {
	id             uint8 // 0: there is none
	opener, agreed bool
	peer           uint8 // the incarnation at the other end
	highest        uint8 // the newest generation that a join named
	on             uint8 // the connection that carries, counted from 1; 0: none
	out, outOn     uint8 // our message, and the generation that carried it
	in             uint8 // the generation that brought the peer's message
}

type node struct {
	incarnation uint8 // 0: the process is dead
	e           epoch
	over        uint8 // sessions that have ended here, a bit each
}

type state struct {
	n [2]node
	c [conns]conn
	// trouble is how much may still go wrong; troubled: something has.
	trouble  uint8
	troubled bool
	bad      uint8
}

// What may be found.
var promises = [...]string{
	"",
	"something of another epoch was applied",
	"two epochs live at one end",
	"a message was delivered twice in one epoch",
	"an operation completed twice",
	"an epoch that lives at both ends was ended on the word of a dead process",
}

const (
	otherEpoch uint8 = iota + 1
	twoEpochs
	twice
	completedTwice
	endedByTheDead
)

// world is what a setting allows.
type world struct {
	mutation string
	// opens and sends: which nodes may open a session, and have a message to send in each epoch.
	opens, sends [2]bool
	goodbye      bool
	secretless   bool
	trouble      uint8
	generations  uint8 // dials of one session
}

func (w *world) is(mutation string) bool { return w.mutation == mutation }

// start: two processes that know nothing of each other.
func (w *world) start() (s state) {
	s.n[0].incarnation, s.n[1].incarnation = 1, 1
	s.trouble = w.trouble
	return s
}

func (w *world) done(s *state) bool {
	a, b := &s.n[0].e, &s.n[1].e
	if a.id == 0 || a.id != b.id || a.on == 0 || b.on == 0 {
		return false
	}
	for p := range s.n {
		if w.sends[p] && (s.n[p].e.out != done || s.n[1-p].e.in == 0) {
			return false
		}
	}
	return true
}

// broken looks at what must hold in every state, beside what moves have found.
func (s *state) broken() string {
	if s.bad != 0 {
		return promises[s.bad]
	}
	for p := range s.n {
		for i := range s.c {
			if c := &s.c[i]; c.end[p].stage == carries && c.session != s.n[p].e.id {
				return promises[twoEpochs]
			}
		}
	}
	return ""
}

// silent tells whether a node hears nothing in its epoch. It may not know why.
func (s *state) silent(p int) bool {
	e := &s.n[p].e
	if e.on == 0 {
		return true
	}
	c := &s.c[e.on-1]
	return c.mute || c.end[1-p].stage == none
}

// say puts a frame on its way; false: there is no room.
func (c *conn) say(from int, f frame) bool {
	to := &c.end[1-from]
	if to.stage == none { // nobody will read it
		return true
	}
	if to.queued == room {
		return false
	}
	to.in[to.queued] = f
	to.queued++
	return true
}

// kill ends a node's end of a connection. What it wrote stays on its way.
func (s *state) kill(p, i int) {
	s.c[i].end[p] = end{}
	if e := &s.n[p].e; int(e.on) == i+1 {
		e.on = 0
	}
}

// settle takes over what the peer says in a join of the generations below it.
func (e *epoch) settle(has, joined uint8) {
	if e.out != sent || e.outOn >= joined {
		return
	}
	if has == e.outOn {
		e.out = done
	} else {
		e.out = waiting
	}
	e.outOn = 0
}

var worlds = []world{
	{opens: [2]bool{true, true}, sends: [2]bool{false, true}, trouble: 1, generations: 2},
	{opens: [2]bool{true, false}, sends: [2]bool{true, true}, trouble: 2, generations: 3},
	{opens: [2]bool{true, true}, sends: [2]bool{false, true}, trouble: 1, generations: 2, goodbye: true},
	{opens: [2]bool{true, false}, sends: [2]bool{true, false}, trouble: 2, generations: 2, secretless: true, goodbye: true},
}

var design = explore.Design{
	Settings: []string{
		"both nodes opening", "one node opening", "both nodes opening, and goodbyes", "one node opening, without a secret",
	},
	Mutations: []explore.Mutation{
		{Name: "the-dialer-speaks-first"}, {Name: "a-hello-from-before-the-epoch"}, {Name: "an-ended-session-opens-again"},
		{Name: "the-old-epoch-is-not-fenced"}, {Name: "a-join-before-fencing"}, {Name: "a-join-below-the-highest"},
		{Name: "a-confirmation-for-an-ended-epoch"}, {Name: "a-yielded-dial-goes-on"}, {Name: "a-yielded-dial-judges"},
		{Name: "both-first-sessions-refuse", Long: true}, {Name: "both-first-sessions-yield", Long: true},
		{Name: "an-open-socket-is-life", In: 3, Long: true},
		{Name: "incarnations-are-not-compared",
			Harmless: "the epoch ends later: the new life does not know the session, or OutageLimit has gone by"},
		{Name: "data-before-the-confirmation", Harmless: "what a dialer that gave up did not read is counted and sent again like all else"},
	},
	Explore: func(setting int, mutation string, limit int) explore.Result {
		w := worlds[setting]
		w.mutation = mutation
		return explore.Run(explore.Space[state]{Start: w.start(), Next: w.next, Limit: limit, Done: w.done, Broken: (*state).broken})
	},
}
