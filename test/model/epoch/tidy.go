package main

import (
	"math/bits"
	"slices"
)

// This file makes states that differ in names alone the same: sessions and incarnations are random, so that only whether two are
// the same can matter, and so are the places of connections.

// fresh gives the name of a session that nothing in the state has.
func (s *state) fresh() uint8 {
	used := uint8(1)
	for p := range s.n {
		used |= 1 << s.n[p].e.id
	}
	for i := range s.c {
		used |= 1 << s.c[i].session
	}
	return uint8(bits.TrailingZeros8(^used))
}

// reborn gives an incarnation of a node that nothing in the state names.
func (s *state) reborn(p int) uint8 {
	for id := uint8(1); ; id++ {
		used := s.n[1-p].e.peer == id
		for i := range s.c {
			for x := range s.c[i].end[1-p].in {
				used = used || s.c[i].end[1-p].in[x].incarnation == id
			}
		}
		if !used {
			return id
		}
	}
}

// tidy drops what can matter no more.
func (w *world) tidy(s *state) {
	for i := range s.c {
		for p := range s.n {
			if w.pointless(s, p, i) {
				s.kill(p, i)
			}
		}
		c := &s.c[i]
		if c.end[0].stage == none && c.end[1].stage == none {
			*c = conn{}
		}
	}
	s.arrange()
	s.rename()
}

// pointless tells whether nothing can come of an end any more but that it is dropped.
func (w *world) pointless(s *state, p, i int) bool {
	c := &s.c[i]
	x := &c.end[p]
	switch x.stage {
	case none, carries:
		return false
	case greets, asks:
		dropped := !w.is("a-yielded-dial-goes-on") && !w.is("a-yielded-dial-judges")
		return !s.ours(p, i) && dropped || x.queued == 0 && c.end[1-p].stage == none
	case answers:
		return c.session != s.n[p].e.id && !w.is("a-confirmation-for-an-ended-epoch") || x.queued == 0 && c.end[1-p].stage == none
	default:
		return x.queued == 0 && c.end[1-p].stage == none
	}
}

// arrange sorts the connections.
func (s *state) arrange() {
	type placed struct {
		c  conn
		at uint8
	}
	var list [conns]placed
	for i := range s.c {
		list[i] = placed{s.c[i], uint8(i) + 1}
	}
	slices.SortFunc(list[:], func(a, b placed) int { return int(b.c.weight()) - int(a.c.weight()) })
	var to [conns + 1]uint8
	for i := range list {
		s.c[i] = list[i].c
		to[list[i].at] = uint8(i) + 1
	}
	for p := range s.n {
		s.n[p].e.on = to[s.n[p].e.on]
	}
}

// weight orders connections by what does not depend on names.
func (c *conn) weight() (w uint32) {
	for _, n := range []uint8{c.generation, c.dialer, c.end[0].stage, c.end[1].stage, c.end[0].queued, c.end[1].queued} {
		w = w<<3 | uint32(n)
	}
	return w
}

// rename numbers the sessions in the order of their first place. Those that have ended and stand nowhere are forgotten.
func (s *state) rename() {
	var names [8]uint8
	next := uint8(1)
	name := func(id *uint8) {
		if *id == 0 {
			return
		}
		if names[*id] == 0 {
			names[*id] = next
			next++
		}
		*id = names[*id]
	}
	for p := range s.n {
		name(&s.n[p].e.id)
	}
	for i := range s.c {
		name(&s.c[i].session)
	}
	for p := range s.n {
		over := uint8(0)
		for id, to := range names {
			if to != 0 && s.n[p].over&(1<<id) != 0 {
				over |= 1 << to
			}
		}
		s.n[p].over = over
	}
}
