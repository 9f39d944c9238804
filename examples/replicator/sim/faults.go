package main

import (
	"time"

	"railyard/examples/replicator/replica"
)

// begin starts everybody, the clients' work, and what breaks.
func (w *world) begin() {
	for _, n := range w.nodes {
		n.start()
	}
	w.nominate()
	for _, c := range w.clients {
		c.start()
	}
	w.every(w.crash, func() { w.crashOne(w.any()) })
	w.every(w.freeze, func() {
		if n := w.any(); n.member != nil {
			w.tally.Freezes++
			n.thaw = max(n.thaw, w.now+w.upTo(800*time.Millisecond)) // what waits for it stays in order
			w.note("%s stops until %v", n.name, n.thaw)
		}
	})
	w.every(w.cut, func() {
		a := w.rnd.IntN(len(w.nodes) - 1)
		w.tally.Cuts++
		w.cutLink(a, a+1+w.rnd.IntN(len(w.nodes)-a-1))
	})
	w.every(w.options.elect, w.elect)
	w.every(w.wipe, w.wipeOne)
	w.every(w.withdraw, func() { w.clients[w.rnd.IntN(len(w.clients))].withdraw() })
}

func (w *world) any() *node {
	if i := w.index(w.roster.Primary); i >= 0 && w.chance(0.4) {
		return w.nodes[i]
	}
	return w.nodes[w.rnd.IntN(len(w.nodes))]
}

func (w *world) crashOne(n *node) {
	if n.member == nil {
		return
	}
	n.crash(w.level == replica.LevelC && w.chance(0.7)) // a lower level does not outlive a loss of power
	w.after(w.upTo(time.Second), func() {
		if n.member == nil {
			n.start()
		}
	})
}

// wipeOne gives a node an empty disk: one at a time, while all others have everything.
func (w *world) wipeOne() {
	for _, n := range w.nodes {
		if n.wiped || w.level != replica.LevelC || !n.store.state.Whole || !n.store.disk.state.Whole {
			return
		}
	}
	n := w.any()
	if n.member == nil {
		return
	}
	w.tally.Wiped++
	n.crash(true)
	n.store.wipe(w.extents)
	n.wiped = true
	w.note("%s has a new disk", n.name)
	w.after(w.upTo(time.Second), func() {
		if n.member == nil {
			n.start()
		}
	})
}
