package main

import (
	"container/heap"
	"time"
)

// crash ends a node's process, or its host. A new incarnation comes at once, or after a while, or when the world is calm, or
// never.
func (w *World) crash() {
	n := w.anyNode()
	if n.dead || !w.fault(FaultCrash) {
		return
	}
	n.crash(w.chance(0.3))
	switch w.number(0, 5) {
	case 0:
		n.restartIn(0)
	case 1, 2:
		n.restartIn(w.between(0, 20*time.Millisecond))
	case 3, 4:
		n.restartIn(w.between(0, 700*time.Millisecond))
	default: // not before the world is calm
	}
}

func (n *Node) restartIn(d time.Duration) { n.w.After(d, "restart", n.restart) }

// reviveAll has nodes come back that are to, and each two that live have a session.
func (w *World) reviveAll() {
	for _, n := range append([]*Node(nil), w.nodes...) {
		if n.dead && !w.chance(w.opt.Gone) {
			n.restart()
		}
	}
	for _, n := range w.nodes {
		for i, p := range n.peers {
			if p != nil && !w.nodes[i].dead {
				n.soon("connect", func() { n.connect(i) })
			}
		}
	}
}

// bug ends one end's epoch by a failure of its endpoint's actor (rule 10).
func (w *World) bug() {
	ends := w.ends()
	if len(ends) == 0 {
		return
	}
	if e := ends[w.number(0, len(ends)-1)]; w.fault(FaultBug) {
		e.node.soon("bug", func() { e.close(errBug) })
	}
}

// jump has a node's clock leap, as that of a machine that was suspended does: all that its process waits for is due at once.
func (w *World) jump() {
	n := w.anyNode()
	if n.dead || !w.fault(FaultJump) {
		return
	}
	leap := w.between(time.Millisecond, time.Second)
	if w.chance(0.5) {
		leap = w.between(time.Second, 5*time.Minute)
	}
	w.note("node %d: its clock leaps by %s", n.id, leap)
	n.skew += leap
	for i := range w.queue {
		if q := &w.queue[i]; q.node == n {
			q.at = max(q.at-leap, w.now)
		}
	}
	heap.Init(&w.queue)
}

// recorded is a hello that went over a path, for whoever listens there.
type recorded struct {
	path *Path
	side int // which end said it
	h    hello
}

// maxRecords bounds what a stranger remembers.
const maxRecords = 16

func (w *World) record(s *sock, msg any) {
	h, ok := msg.(hello)
	if !ok || h.played || w.opt.Faults.Replay == 0 {
		return
	}
	w.records = append(w.records, recorded{s.conn.path, s.side, h})
	if len(w.records) > maxRecords {
		w.records = w.records[1:]
	}
}

// replay: a stranger has a connection of his own to a node, and plays back a hello that was once said to it. The challenge is
// another one now.
func (w *World) replay() {
	if len(w.records) == 0 {
		return
	}
	r := w.records[w.number(0, len(w.records)-1)]
	n := r.path.pair.nodes[1-r.side]
	if n.dead || !w.fault(FaultReplay) {
		return
	}
	w.note("path %s: a stranger plays back a hello of %s to node %d", r.path.name, r.h.from, n.id)
	c := newConn(r.path)
	h := r.h
	h.played = true
	c.socks[r.side].out.push(packet{msg: h})
	n.soon("accept", func() { n.accept(c.socks[1-r.side]) })
	w.After(w.between(joinLimit, 2*joinLimit), "hang-up", func() { c.socks[r.side].close(false) })
}
