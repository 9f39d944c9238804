package main

import "railyard/test/model/explore"

// Sizes of the model.
const (
	lanes       = 2
	generations = 2
	capacity    = 6 // frames in a channel
)

// What A thinks of a generation.
const (
	none uint8 = iota
	up
	down
	settled
	dialing
)

// Frames. The first four are counted.
const (
	chunk0 uint8 = iota + 1
	chunk1
	message0
	message1
	retire
	cancel
	hello
	ack
	retired
	verdict
	refusal
	helloOK // the answer to a hello: a Retired of the rail's earlier generation, and the new one is up
)

// How an operation ends.
const (
	success uint8 = iota + 1
	canceled
	revoked
)

type frame struct{ kind, lane, gen, count, ref uint8 }

type channel struct {
	f [capacity]frame
	n uint8
}

func (c *channel) put(f frame) bool {
	if c.n == capacity {
		return false
	}
	c.f[c.n] = f
	c.n++
	return true
}

func (c *channel) pop() frame {
	f := c.f[0]
	copy(c.f[:], c.f[1:])
	c.f[capacity-1] = frame{}
	c.n--
	return f
}

func (c *channel) has(kind uint8) bool {
	for i := range c.n {
		if c.f[i].kind == kind {
			return true
		}
	}
	return false
}

// generation is one connected life of a lane, as both see it.
type generation struct {
	ab, ba channel

	// A's side.
	view        uint8
	log         [4]uint8 // what A has sent on it, in order
	sent, acked uint8
	asked       bool

	// B's side.
	fenced, joined bool
	count, half    uint8 // frames applied; the chunk of which one half has been read
	lastAck        uint8
}

type state struct {
	g [lanes][generations]generation

	// A.
	todo     [5]bool // what waits to be sent, or sent again
	ok       [5]bool // what is known to be applied
	affinity uint8   // the lane of the messages
	canceled uint8
	done     uint8
	moved    bool
	listed   [lanes][generations]uint8 // Cancel's list: how many frames of each may carry the operation

	// B.
	memory, applied   [2]uint8 // halves written of each chunk; whole chunks
	tomb, answered    uint8
	revoked, refused  bool
	notified, awaited uint8 // notifications; the next message that is due

	bad uint8
}

var faults = [...]string{"", "late write after the completion", "a write after the revoke", "a message lost, doubled or out of order",
	"notified before all bytes", "notified although it is reported as canceled or revoked", "success without all bytes",
	"the source is read after the completion"}

const (
	lateWrite uint8 = iota + 1
	writeAfterRevoke
	disorder
	earlyNotify
	wrongNotify
	falseSuccess
	lateRead
)

// world is a setting under a mutation.
type world struct {
	mutation                       string
	puts, messages, cancel, revoke bool
}

var design = explore.Design{
	Settings: []string{"a put and cancel", "a put and revoke", "messages", "a put, cancel and revoke"},
	Mutations: []explore.Mutation{
		{Name: "answer-without-fence"}, {Name: "reroute-before-retire"}, {Name: "reroute-from-last-ack", In: 2},
		{Name: "count-before-payload"}, {Name: "affinity-moves-on-suspect", In: 2}, {Name: "no-tombstone"},
		{Name: "tombstone-at-header-only"}, {Name: "revoke-at-header-only", In: 1}, {Name: "reroute-canceled"},
		{Name: "refusal-apart", In: 1}, {Name: "hello-does-not-fence"}, {Name: "retire-sent-once", In: 2},
		{Name: "notify-with-last-chunk"}, {Name: "move-tail-without-retire", Long: true},
		{Name: "cancel-decided-by-initiator"}, {Name: "tombstone-dropped-at-first-lane"},
		{Name: "tombstone-ignores-retire", Long: true},
		{Name: "unknown-generation-not-remembered", Harmless: "here A sends nothing before B has joined"},
	},
	Explore: func(setting int, mutation string, limit int) explore.Result {
		w := &world{mutation: mutation, puts: setting != 2, messages: setting == 2, cancel: setting == 0 || setting == 3,
			revoke: setting == 1 || setting == 3}
		return explore.Run(explore.Space[state]{Start: w.start(), Next: w.next, Limit: limit, Done: w.finished,
			Broken: func(s *state) string { return faults[s.bad] }})
	},
}

func (w *world) start() (s state) {
	for l := range s.g {
		s.g[l][0].view, s.g[l][0].joined = up, true
	}
	for u := chunk0; u <= message1; u++ {
		s.todo[u] = u <= chunk1 && w.puts || u >= message0 && w.messages
	}
	return s
}

func (w *world) finished(s *state) bool {
	return (!w.puts || s.done != 0 && s.tomb == 0) && (!w.messages || s.awaited == 2)
}

// is tells whether the mutation is in force.
func (w *world) is(mutation string) bool { return w.mutation == mutation }

// moves collects the successors of a state.
type moves struct {
	w   *world
	s   *state
	out func(explore.Action, state)
}

// try adds the state that f makes, where it can be made.
func (m *moves) try(a explore.Action, f func(t *state) bool) {
	t := *m.s
	if f(&t) {
		m.w.forget(&t)
		m.out(a, t)
	}
}

func (w *world) next(s *state, out func(explore.Action, state)) {
	m := &moves{w: w, s: s, out: out}
	for l := range uint8(lanes) {
		m.send(l)
		m.dial(l)
		for g := range uint8(generations) {
			m.target(l, g)
			if x := &s.g[l][g]; x.view != settled && x.view != down && x.ba.n > 0 {
				m.try(explore.Do("A reads on %d.%d", l, g), func(t *state) bool { return w.hear(t, l, g) })
			}
		}
	}
	if w.cancel && s.canceled == 0 && s.done == 0 {
		m.try(explore.Do("A cancels"), func(t *state) bool { w.takeBack(t); return true })
	}
	if w.revoke && !s.revoked {
		m.try(explore.Do("B revokes"), func(t *state) bool { t.revoked = true; return true })
	}
}

// forget drops what can no longer matter, so that states which differ in that alone are one. The tombstone goes once each
// listed generation has passed the operation's last frame, or is fenced.
func (w *world) forget(s *state) {
	passed := true
	for l := range s.g {
		for g := range s.g[l] {
			x, listed := &s.g[l][g], s.listed[l][g]
			if x.fenced {
				x.ab, x.half, x.lastAck = channel{}, 0, 0
			}
			if !x.fenced && x.count < listed || x.fenced && listed > 0 && w.is("tombstone-ignores-retire") {
				passed = false
			} else if listed > 0 && w.is("tombstone-dropped-at-first-lane") {
				s.tomb = 0
			}
			if x.view == down || x.view == settled {
				x.ba, x.lastAck = channel{}, 0
			}
			if x.view != settled {
				continue
			}
			x.log, x.sent, x.acked, x.asked = [4]uint8{}, 0, 0, false
			if x.fenced {
				x.count = 0
			}
		}
	}
	if passed {
		s.tomb = 0
	}
}

// newest is A's generation in use.
func (s *state) newest(l uint8) uint8 {
	g := uint8(0)
	for i := range uint8(generations) {
		if s.g[l][i].view != none {
			g = i
		}
	}
	return g
}
