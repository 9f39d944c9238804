package main

import (
	"time"

	"railyard/examples/replicator/replica"
)

// propose brings a command to the consensus: late, sometimes twice, sometimes never.
func (w *world) propose(c replica.Command) {
	if !w.calm && w.chance(0.1) {
		return
	}
	w.after(w.upTo(60*time.Millisecond), func() { w.decide(c) })
	if !w.calm && w.chance(0.1) {
		w.after(w.upTo(time.Second), func() { w.decide(c) })
	}
}

func (w *world) decide(c replica.Command) {
	next, err := w.roster.Apply(c)
	if err != nil {
		return
	}
	if c.Primary != "" {
		w.tally.Epochs++
	} else if len(next.InSync) < len(w.roster.InSync) {
		w.tally.Dropped++
	}
	w.roster = next
	w.note("roster: epoch %d, version %d, primary %s, in sync %v", next.Epoch, next.Version, next.Primary, next.InSync)
	for _, n := range w.nodes {
		n.soon(w.upTo(100*time.Millisecond), func(n *node) { n.step(replica.Agreed{Roster: next}) })
	}
}

// nominate looks after a primary: one that is away is replaced.
func (w *world) nominate() {
	w.after(100*time.Millisecond, func() {
		i := w.index(w.roster.Primary)
		if i < 0 || w.nodes[i].member == nil || w.nodes[i].thaw > w.now+100*time.Millisecond {
			w.elect()
		}
		w.nominate()
	})
}

func (w *world) elect() {
	n := w.nodes[w.rnd.IntN(len(w.nodes))]
	if n.member != nil {
		w.propose(replica.Command{Epoch: w.roster.Epoch, Primary: n.name})
	}
}
