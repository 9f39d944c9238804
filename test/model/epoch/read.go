package main

// read is a node reading one frame.
func (w *world) read(s *state, p, i int) bool {
	c := &s.c[i]
	x := &c.end[p]
	f := x.in[0]
	copy(x.in[:], x.in[1:])
	x.in[room-1] = frame{}
	x.queued--
	switch f.kind {
	case challenge:
		return w.challenged(s, p, i, f)
	case hello:
		return w.helloIn(s, p, i, f)
	case answer, refusal:
		return w.answered(s, p, i, f)
	case confirm:
		w.confirmed(s, p, i, f)
	default:
		return w.carried(s, p, i, f)
	}
	return true
}

// ours tells whether a dialer's connection still belongs to the session that it opened.
func (s *state) ours(p, i int) bool {
	e := &s.n[p].e
	return e.opener && e.id == s.c[i].session
}

// challenged: the acceptor greets. Now it is known to live, and older generations are cut off.
func (w *world) challenged(s *state, p, i int, f frame) bool {
	e := &s.n[p].e
	if !s.ours(p, i) && !w.is("a-yielded-dial-judges") {
		s.kill(p, i)
		return true
	}
	if e.agreed && f.incarnation != e.peer && !w.is("incarnations-are-not-compared") {
		s.kill(p, i)
		if w.gone(s, p) {
			w.replaced(s, p)
		}
		return true
	}
	if !s.ours(p, i) {
		s.kill(p, i)
		return true
	}
	if !e.agreed {
		e.peer = f.incarnation
	}
	return w.sayHello(s, p, i)
}

// gone tells whether the peer's old life is taken for over.
func (w *world) gone(s *state, p int) bool {
	m := moves{w: w, s: s}
	return m.quiet(p)
}

// replaced ends an epoch because another life of the peer has shown itself.
func (w *world) replaced(s *state, p int) {
	if s.n[p].e.id == s.n[1-p].e.id && s.n[1-p].incarnation != 0 {
		s.bad = endedByTheDead
	}
	w.finish(s, p)
}

func (w *world) sayHello(s *state, p, i int) bool {
	e, c := &s.n[p].e, &s.c[i]
	if c.generation <= e.highest {
		s.kill(p, i)
		return true
	}
	e.highest = c.generation
	if e.on != 0 {
		s.kill(p, int(e.on)-1)
	}
	c.end[p].stage = asks
	return c.say(p, frame{kind: hello, first: !e.agreed, incarnation: s.n[p].incarnation, has: e.in})
}

// helloIn is the acceptor's decision.
func (w *world) helloIn(s *state, p, i int, f frame) bool {
	c, n := &s.c[i], &s.n[p]
	if n.e.id != c.session {
		if code := w.open(s, p, i, f); code != 0 {
			ok := c.say(p, frame{kind: refusal, code: code})
			s.kill(p, i)
			return ok
		}
	}
	e := &n.e
	if c.generation <= e.highest && !w.is("a-join-below-the-highest") {
		ok := c.say(p, frame{kind: refusal, code: busy})
		s.kill(p, i)
		return ok
	}
	e.highest = max(e.highest, c.generation)
	if e.on != 0 && !w.is("a-join-before-fencing") {
		s.kill(p, int(e.on)-1)
	}
	e.settle(f.has, c.generation)
	c.end[p].stage = answers
	ok := c.say(p, frame{kind: answer, incarnation: n.incarnation, has: e.in})
	if w.is("data-before-the-confirmation") {
		w.attach(s, p, i)
	}
	return ok
}

// open makes the session of a first hello the node's own, or says why not.
func (w *world) open(s *state, p, i int, f frame) (code uint8) {
	c, e := &s.c[i], &s.n[p].e
	switch {
	case !f.first, s.n[p].over&(1<<c.session) != 0 && !w.is("an-ended-session-opens-again"):
		return unknownSession
	case e.id == 0:
	case e.opener && !e.agreed: // two first sessions at once: the one dialed by the lower address wins
		if w.is("both-first-sessions-refuse") || p == 0 && !w.is("both-first-sessions-yield") {
			return busy
		}
	case c.early && !w.is("a-hello-from-before-the-epoch"), !w.gone(s, p):
		return busy
	default:
		w.replaced(s, p)
	}
	s.n[p].e = epoch{id: c.session, agreed: true, peer: f.incarnation}
	s.agreed(p)
	return 0
}

// agreed marks the connections on which a node greeted before it agreed on its epoch.
func (s *state) agreed(p int) {
	for i := range s.c {
		if c := &s.c[i]; int(c.dialer) != p && c.end[p].stage == listens {
			c.early = true
		}
	}
}

// answered is the dialer hearing the acceptor's decision.
func (w *world) answered(s *state, p, i int, f frame) bool {
	e, c := &s.n[p].e, &s.c[i]
	mine := s.ours(p, i)
	if f.kind == refusal || !mine && !w.is("a-yielded-dial-goes-on") {
		s.kill(p, i)
		if mine && f.code == unknownSession && !w.secretless { // without a secret a stranger could say so
			w.finish(s, p)
		}
		return true
	}
	if !e.agreed {
		e.agreed, e.peer = true, f.incarnation
		s.agreed(p)
	}
	e.settle(f.has, c.generation)
	ok := c.say(p, frame{kind: confirm, has: e.in})
	w.attach(s, p, i)
	return ok
}

func (w *world) confirmed(s *state, p, i int, f frame) {
	e, c := &s.n[p].e, &s.c[i]
	if c.session != e.id && !w.is("a-confirmation-for-an-ended-epoch") {
		s.kill(p, i)
		return
	}
	e.settle(f.has, c.generation)
	w.attach(s, p, i)
}

// attach lets a connection carry, unless a newer generation was named meanwhile.
func (w *world) attach(s *state, p, i int) {
	e, c := &s.n[p].e, &s.c[i]
	if c.generation < e.highest && !w.is("a-join-below-the-highest") {
		s.kill(p, i)
		return
	}
	c.end[p].stage = carries
	e.on = uint8(i) + 1
}

// carried takes a frame of a connection that carries. What belongs to which epoch shows in the connection alone.
func (w *world) carried(s *state, p, i int, f frame) bool {
	c, e := &s.c[i], &s.n[p].e
	if c.end[p].stage != carries {
		s.kill(p, i)
		return true
	}
	switch {
	case c.session != e.id:
		s.bad = otherEpoch
	case f.kind == data:
		if e.in != 0 {
			s.bad = twice
		}
		e.in = c.generation
		return c.say(p, frame{kind: ack})
	case f.kind == ack:
		if e.out != sent {
			s.bad = completedTwice
		}
		e.out, e.outOn = done, 0
	case f.kind == goodbye:
		w.finish(s, p)
	}
	return true
}
