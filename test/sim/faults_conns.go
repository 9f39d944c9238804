package main

import "time"

// anyConn gives a connection that both ends still hold for alive; nil: there is none on the path that the dice chose.
func (w *World) anyConn() *conn {
	p := w.anyPath()
	if len(p.live) == 0 {
		return nil
	}
	c := p.live[w.number(0, len(p.live)-1)]
	if c.socks[0].err != nil || c.socks[1].err != nil {
		return nil
	}
	return c
}

// stick has one way of one connection carry nothing for a while, as a card's queue can; what it holds then comes out, even if
// the connection is closed meanwhile.
func (w *World) stick() {
	c := w.anyConn()
	if c == nil || !w.fault(FaultStuck) {
		return
	}
	s := c.socks[w.number(0, 1)]
	length := w.between(time.Millisecond, max(2*w.opt.Faults.HoleFor, time.Millisecond))
	w.note("path %s: what side %d sends on one connection is stuck for %s", c.path.name, s.side, length)
	s.out.stuck = max(s.out.stuck, w.now+length)
}

// tear has a connection end in the middle of the next write to it: a part of it arrives, and then a reset.
func (w *World) tear() {
	if c := w.anyConn(); c != nil {
		c.socks[w.number(0, 1)].out.tear = true
	}
}

// torn carries out what tear has asked for. False: the write goes as any other.
func (s *sock) torn(data []byte) bool {
	w := s.out.w
	if !s.out.tear || len(data) < 2 || w.calm || !w.fault(FaultHalfFrame) {
		return false
	}
	s.out.tear = false
	n := w.number(1, len(data)-1)
	w.note("path %s: ends after %d of the %d bytes that side %d writes", s.conn.path.name, n, len(data), s.side)
	s.out.push(packet{data: data[:n]})
	s.out.push(packet{reset: true})
	w.After(w.between(0, 2*s.out.dir.delay), "torn", func() { s.fail(errReset) })
	return true
}

// sleep has a path swallow everything for minutes: longer than any work goes on. When it wakes up, what it holds comes out.
func (w *World) sleep() {
	p := w.anyPath()
	if p.asleep || !w.fault(FaultSleep) {
		return
	}
	p.asleep = true
	p.wakes = w.now + w.between(time.Minute, 4*time.Minute)
	dirs := [2]bool{true, true}
	if w.chance(0.3) {
		dirs[w.number(0, 1)] = false
	}
	w.note("path %s: sleeps %v until %s", p.name, dirs, p.wakes)
	for i := range p.dir {
		if dirs[i] {
			p.dir[i].block()
		}
	}
}

// wakeUp waits for the paths that sleep. Nothing else is going on by then.
func (w *World) wakeUp() {
	for {
		var next *Path
		for _, p := range w.pairs {
			for _, path := range p.paths {
				if path.asleep && (next == nil || path.wakes < next.wakes) {
					next = path
				}
			}
		}
		if next == nil {
			return
		}
		w.Run(next.wakes, nil)
		next.asleep = false
		next.heal()
		w.Count.Wakeups++
		w.note("path %s: wakes up", next.name)
	}
}
