package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
	"railyard/wire"
)

// Node is one incarnation of a node: its memory, and its endpoints, of which there is one at a time for each peer. It ends with
// its process; its kernel goes on.
type Node struct {
	w           *World
	id          int
	life        int // which incarnation of the node it is, from 1
	incarnation wire.NodeID
	born        time.Duration
	skew        time.Duration // what its clock has leapt
	regions     *rma.Table
	peers       []*peer // by the other node's id; nil for itself
	dead        bool
	// thaw is when the node runs again: until then its process is stopped. Its kernel goes on.
	thaw time.Duration
}

// peer is what a node has to do with another one.
type peer struct {
	pair   *Pair
	side   int
	home   *home
	end    *End            // the endpoint in use; nil: none
	former *End            // the one before
	graves map[string]bool // sessions that have ended here: the product remembers them for as long as a hello may be under way
	fails  int             // endpoints since the last one that was agreed on
}

// home is the memory that a node registers for a peer. It outlives the endpoints.
type home struct {
	areas  []*area
	sealed map[session.OpKind]*area // the peer may use it for anything but this; they are never revoked
}

// Pair is two nodes with what lies between them.
type Pair struct {
	nodes  [2]*Node // the newest incarnations
	paths  []*Path
	lost   int // the path that does not come back until all is done; -1: none
	epochs int
	budget [2]int       // bytes of payload that each side may still send
	stale  [2][]rma.Key // of earlier incarnations of each side
}

// end gives the endpoint in use at a side; nil: none.
func (p *Pair) end(side int) *End {
	n := p.nodes[side]
	if n.dead {
		return nil
	}
	return n.peers[p.nodes[1-side].id].end
}

// entropy is a seeded source of tokens.
type entropy struct{ *rand.Rand }

func (e entropy) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e.Uint32())
	}
	return len(b), nil
}

func newNode(w *World, id, life int) *Node {
	n := &Node{w: w, id: id, life: life, born: w.now - w.between(0, time.Second), peers: make([]*peer, w.opt.Nodes)}
	n.regions = rma.NewTable(entropy{rand.New(rand.NewPCG(w.opt.Seed, uint64(life)<<32|uint64(100+id)))}, 0)
	w.random(n.incarnation[:])
	return n
}

// meet gives the node its memory for the other node of a pair.
func (n *Node) meet(p *Pair, side, other int) {
	l := &n.w.opt.Load
	h := &home{sealed: map[session.OpKind]*area{
		session.Put: newArea(n, rma.RemoteRead, sealedSize), session.Get: newArea(n, rma.RemoteWrite, sealedSize)}}
	for range l.Regions {
		h.areas = append(h.areas, newArea(n, rma.RemoteWrite|rma.RemoteRead, l.RegionSize))
	}
	n.peers[other] = &peer{pair: p, side: side, home: h, graves: make(map[string]bool)}
	p.nodes[side] = n
}

// name is the node's address.
func nameOf(id int) string { return fmt.Sprintf("node-%d", id) }

// clock is the node's own monotonic time.
func (n *Node) clock() time.Duration { return n.at(n.w.now) }

// at is what the node's clock has to say of a moment.
func (n *Node) at(t time.Duration) time.Duration { return t - n.born + n.skew + time.Microsecond }

// after has fn run by the node's process after d, or when it is running again; never once it is dead.
func (n *Node) after(d time.Duration, tag string, fn func()) {
	n.w.push(event{at: n.w.now + max(d, 0), tag: tag, node: n, fn: fn})
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

// bySession gives the endpoint of a session; nil: none of that is in use.
func (n *Node) bySession(id []byte) *End {
	for _, p := range n.peers {
		if p != nil && p.end != nil && string(p.end.epoch.id[:]) == string(id) {
			return p.end
		}
	}
	return nil
}

// connect makes the endpoint to a peer unless there is one, as the first use does. Nothing of the one before may be in progress.
func (n *Node) connect(other int) {
	p := n.peers[other]
	if n.dead || p.end != nil {
		return
	}
	if p.former != nil && !p.former.s.Still() {
		p.former.whenStill(func() { n.connect(other) })
		return
	}
	e := newEnd(n, p, true)
	e.first = n.w.number(0, len(e.rails)-1)
	e.note("opens %s", e.epoch)
	e.begin()
}

// reconnect has the peer used again after a while, by this node or not at all.
func (n *Node) reconnect(other int) {
	w := n.w
	if w.opt.Ending != Peace && !w.opt.Return {
		return
	}
	p := n.peers[other]
	p.fails++
	wait := w.between(0, min(time.Millisecond<<min(p.fails, 10), time.Second))
	n.after(wait, "connect", func() {
		if w.calm || w.chance(0.7) {
			n.connect(other)
		}
	})
}

// build makes the nodes and the paths, and lets the endpoints begin.
func (w *World) build() {
	for i := range w.opt.Nodes {
		w.nodes = append(w.nodes, newNode(w, i, 1))
	}
	for i, a := range w.nodes {
		for _, b := range w.nodes[i+1:] {
			p := &Pair{lost: -1, budget: [2]int{w.opt.Load.Budget, w.opt.Load.Budget}}
			for k := range w.opt.Lanes {
				path := newPath(w, fmt.Sprintf("%d-%d/%d", a.id, b.id, k))
				path.pair, path.rail = p, wire.RailID(k)
				path.verbs = w.opt.Verbs == 1 || (w.opt.Verbs > 0 && w.chance(w.opt.Verbs))
				p.paths = append(p.paths, path)
			}
			a.meet(p, 0, b.id)
			b.meet(p, 1, a.id)
			w.pairs = append(w.pairs, p)
		}
	}
	for _, p := range w.pairs {
		opener := w.number(0, 1)
		p.nodes[opener].connect(p.nodes[1-opener].id)
		if w.chance(w.opt.BothOpen) {
			p.nodes[1-opener].after(w.between(0, 4*w.opt.MaxDelay), "connect", func() {
				p.nodes[1-opener].connect(p.nodes[opener].id)
			})
		}
	}
}

// random fills b.
func (w *World) random(b []byte) {
	for len(b) > 0 {
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], w.rnd.Uint64())
		b = b[copy(b, v[:]):]
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
