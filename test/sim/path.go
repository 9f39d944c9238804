package main

import (
	"time"

	"railyard/wire"
)

// Path is what lies between one card of a node and one of another: two directions, each with its own delay, rate and
// faults. Everything that a connection carries goes over it.
type Path struct {
	w    *World
	name string
	pair *Pair
	rail wire.RailID
	dir  [2]direction // by the side that sends
	live []*conn
	// asleep: it swallows everything until wakes.
	asleep bool
	wakes  time.Duration
	// verbs: its cards write into registered memory by themselves.
	verbs bool
}

// direction is one way of a path.
type direction struct {
	w             *World
	delay, jitter time.Duration
	rate          float64 // bytes a second
	slow          float64 // 1: as ever; more: so many times slower
	blocked       bool    // a black hole: what is sent stays in the senders' kernels until it heals
	blockedAt     time.Duration
	busy          time.Duration
	waiting       []func() // what goes on when it heals
}

func newPath(w *World, name string) *Path {
	p := &Path{w: w, name: name}
	for i := range p.dir {
		o := &w.opt
		p.dir[i] = direction{
			w: w, slow: 1,
			delay:  w.between(o.MinDelay, o.MaxDelay),
			jitter: w.between(0, o.Jitter),
			rate:   o.MinRate + w.rnd.Float64()*(o.MaxRate-o.MinRate),
		}
	}
	if w.chance(0.7) { // mostly both ways are alike
		p.dir[1] = p.dir[0]
	}
	return p
}

// arrival is when n bytes that are sent now are at the other end, if nothing is in their way.
func (d *direction) arrival(n int) time.Duration {
	d.busy = max(d.busy, d.w.now) + time.Duration(float64(n)/d.rate*d.slow*float64(time.Second))
	return d.busy + d.delay + d.w.between(0, d.jitter)
}

// whenOpen runs fn at once, or, where the direction is a black hole, when that is healed and the sender has noticed.
func (d *direction) whenOpen(fn func()) {
	if !d.blocked {
		fn()
		return
	}
	d.waiting = append(d.waiting, fn)
}

// block makes the direction a black hole.
func (d *direction) block() {
	if !d.blocked {
		d.blocked, d.blockedAt = true, d.w.now
	}
}

// silentSince tells whether no question can be answered over the path now, and since when.
func (p *Path) silentSince() (since time.Duration, silent bool) {
	for i := range p.dir {
		if d := &p.dir[i]; d.blocked && (!silent || d.blockedAt < since) {
			since, silent = d.blockedAt, true
		}
	}
	return since, silent
}

// heal ends a black hole: what it held comes out, each thing when its sender's kernel sends it again.
func (d *direction) heal() {
	d.blocked = false
	waiting := d.waiting
	d.waiting = nil
	for _, fn := range waiting {
		d.w.After(d.w.between(0, 60*time.Millisecond), "resent", func() { d.whenOpen(fn) })
	}
}

// heal ends every fault of the path.
func (p *Path) heal() {
	for i := range p.dir {
		p.dir[i].slow = 1
		p.dir[i].heal()
	}
}

// ask runs then(true) at the asking side when a packet has gone to the other side and another come back; then(false)
// when that took too long.
func (p *Path) ask(side int, limit time.Duration, then func(ok bool)) {
	over := false
	end := func(ok bool) {
		if !over {
			over = true
			then(ok)
		}
	}
	p.w.After(limit, "dial-limit", func() { end(false) })
	there, back := &p.dir[side], &p.dir[1-side]
	if there.blocked { // a lost SYN is sent again, too late for anybody here
		return
	}
	p.w.After(there.arrival(64)-p.w.now, "syn", func() {
		if back.blocked {
			return
		}
		p.w.After(back.arrival(64)-p.w.now, "syn-ack", func() { end(true) })
	})
}
