package main

import "time"

// startFaults has each kind of fault come at its own pace until the world is calm.
func (w *World) startFaults() {
	f := &w.opt.Faults
	w.often(f.Reset, func() { w.reset(false) })
	w.often(f.HalfReset, func() { w.reset(true) })
	w.often(f.Hole, func() { w.hole([2]bool{true, true}) })
	w.often(f.OneWay, func() {
		i := w.number(0, 1)
		w.hole([2]bool{i == 0, i == 1})
	})
	w.often(f.Slow, w.slow)
	w.often(f.Freeze, w.freeze)
	w.often(f.Crash, func() {
		if c := w.anyCarrier(); c != nil {
			c.e.node.soon("crash", func() { c.lost(errCrash) })
		}
	})
	w.often(f.Alarm, func() {
		if c := w.anyCarrier(); c != nil {
			c.e.node.soon("alarm", func() { c.pulse.Accuse(c.e.now()) })
		}
	})
}

func (w *World) often(every time.Duration, fn func()) {
	if every == 0 {
		return
	}
	w.After(w.between(every/10, 2*every), "fault", func() {
		if w.calm {
			return
		}
		fn()
		w.often(every, fn)
	})
}

func (w *World) anyPath() *Path {
	p := w.pairs[w.number(0, len(w.pairs)-1)]
	return p.paths[w.number(0, len(p.paths)-1)]
}

// anyCarrier gives one end's live transport of some rail; nil: it has none now.
func (w *World) anyCarrier() *carrier {
	n := w.nodes[w.number(0, len(w.nodes)-1)]
	e := n.ends[w.number(0, len(n.ends)-1)]
	return e.rails[w.number(0, len(e.rails)-1)].carrier
}

// joinStep may cut a connection that is being joined, soon, or swallow what it carries one way.
func (w *World) joinStep(c *conn) {
	if w.calm {
		return
	}
	if w.opt.JoinHole > 0 && w.chance(w.opt.JoinHole) {
		dirs := [2]bool{}
		dirs[w.number(0, 1)] = true
		w.swallow(c.path, dirs, w.between(time.Millisecond, w.opt.Faults.HoleFor))
	}
	if !w.chance(w.opt.JoinCut) {
		return
	}
	w.After(w.between(0, 4*w.opt.MaxDelay+4*w.opt.Turn), "join-cut", func() {
		w.Count.Resets++
		c.cut([2]bool{w.chance(0.7), w.chance(0.7)})
	})
}

// reset ends a path's connections; half: only one end hears of it.
func (w *World) reset(half bool) {
	p := w.anyPath()
	sides := [2]bool{true, true}
	if half {
		sides[w.number(0, 1)] = false
	}
	w.note("path %s: reset (heard: %v)", p.name, sides)
	w.Count.Resets++
	for _, c := range append([]*conn(nil), p.live...) {
		c.cut(sides)
	}
}

// hole makes some path a black hole in the given directions for a while.
func (w *World) hole(dirs [2]bool) {
	p := w.anyPath()
	w.swallow(p, dirs, w.between(time.Millisecond, w.opt.Faults.HoleFor))
}

// swallow has what is sent over a path go nowhere, in the given directions, until it heals; then it comes out.
func (w *World) swallow(p *Path, dirs [2]bool, length time.Duration) {
	w.note("path %s: black hole %v for %s", p.name, dirs, length)
	w.Count.Holes++
	for i := range p.dir {
		if dirs[i] {
			p.dir[i].block()
		}
	}
	w.After(length, "heal", func() {
		if w.calm {
			return
		}
		for i := range p.dir {
			if dirs[i] {
				p.dir[i].heal()
			}
		}
		w.note("path %s: healed", p.name)
	})
}

// slow makes a path many times slower for a while.
func (w *World) slow() {
	p := w.anyPath()
	times := float64(w.number(2, 30))
	w.note("path %s: %g times slower", p.name, times)
	w.Count.Slows++
	for i := range p.dir {
		p.dir[i].slow = times
	}
	w.After(w.between(10*time.Millisecond, 500*time.Millisecond), "fast", func() {
		for i := range p.dir {
			p.dir[i].slow = 1
		}
	})
}

// freeze stops a node's process for a while, as a debugger or a full machine does.
func (w *World) freeze() {
	n := w.nodes[w.number(0, len(w.nodes)-1)]
	length := w.between(time.Millisecond, w.opt.Faults.FreezeFor)
	w.note("node %d is stopped for %s", n.id, length)
	w.Count.Freezes++
	n.thaw = max(n.thaw, w.now+length)
}
