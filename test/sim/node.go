package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"railyard/rma"
)

// Node is one incarnation of a node: its regions, and one end of a session for each peer.
type Node struct {
	w       *World
	id      int
	born    time.Duration
	regions *rma.Table
	ends    []*End
	// thaw is when the node runs again: until then its process is stopped. Its kernel goes on.
	thaw time.Duration
}

// Pair is two nodes with what lies between them.
type Pair struct {
	ends  [2]*End
	paths []*Path
	lost  int // the path that does not come back until all is done; -1: none
	lives livesCheck
}

// entropy is a seeded source of tokens.
type entropy struct{ *rand.Rand }

func (e entropy) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e.Uint32())
	}
	return len(b), nil
}

func newNode(w *World, id int) *Node {
	n := &Node{w: w, id: id, born: w.now - w.between(0, time.Second)}
	n.regions = rma.NewTable(entropy{rand.New(rand.NewPCG(w.opt.Seed, uint64(100+id)))}, 0)
	return n
}

// clock is the node's own monotonic time.
func (n *Node) clock() time.Duration { return n.w.now - n.born + time.Microsecond }

// after has fn run by the node's process after d, or when it is running again.
func (n *Node) after(d time.Duration, tag string, fn func()) {
	n.w.After(d, tag, func() {
		if n.thaw > n.w.now {
			n.after(n.thaw-n.w.now, tag, fn)
			return
		}
		fn()
	})
}

// turn is how long a goroutine of the node waits until it runs.
func (n *Node) turn() time.Duration {
	w := n.w
	d := w.between(0, w.opt.Turn)
	if w.chance(w.opt.LateTurn) {
		d += w.between(0, 10*w.opt.Turn)
	}
	return d
}

// soon has fn run when its goroutine gets its turn.
func (n *Node) soon(tag string, fn func()) { n.after(n.turn(), tag, fn) }

// build makes the nodes, the paths and the sessions.
func (w *World) build() {
	for i := range w.opt.Nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i, a := range w.nodes {
		for _, b := range w.nodes[i+1:] {
			p := &Pair{lives: livesCheck{w: w, lives: make(map[lifeKey]*life)}}
			for k := range w.opt.Lanes {
				path := newPath(w, fmt.Sprintf("%d-%d/%d", a.id, b.id, k))
				path.pair = p
				path.verbs = w.opt.Verbs == 1 || (w.opt.Verbs > 0 && w.chance(w.opt.Verbs))
				p.paths = append(p.paths, path)
			}
			opener := w.rnd.IntN(2)
			p.ends[0] = newEnd(a, p, 0, opener == 0)
			p.ends[1] = newEnd(b, p, 1, opener == 1)
			p.ends[0].peer, p.ends[1].peer = p.ends[1], p.ends[0]
			w.pairs = append(w.pairs, p)
		}
	}
	for _, p := range w.pairs {
		for _, e := range p.ends {
			e.app = newApp(e)
		}
	}
	for _, p := range w.pairs {
		for _, e := range p.ends {
			e.app.start()
			for _, r := range e.rails {
				r.look()
			}
		}
	}
}

// play is the whole life of a world: work and faults, then calm, then the last look.
func (w *World) play() {
	w.build()
	w.startFaults()
	w.watchBounds()
	w.Run(w.opt.Length, nil)
	switch w.opt.Ending {
	case Peace:
		w.settleDown()
	case BreakOff:
		w.breakOff()
	case Goodbye:
		w.sayGoodbye()
	}
	w.checkEnd()
}
