package main

import (
	"os"

	"railyard/test/model/explore"
)

// Sizes of the model.
const (
	units    = 5
	capacity = units + 2
	losses   = 2 // of rails, together
)

// What travels. The first three keep to one rail, in order.
const (
	before uint8 = iota
	place
	behind
	piece0
	piece1
)

type rail struct {
	f [capacity]uint8
	n uint8
}

func (r *rail) holds(most uint8) bool {
	for _, u := range r.f[:r.n] {
		if u <= most {
			return true
		}
	}
	return false
}

type state struct {
	todo     [units]bool
	rails    [2]rail
	affinity uint8
	lost     uint8

	got     uint8    // pieces counted
	have    [2]bool  // pieces that are there
	placed  bool     // the placeholder has come
	held    bool     // the message behind it waits
	heard   uint8    // the next that the actor is due: before, place (the large one), behind
	largely bool     // the large one has been delivered
	bad     [2]uint8 // disorder, incomplete
}

var design = explore.Design{
	Settings: []string{"two rails that are lost twice"},
	Mutations: []explore.Mutation{{Name: "nothing-is-held"}, {Name: "delivered-at-its-place"}, {Name: "delivered-without-its-place"},
		{Name: "place-on-any-rail"}, {Name: "pieces-lost-with-their-rail"}, {Name: "reroute-before-retire"}},
	Explore: func(_ int, mutation string, limit int) explore.Result {
		w := world{mutation}
		return explore.Run(explore.Space[state]{Start: state{todo: [units]bool{true, true, true, true, true}}, Limit: limit,
			Next: w.next, Done: func(s *state) bool { return s.heard == behind+1 },
			Broken: func(s *state) string {
				switch {
				case s.bad[0] != 0:
					return "lost, doubled or out of order"
				case s.bad[1] != 0:
					return "delivered before all of it is there"
				}
				return ""
			}})
	},
}

type world struct{ mutation string }

func (w world) is(mutation string) bool { return w.mutation == mutation }

func (w world) next(s *state, out func(explore.Action, state)) {
	for l := range uint8(2) {
		w.send(s, l, out)
		if s.rails[l].n > 0 {
			t := *s
			u := t.rails[l].f[0]
			copy(t.rails[l].f[:], t.rails[l].f[1:])
			t.rails[l].f[capacity-1] = 0
			t.rails[l].n--
			w.apply(&t, u)
			out(explore.Do("unit %d arrives on rail %d", u, l), t)
		}
		if s.lost < losses && s.rails[l].n > 0 {
			t := *s
			t.lost++
			for _, u := range s.rails[l].f[:s.rails[l].n] {
				t.todo[u] = u < piece0 || !w.is("pieces-lost-with-their-rail")
			}
			if !w.is("reroute-before-retire") { // retired: nothing more of it is applied
				t.rails[l] = rail{}
			}
			out(explore.Do("rail %d is lost and joined again", l), t)
		}
	}
}

// send writes a piece on any rail, and the oldest of the others on the rail that they keep to.
func (w world) send(s *state, l uint8, out func(explore.Action, state)) {
	oldest := true
	for u := range uint8(units) {
		if !s.todo[u] || s.rails[l].n == capacity {
			continue
		}
		ordered := u < piece0
		may := !ordered || oldest && (s.affinity == l || !s.rails[s.affinity].holds(behind))
		if u == place && w.is("place-on-any-rail") {
			may = true
		}
		if ordered {
			oldest = false
		}
		if u == place && w.is("place-on-any-rail") {
			oldest = true
		}
		if !may {
			continue
		}
		t := *s
		t.todo[u] = false
		t.rails[l].f[t.rails[l].n] = u
		t.rails[l].n++
		if ordered && (u != place || !w.is("place-on-any-rail")) {
			t.affinity = l
		}
		out(explore.Do("unit %d is written on rail %d", u, l), t)
	}
}

// apply is the receiver: it counts pieces, as it would count bytes.
func (w world) apply(s *state, u uint8) {
	switch u {
	case piece0, piece1:
		s.got++
		s.have[u-piece0] = true
	case place:
		s.placed = true
	case before:
		s.hear(before)
	case behind:
		if s.placed && !s.largely && !w.is("nothing-is-held") {
			s.held = true
		} else {
			s.hear(behind)
		}
	}
	whole := s.got == 2 || w.is("delivered-at-its-place")
	if !s.largely && whole && (s.placed || w.is("delivered-without-its-place")) {
		s.largely = true
		if s.have != [2]bool{true, true} {
			s.bad[1] = 1
		}
		s.hear(place)
	}
	if s.largely && s.held {
		s.held = false
		s.hear(behind)
	}
}

// hear is the actor taking the next one.
func (s *state) hear(u uint8) {
	if s.heard != u {
		s.bad[0] = 1
	}
	s.heard = u + 1
}

func main() { os.Exit(design.Main(os.Args[1:], os.Stdout)) }
