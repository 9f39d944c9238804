package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"railyard/examples/replicator/replica"
)

// settled is how long a healed world may take until everybody is in sync: virtual time.
const settled = 60 * time.Second

// end heals everything, waits until all is as it should be, and compares.
func (w *world) end() {
	w.calm = true
	w.note("all heals")
	w.slowDisk, w.slowNet, w.lateness = min(w.slowDisk, 5*time.Millisecond), min(w.slowNet, 5*time.Millisecond), 0
	for _, n := range w.nodes {
		if n.member == nil {
			n.start()
		}
	}
	if !w.run(w.now+settled, w.healthy) {
		w.violate("not in sync %v after everything has healed: %+v\n%s", settled, w.roster, w.standing())
	}
	w.settle("at the end")
	if w.level != replica.LevelA {
		w.readBack()
	}
	w.damage()
}

// healthy: everybody is in sync, and the primary has nothing left to do.
func (w *world) healthy() bool {
	if len(w.roster.InSync) != len(w.roster.Members) {
		return false
	}
	for _, c := range w.clients {
		if !c.done || len(c.open) > 0 {
			return false
		}
	}
	for _, n := range w.nodes {
		if n.member == nil || n.thaw > w.now || n.store.last != w.nodes[0].store.last || !n.store.state.Whole || n.store.busy {
			return false
		}
	}
	return w.nodes[w.index(w.roster.Primary)].member.Status().Open
}

// standing tells how every member stands.
func (w *world) standing() string {
	var b strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "%s: %+v, store at %v, state %+v\n", n.name, n.member.Status(), n.store.last, n.store.state)
	}
	for _, c := range w.clients {
		fmt.Fprintf(&b, "client %d: done %v, open %d\n", c.index, c.done, len(c.open))
	}
	return b.String()
}

// settle lets what is under way arrive, and compares the images.
func (w *world) settle(when string) {
	w.run(w.now+3*time.Second, nil)
	if !w.run(w.now+settled, w.healthy) {
		w.violate("not in sync for long %s: %+v\n%s", when, w.roster, w.standing())
	}
	for _, n := range w.nodes[1:] {
		if !bytes.Equal(n.store.image, w.nodes[0].store.image) {
			w.violate("%s: the images of %s and %s differ", when, n.name, w.nodes[0].name)
		}
	}
}

// readBack reads every block once more, and looks whether each block's history has an order.
func (w *world) readBack() {
	c := newClient(w, len(w.clients))
	for b := range w.extents * extent / block {
		for try := 0; ; try++ {
			c.target = w.index(w.roster.Primary)
			o := c.read(b, 1)
			if !w.run(w.now+10*time.Second, func() bool { return o.over }) || try > 100 {
				w.violate("block %d cannot be read at the end", b)
			}
			if o.parts[0].ended {
				break
			}
		}
	}
	for b := range w.extents * extent / block {
		if why := w.history(b).order(); why != "" {
			w.violate("block %d: %s", b, why)
		}
	}
}

// damage spoils an extent behind a replica's back: a verification has to find and repair it.
func (w *world) damage() {
	p := w.index(w.roster.Primary)
	victim := w.nodes[(p+1)%len(w.nodes)]
	victim.store.image[w.rnd.IntN(len(victim.store.image))] ^= 0x55
	before := w.tally.Repaired
	w.nodes[p].step(replica.Verify{})
	w.run(w.now+5*time.Second, nil)
	w.settle("after a repair")
	if w.tally.Repaired != before+1 {
		w.violate("one extent was damaged, %d were found", w.tally.Repaired-before)
	}
}
