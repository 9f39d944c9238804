package main

import "railyard/test/model/explore"

// Sizes of the model.
const (
	generations = 2
	capacity    = 6
	messages    = 2 // at the most, of one node
)

// What a node thinks of a generation.
const (
	none uint8 = iota
	dialing
	waiting
	up
	fenced
)

// Frames.
const (
	message uint8 = iota + 1
	retired
	hello
	nonce
	join
	joined
)

// table is what a join lists: of each lane's older generation whether it is fenced (then 1), and its final count.
type table [2][2]uint8

type frame struct {
	kind, lane, gen, n uint8 // n: a count, or which message
	have               bool  // retired: I have yours, no answer is needed
	list               table
}

// generation is one node's view of one connected life of a lane.
type generation struct {
	in           [capacity]frame
	queued, view uint8
	log          [messages]uint8
	sent, count  uint8
	settled, owe bool
	asked        bool
}

type node struct {
	g        [2][generations]generation
	todo     uint8 // the messages that wait to be sent, a bit each
	affinity uint8
	awaited  uint8 // the peer's next message
}

type state struct {
	n   [2]node
	bad bool
}

type world struct {
	mutation string
	rejoin   bool // may lane 1 come back
}

var design = explore.Design{
	Settings: []string{"both lanes may come back", "lane 0 alone may come back"},
	Mutations: []explore.Mutation{
		{Name: "retired-does-not-fence"}, {Name: "crossing-counts-as-answered", In: 1}, {Name: "retired-sent-once", In: 1},
		{Name: "all-silent-waits", In: 1},
		{Name: "join-without-table", Harmless: "what the join does not list is said again on the lane that it brings up"},
	},
	Explore: func(setting int, mutation string, limit int) explore.Result {
		w := &world{mutation: mutation, rejoin: setting == 0}
		return explore.Run(explore.Space[state]{Start: start(), Next: w.next, Limit: limit,
			Done: func(s *state) bool { return s.n[0].awaited == 1 && s.n[1].awaited == 2 },
			Broken: func(s *state) string {
				if s.bad {
					return "a message lost, doubled or out of order"
				}
				return ""
			}})
	},
}

// start: both lanes are up; node 0 has two messages, node 1 one.
func start() (s state) {
	for p := range s.n {
		n := &s.n[p]
		n.todo, n.affinity = [2]uint8{3, 1}[p], uint8(p)
		n.g[0][0].view, n.g[1][0].view = up, up
	}
	return s
}

func (w *world) is(mutation string) bool { return w.mutation == mutation }

// newest is the lane's generation in use.
func (n *node) newest(l uint8) uint8 {
	if n.g[l][1].view != none {
		return 1
	}
	return 0
}

// say puts a frame before the peer. Nobody reads a fenced generation.
func (s *state) say(p, l, g uint8, f frame) bool {
	d := &s.n[1-p].g[l][g]
	if d.view == fenced {
		return true
	}
	if d.queued == capacity {
		return false
	}
	d.in[d.queued] = f
	d.queued++
	return true
}

// said tells whether a frame of the kind is under way already.
func (s *state) said(p, l, g, kind uint8) bool {
	d := &s.n[1-p].g[l][g]
	for i := range d.queued {
		if d.in[i].kind == kind {
			return true
		}
	}
	return false
}

func (n *node) fence(l, g uint8) {
	x := &n.g[l][g]
	x.view, x.in, x.queued = fenced, [capacity]frame{}, 0
}

// settle takes the peer's final count: what is behind it goes elsewhere.
func (w *world) settle(n *node, l, g, count uint8) {
	if !w.is("retired-does-not-fence") {
		n.fence(l, g)
	}
	x := &n.g[l][g]
	if x.settled {
		return
	}
	x.settled = true
	for i := count; i < x.sent; i++ {
		n.todo |= 1 << x.log[i]
	}
}

// list makes the table of a join.
func (n *node) list() (t table) {
	for l := range t {
		if x := &n.g[l][0]; x.view == fenced {
			t[l] = [2]uint8{1, x.count}
		}
	}
	return t
}

// take takes a table over.
func (w *world) take(n *node, t table, own uint8) {
	for l := range uint8(2) {
		if t[l][0] != 0 && (l == own || !w.is("join-without-table")) {
			w.settle(n, l, 0, t[l][1])
		}
	}
}

// forget drops what can no longer matter.
func (s *state) forget() {
	for p := range s.n {
		for l := range s.n[p].g {
			for g := range s.n[p].g[l] {
				x, y := &s.n[p].g[l][g], &s.n[1-p].g[l][g]
				if !x.settled {
					continue
				}
				x.log, x.sent = [messages]uint8{}, 0
				if y.settled {
					x.count, x.owe, x.asked = 0, false, false
				}
			}
		}
	}
}
