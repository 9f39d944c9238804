package main

import "railyard/test/model/explore"

// moves collects the successors of a state.
type moves struct {
	w   *world
	s   *state
	out func(explore.Action, state)
}

func (m *moves) try(a explore.Action, f func(t *state) bool) {
	t := *m.s
	if f(&t) {
		t.forget()
		m.out(a, t)
	}
}

func (w *world) next(s *state, out func(explore.Action, state)) {
	m := &moves{w: w, s: s, out: out}
	for p := range uint8(2) {
		for l := range uint8(2) {
			m.lane(p, l)
			for g := range uint8(generations) {
				if x := &s.n[p].g[l][g]; x.queued > 0 && x.view != fenced {
					m.try(explore.Do("node %d reads on %d.%d", p, l, g), func(t *state) bool { return w.read(t, p, l, g) })
				}
			}
		}
	}
}

// lane gives what a node may do with one lane of its own accord.
func (m *moves) lane(p, l uint8) {
	n := &m.s.n[p]
	g, o := n.newest(l), 1-l
	x := &n.g[l][g]
	if x.view == up {
		m.message(p, l)
		for og := range uint8(generations) {
			m.retire(p, l, og)
		}
		if g == 0 && n.g[o][n.newest(o)].view == up {
			m.try(explore.Do("node %d suspects %d.%d", p, l, g), func(t *state) bool { t.n[p].fence(l, g); return true })
		}
		if g == 0 && p == 1 {
			m.try(explore.Do("node %d sees a reset of %d.%d", p, l, g), func(t *state) bool { t.n[p].fence(l, g); return true })
		}
	}
	// Node 0 dials where its own end is fenced, and beside it where all lanes are silent, which is to say dead at the other end.
	peer := &m.s.n[1]
	silent := peer.g[0][peer.newest(0)].view == fenced && peer.g[1][peer.newest(1)].view == fenced
	if p == 0 && g == 0 && (l == 0 || m.w.rejoin) && (x.view == fenced || silent && !m.w.is("all-silent-waits")) {
		m.try(explore.Do("node 0 dials %d.1", l), func(t *state) bool {
			t.n[0].g[l][1].view = dialing
			return t.say(0, l, 1, frame{kind: hello})
		})
	}
}

// message sends the oldest message that waits, where its affinity lets it.
func (m *moves) message(p, l uint8) {
	n := &m.s.n[p]
	if n.todo == 0 {
		return
	}
	u := uint8(0)
	if n.todo&1 == 0 {
		u = 1
	}
	home := &n.g[n.affinity][n.newest(n.affinity)]
	if n.affinity != l && !home.settled {
		return
	}
	g := n.newest(l)
	m.try(explore.Do("node %d sends message %d on lane %d", p, u, l), func(t *state) bool {
		x := &t.n[p].g[l][g]
		t.n[p].todo &^= 1 << u
		t.n[p].affinity = l
		x.log[x.sent] = u
		x.sent++
		return t.say(p, l, g, frame{kind: message, n: u})
	})
}

// retire says the final count of a fenced generation of the other lane, until the peer's is known and none is owed.
func (m *moves) retire(p, l, og uint8) {
	n, o := &m.s.n[p], 1-l
	g := n.newest(l)
	x := &n.g[o][og]
	if x.view != fenced || x.settled && !x.owe || m.s.said(p, l, g, retired) ||
		x.asked && !x.owe && m.w.is("retired-sent-once") {
		return
	}
	m.try(explore.Do("node %d sends Retired of %d.%d", p, o, og), func(t *state) bool {
		y := &t.n[p].g[o][og]
		y.owe, y.asked = false, m.w.is("retired-sent-once")
		return t.say(p, l, g, frame{kind: retired, lane: o, gen: og, n: x.count, have: x.settled})
	})
}

// read is a node reading one frame.
func (w *world) read(s *state, p, l, g uint8) bool {
	n := &s.n[p]
	x := &n.g[l][g]
	f := x.in[0]
	copy(x.in[:], x.in[1:])
	x.in[capacity-1] = frame{}
	x.queued--
	switch f.kind {
	case message:
		x.count++
		if f.n != n.awaited {
			s.bad = true
		}
		n.awaited++
	case retired:
		about := &n.g[f.lane][f.gen]
		was := about.view
		w.settle(n, f.lane, f.gen, f.n)
		about.owe = !f.have && (was != fenced || !w.is("crossing-counts-as-answered"))
	case hello:
		if x.view == none {
			x.view = waiting
		}
		return s.say(p, l, g, frame{kind: nonce})
	case nonce: // the peer lives: now, and not before, the old generation is fenced
		n.fence(l, 0)
		return s.say(p, l, g, frame{kind: join, list: n.list()})
	case join:
		n.fence(l, 0)
		w.take(n, f.list, l)
		x.view = up
		return s.say(p, l, g, frame{kind: joined, list: n.list()})
	case joined:
		w.take(n, f.list, l)
		x.view = up
	}
	return true
}
