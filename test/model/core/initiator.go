package main

import "railyard/test/model/explore"

// send gives everything that A may do on a lane that is up.
func (m *moves) send(l uint8) {
	w, s, g, o := m.w, m.s, m.s.newest(l), 1-l
	x, other := &s.g[l][g], s.newest(o)
	if x.view != up {
		return
	}
	for u := chunk0; u <= chunk1; u++ {
		if s.todo[u] {
			m.try(explore.Do("A sends chunk %d on %d.%d", u-1, l, g), func(t *state) bool {
				if t.done != 0 {
					t.bad = lateRead
				}
				return t.write(l, g, u)
			})
		}
	}
	m.sendMessage(l, g)
	if s.canceled == 1 && s.done == 0 && !x.ab.has(cancel) && !x.ba.has(verdict) {
		m.try(explore.Do("A sends Cancel on %d.%d", l, g), func(t *state) bool { return t.g[l][g].ab.put(frame{kind: cancel}) })
	}
	ox := &s.g[o][other]
	if ox.view == down && !x.ab.has(retire) && !x.ba.has(retired) && (!ox.asked || !w.is("retire-sent-once")) {
		m.try(explore.Do("A sends Retire of %d.%d", o, other), func(t *state) bool {
			t.g[o][other].asked = w.is("retire-sent-once")
			return t.g[l][g].ab.put(frame{kind: retire, lane: o, gen: other})
		})
	}
	if g == 0 { // a suspicion, right or wrong, or a reset that A sees
		m.try(explore.Do("A suspects and closes %d.%d", l, g), func(t *state) bool {
			t.g[l][g].view = down
			if w.is("reroute-before-retire") {
				w.settle(t, frame{lane: l, gen: g, count: x.acked})
			}
			return true
		})
	}
	if w.is("move-tail-without-retire") && !s.moved && ox.view == up && x.sent > 0 && x.log[0] <= chunk1 && x.acked == 0 &&
		s.done == 0 && s.canceled == 0 {
		m.try(explore.Do("A moves the tail of %d.%d", l, g), func(t *state) bool {
			t.moved, t.todo[x.log[0]] = true, true
			return true
		})
	}
}

// sendMessage sends the oldest message that waits, where its affinity lets it.
func (m *moves) sendMessage(l, g uint8) {
	w, s := m.w, m.s
	u := message0
	if !s.todo[message0] {
		u = message1
	}
	if !s.todo[u] {
		return
	}
	home := s.g[s.affinity][s.newest(s.affinity)].view
	if s.affinity == l || home == settled || w.is("affinity-moves-on-suspect") && home != up {
		m.try(explore.Do("A sends message %d on %d.%d", u-message0, l, g), func(t *state) bool {
			t.affinity = l
			return t.write(l, g, u)
		})
	}
}

// write puts a counted frame on a generation.
func (s *state) write(l, g, u uint8) bool {
	x := &s.g[l][g]
	s.todo[u] = false
	x.log[x.sent] = u
	x.sent++
	return x.ab.put(frame{kind: u})
}

// dial gives A's way back: a hello also retires what is older.
func (m *moves) dial(l uint8) {
	s, g, o := m.s, m.s.newest(l), 1-l
	view := s.g[l][g].view
	if view == dialing && s.g[l][0].view == settled && s.g[o][s.newest(o)].view == up {
		m.try(explore.Do("A gives up dialing %d.%d", l, g), func(t *state) bool { t.g[l][g].view = down; return true })
	}
	if (view == settled || view == down) && g+1 < generations {
		m.try(explore.Do("A dials %d.%d", l, g+1), func(t *state) bool {
			t.g[l][g+1].view = dialing
			return t.g[l][g+1].ab.put(frame{kind: hello})
		})
	}
}

// takeBack is A's cancel: from now on nothing of the operation is sent, and the target is asked.
func (w *world) takeBack(s *state) {
	s.canceled = 1
	for l := range s.g {
		for g := range s.g[l] {
			s.listed[l][g] = s.g[l][g].sent
		}
	}
	s.todo[chunk0], s.todo[chunk1] = false, false
	if w.is("cancel-decided-by-initiator") {
		s.finish(canceled)
	}
}

// hear is A reading one frame.
func (w *world) hear(s *state, l, g uint8) bool {
	x := &s.g[l][g]
	f := x.ba.pop()
	switch f.kind {
	case ack:
		if f.ref == 1 {
			s.finish(revoked)
		}
		x.acked = max(x.acked, f.count)
		for i := range f.count {
			s.ok[x.log[i]] = true
		}
		s.progress()
	case refusal:
		s.finish(revoked)
	case verdict:
		s.finish(f.ref)
	case retired:
		w.settle(s, f)
	case helloOK:
		w.settle(s, f)
		x.view = up
	}
	return true
}

// settle: A learns, once and for all, what was applied of a generation. The rest goes elsewhere.
func (w *world) settle(s *state, f frame) {
	x := &s.g[f.lane][f.gen]
	if x.view == none || x.view == settled {
		return
	}
	x.view = settled
	if f.ref&1 == 1 {
		s.finish(revoked)
	}
	n := f.count
	if w.is("reroute-from-last-ack") {
		n = x.acked
	}
	for i := range x.sent {
		u := x.log[i]
		switch {
		case i < n:
			s.ok[u] = true
		case u > chunk1 || s.canceled == 0 && s.done == 0 || w.is("reroute-canceled"):
			s.todo[u] = true
		}
	}
	s.progress()
}

// progress completes the put when all of it is known to be applied.
func (s *state) progress() {
	if s.ok[chunk0] && s.ok[chunk1] && s.canceled == 0 {
		s.finish(success)
	}
}

// finish is the completion: the first is the only one.
func (s *state) finish(how uint8) {
	if s.done != 0 {
		return
	}
	s.done = how
	if how == success && s.applied != [2]uint8{1, 1} {
		s.bad = falseSuccess
	}
	if how != success && s.notified != 0 {
		s.bad = wrongNotify
	}
	s.todo[chunk0], s.todo[chunk1] = false, false
}
