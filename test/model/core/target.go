package main

import "railyard/test/model/explore"

// target gives everything that B may do on a generation.
func (m *moves) target(l, g uint8) {
	w, s, x := m.w, m.s, &m.s.g[l][g]
	switch {
	case x.fenced:
	case !x.joined:
		if x.ab.n > 0 && x.ab.f[0].kind == hello {
			m.try(explore.Do("B reads the hello of %d.%d", l, g), func(t *state) bool { return w.join(t, l, g) })
		}
	default:
		m.reader(l, g)
		if x.count > x.lastAck && (x.view == up || x.view == dialing) {
			m.try(explore.Do("B acknowledges on %d.%d", l, g), func(t *state) bool {
				y := &t.g[l][g]
				y.lastAck = y.count
				return y.ba.put(frame{kind: ack, lane: l, gen: g, count: y.count, ref: w.refusals(t)})
			})
		}
		if w.is("refusal-apart") && s.refused && !x.ba.has(refusal) {
			m.try(explore.Do("B sends its refusal on %d.%d", l, g), func(t *state) bool {
				return t.g[l][g].ba.put(frame{kind: refusal})
			})
		}
	}
}

// reader gives B's next read of a stream: the second half of a chunk, or the next frame.
func (m *moves) reader(l, g uint8) {
	w, x := m.w, &m.s.g[l][g]
	if x.half != 0 {
		m.try(explore.Do("B reads the second half of chunk %d on %d.%d", x.half-1, l, g), func(t *state) bool {
			w.secondHalf(t, l, g)
			return true
		})
		return
	}
	if x.ab.n > 0 {
		m.try(explore.Do("B reads on %d.%d", l, g), func(t *state) bool { return w.read(t, l, g) })
	}
	if g == 0 { // its socket is reset, or B closes it
		m.try(explore.Do("a reset at B of %d.%d", l, g), func(t *state) bool {
			t.g[l][g].fenced, t.g[l][g].ab = true, channel{}
			return true
		})
	}
}

// secondHalf asks again whether the bytes are wanted.
func (w *world) secondHalf(s *state, l, g uint8) {
	x := &s.g[l][g]
	u := x.half
	x.half = 0
	discard := s.tomb != 0 && !w.is("tombstone-at-header-only") || s.revoked && !w.is("revoke-at-header-only") || s.refused
	if !discard {
		s.land(u-1, 2)
	}
	if !w.is("count-before-payload") {
		x.count++
	}
	w.apply(s, u, discard)
}

// land writes half of a chunk to memory.
func (s *state) land(c, half uint8) {
	if s.done != 0 {
		s.bad = lateWrite
	} else if s.revoked {
		s.bad = writeAfterRevoke
	}
	s.memory[c] = max(s.memory[c], half)
}

// apply is what follows when a counted frame has been read to its end.
func (w *world) apply(s *state, u uint8, discard bool) {
	if u > chunk1 {
		if u-message0 != s.awaited {
			s.bad = disorder
		}
		s.awaited++
		return
	}
	switch {
	case !discard:
		s.applied[u-1] = 1
	case s.tomb == 0:
		s.refused = true
	}
	whole := s.applied == [2]uint8{1, 1} && !s.refused
	if w.is("notify-with-last-chunk") {
		whole = u == chunk1 && !discard
	}
	if !whole || s.tomb != 0 || s.notified != 0 {
		return
	}
	s.notified = 1
	if s.memory != [2]uint8{2, 2} {
		s.bad = earlyNotify
	}
	if s.done > success {
		s.bad = wrongNotify
	}
}

// refusals are what every count carries.
func (w *world) refusals(s *state) uint8 {
	if s.refused && !w.is("refusal-apart") {
		return 1
	}
	return 0
}

// join is B's answer to a hello, which retires the generation before.
func (w *world) join(s *state, l, g uint8) bool {
	x, before := &s.g[l][g], &s.g[l][g-1]
	x.ab.pop()
	x.joined = true
	if !w.is("hello-does-not-fence") {
		before.fenced, before.half = true, 0
	}
	return x.ba.put(frame{kind: helloOK, lane: l, gen: g - 1, count: before.count, ref: w.refusals(s)})
}

// read is B reading one frame; of a chunk the header and half of its bytes.
func (w *world) read(s *state, l, g uint8) bool {
	x := &s.g[l][g]
	switch f := x.ab.pop(); f.kind {
	case chunk0, chunk1:
		early := w.is("count-before-payload")
		if early {
			x.count++
		}
		if s.tomb == 0 && !s.revoked && !s.refused {
			s.land(f.kind-1, 1)
			x.half = f.kind
			return true
		}
		if !early {
			x.count++
		}
		w.apply(s, f.kind, true)
	case message0, message1:
		x.count++
		w.apply(s, f.kind, false)
	case retire:
		p := &s.g[f.lane][f.gen]
		if !w.is("answer-without-fence") && (p.joined || !w.is("unknown-generation-not-remembered")) {
			p.fenced, p.half = true, 0
		}
		return x.ba.put(frame{kind: retired, lane: f.lane, gen: f.gen, count: p.count, ref: w.refusals(s)})
	case cancel:
		if s.answered == 0 {
			s.answered = canceled
			if s.applied == [2]uint8{1, 1} {
				s.answered = success
			} else if !w.is("no-tombstone") {
				s.tomb = 1
			}
		}
		return x.ba.put(frame{kind: verdict, ref: s.answered})
	}
	return true
}
