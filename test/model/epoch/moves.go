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
		m.w.tidy(&t)
		m.out(a, t)
	}
}

// hurt is try for what goes wrong.
func (m *moves) hurt(a explore.Action, f func(t *state)) {
	if m.s.trouble == 0 {
		return
	}
	m.try(a, func(t *state) bool {
		t.trouble--
		t.troubled = true
		f(t)
		return true
	})
}

func (w *world) next(s *state, out func(explore.Action, state)) {
	m := &moves{w: w, s: s, out: out}
	for p := range s.n {
		if s.n[p].incarnation == 0 {
			m.try(explore.Do("node %d starts again", uint8(p)), func(t *state) bool {
				t.n[p].incarnation = t.reborn(p)
				return true
			})
			continue
		}
		m.node(p)
		for i := range s.c {
			if s.c[i].end[p].stage != none {
				m.conn(p, i)
			}
		}
	}
	if s.trouble > 0 { // from here on all has to end well without more of it
		m.try(explore.Do("nothing goes wrong any more"), func(t *state) bool { t.trouble = 0; return true })
	}
}

// node gives what a node may do of its own accord.
func (m *moves) node(p int) {
	n, u := &m.s.n[p], uint8(p)
	e := &n.e
	if e.id == 0 && m.w.opens[p] {
		m.try(explore.Do("node %d opens a session", u), func(t *state) bool {
			t.n[p].e = epoch{id: t.fresh(), opener: true}
			return true
		})
	}
	if e.id != 0 && e.opener && e.highest < m.w.generations && m.s.silent(p) && m.s.n[1-p].incarnation != 0 && !m.s.dialing(p) {
		m.try(explore.Do("node %d dials", u), func(t *state) bool { return m.w.dial(t, p) })
	}
	if e.id != 0 && m.s.troubled && m.quiet(p) {
		m.try(explore.Do("node %d gives up: OutageLimit", u), func(t *state) bool { m.w.finish(t, p); return true })
	}
	m.hurt(explore.Do("node %d crashes", u), func(t *state) { t.crash(p, false) })
	m.hurt(explore.Do("node %d loses its power: no reset comes", u), func(t *state) { t.crash(p, true) })
	if e.on == 0 {
		return
	}
	c := &m.s.c[e.on-1]
	if e.out == waiting && m.w.sends[p] {
		m.try(explore.Do("node %d sends on generation %d", u, c.generation), func(t *state) bool {
			e := &t.n[p].e
			e.out, e.outOn = sent, c.generation
			return t.c[e.on-1].say(p, frame{kind: data})
		})
	}
	if m.w.goodbye && e.out == done {
		m.hurt(explore.Do("node %d says goodbye and ends", u), func(t *state) {
			_ = t.c[e.on-1].say(p, frame{kind: goodbye})
			t.crash(p, false)
		})
	}
}

// quiet tells whether a node takes its peer for gone.
func (m *moves) quiet(p int) bool {
	if m.w.is("an-open-socket-is-life") {
		return m.s.n[p].e.on == 0
	}
	return m.s.silent(p)
}

// dialing tells whether a node is at a handshake of its own.
func (s *state) dialing(p int) bool {
	for i := range s.c {
		c := &s.c[i]
		if st := c.end[p].stage; c.session != 0 && int(c.dialer) == p && (st == greets || st == asks) {
			return true
		}
	}
	return false
}

// crash ends a process. Its kernel sends on what it wrote, and then a reset, unless the power is gone.
func (s *state) crash(p int, mute bool) {
	for i := range s.c {
		c := &s.c[i]
		if c.end[p].stage == none {
			continue
		}
		c.mute = c.mute || mute
		s.kill(p, i)
	}
	s.n[p] = node{}
}

// dial connects to the peer's kernel.
func (w *world) dial(s *state, p int) bool {
	for i := range s.c {
		c := &s.c[i]
		if c.session != 0 {
			continue
		}
		e := &s.n[p].e
		*c = conn{dialer: uint8(p), session: e.id, generation: e.highest + 1}
		if w.is("the-dialer-speaks-first") {
			c.end[1-p].stage = backlog
			return w.sayHello(s, p, i)
		}
		c.end[p].stage, c.end[1-p].stage = greets, listens
		return c.say(1-p, frame{kind: challenge, incarnation: s.n[1-p].incarnation})
	}
	return false
}

// finish ends a node's epoch: what is open fails, and nothing more of it is applied.
func (w *world) finish(s *state, p int) {
	e := &s.n[p].e
	if e.on != 0 && !w.is("the-old-epoch-is-not-fenced") {
		s.kill(p, int(e.on)-1)
	}
	s.n[p].over |= 1 << e.id
	s.n[p].e = epoch{}
}

// conn gives what may happen at a node's end of a connection.
func (m *moves) conn(p, i int) {
	c, u, k := &m.s.c[i], uint8(p), uint8(i)
	x := &c.end[p]
	gone := c.end[1-p].stage == none
	if gone && !c.mute {
		m.try(explore.Do("node %d sees the end of connection %d", u, k), func(t *state) bool { t.kill(p, i); return true })
	}
	if x.stage != carries && x.stage != backlog {
		late := func(t *state) { t.kill(p, i) }
		a := explore.Do("node %d gives the handshake on connection %d up", u, k)
		if c.mute {
			m.try(a, func(t *state) bool { late(t); return true })
		} else if !gone {
			m.hurt(a, late)
		}
	}
	if x.stage == carries && !c.mute {
		m.hurt(explore.Do("connection %d falls silent", k), func(t *state) { t.c[i].mute = true })
	}
	if x.stage == backlog {
		m.try(explore.Do("node %d takes connection %d", u, k), func(t *state) bool { t.c[i].end[p].stage = listens; return true })
		return
	}
	if x.queued > 0 {
		m.try(explore.Do("node %d reads on connection %d", u, k), func(t *state) bool { return m.w.read(t, p, i) })
	}
}
