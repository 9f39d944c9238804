package main

import (
	"time"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/wire"
)

// railEnd is one end of one rail: it dials, answers, and comes back.
type railEnd struct {
	e       *End
	id      wire.RailID
	path    *Path
	dials   bool
	opener  bool
	carrier *carrier // the newest that is not dead
	dialing bool
	waits   bool // a look is due
	fails   int
	heard   time.Duration // when bytes came last, on whichever connection
}

// The frames of the handshake, in their order.
type (
	challenge struct{}
	hello     struct {
		gen    wire.Generation
		fenced []wire.Retired
	}
	answer struct {
		refused bool
		fenced  []wire.Retired
	}
	confirm struct{ fenced []wire.Retired }
)

// Limits of a dial and of a handshake.
const (
	dialLimit = 300 * time.Millisecond
	joinLimit = 600 * time.Millisecond
)

// look sees whether the rail has to be dialed, and when.
func (r *railEnd) look() {
	if !r.dials || r.dialing || r.waits || !r.wanting() {
		return
	}
	w := r.e.w
	var wait time.Duration
	if r.fails > 0 {
		wait = w.between(0, min(50*time.Millisecond<<min(r.fails-1, 5), time.Second))
	}
	if !r.opener { // of two that dial, one waits a little
		wait += w.between(0, 100*time.Millisecond)
	}
	r.waits = true
	r.e.node.after(wait, "redial", func() {
		r.waits = false
		if r.wanting() && !r.dialing {
			r.dial()
		}
	})
}

// wanting tells whether the rail has nothing to work with.
func (r *railEnd) wanting() bool {
	return !r.e.ended && (r.carrier == nil || r.carrier.suspect)
}

func (r *railEnd) dial() {
	r.dialing = true
	r.path.ask(r.e.side, dialLimit, func(ok bool) {
		r.e.node.soon("dialed", func() {
			if !ok {
				r.failed(nil)
				return
			}
			c := newConn(r.path)
			other := r.e.peer.rails[r.id]
			other.e.node.soon("accept", func() { other.accept(c.socks[1-r.e.side]) })
			s := c.socks[r.e.side]
			r.await(s, joinLimit, func(m any) {
				if _, ok := m.(challenge); !ok {
					r.failed(s)
					return
				}
				r.challenged(s)
			})
		})
	})
}

// failed ends a dial without a generation.
func (r *railEnd) failed(s *sock) {
	if s != nil {
		s.close(r.e.w.chance(r.e.w.opt.Zombies))
	}
	r.dialing = false
	r.fails++
	r.look()
}

// await gives the next message of the handshake; nil when it does not come.
func (r *railEnd) await(s *sock, limit time.Duration, then func(m any)) {
	over := false
	end := func(m any) {
		if !over {
			over = true
			then(m)
		}
	}
	var wait func()
	wait = func() {
		if over {
			return
		}
		if m := s.message(); m != nil || s.err != nil {
			end(m)
			return
		}
		s.readable = func() { r.e.node.soon("handshake", wait) }
	}
	wait()
	r.e.node.after(limit, "join-limit", func() {
		if !over {
			s.readable = nil
			end(nil)
		}
	})
}

// challenged: the peer lives on the new connection. A silent one beside it gets one more beat of time (rule 6).
func (r *railEnd) challenged(s *sock) {
	old := r.carrier
	if old == nil {
		r.hello(s)
		return
	}
	heard := old.gen.Vitals().Heard
	r.e.node.after(50*time.Millisecond, "candidate", func() {
		if !old.dead && (!old.suspect || old.gen.Vitals().Heard != heard) {
			r.e.note("rail %d: its old connection has been heard, the candidate goes", r.id)
			r.failed(s)
			return
		}
		r.hello(s)
	})
}

// hello fences what is older and sends the third step's question.
func (r *railEnd) hello(s *sock) {
	e := r.e
	lane := e.s.Lane(r.id)
	gen := lane.NextGeneration()
	if !lane.Reserve(gen) {
		r.failed(s)
		return
	}
	say := func() {
		e.note("rail %d: hello for generation %d", r.id, gen)
		s.send(hello{gen: gen, fenced: copyFenced(e.s.Fenced())})
		r.await(s, joinLimit, func(m any) {
			a, ok := m.(answer)
			if !ok || a.refused {
				r.failed(s)
				return
			}
			r.answered(s, gen, a)
		})
	}
	if e.w.opt.Hasty {
		lane.FenceOlder(e.now(), gen, session.ErrReplaced)
		e.pump()
		say()
		return
	}
	e.whenQuiet(quietWaiter{lane: lane, gen: gen, then: say})
}

// answered: the peer has agreed; what it has fenced is known now, and it is told what came of that.
func (r *railEnd) answered(s *sock, gen wire.Generation, a answer) {
	e := r.e
	back, err := e.s.ExchangeFenced(e.now(), a.fenced)
	e.pump()
	if err != nil {
		e.w.violate("%s: the answer on rail %d: %v", e, r.id, err)
	}
	s.send(confirm{fenced: copyFenced(back)})
	if !r.attach(s, gen) {
		r.failed(s)
		return
	}
	r.dialing = false
	r.fails = 0
	r.look() // it may have been lost within the call
}

// accept is the other side of a join: it speaks first.
func (r *railEnd) accept(s *sock) {
	e := r.e
	drop := func() { s.close(e.w.chance(e.w.opt.Zombies)) }
	if e.ended {
		drop()
		return
	}
	s.send(challenge{})
	r.await(s, 2*joinLimit, func(m any) {
		h, ok := m.(hello)
		if !ok {
			drop()
			return
		}
		lane := e.s.Lane(r.id)
		if !lane.Reserve(h.gen) {
			s.send(answer{refused: true})
			return
		}
		e.whenQuiet(quietWaiter{lane: lane, gen: h.gen, then: func() {
			back, err := e.s.ExchangeFenced(e.now(), h.fenced)
			e.pump()
			if err != nil {
				e.w.violate("%s: the hello on rail %d: %v", e, r.id, err)
			}
			s.send(answer{fenced: copyFenced(back)})
			r.await(s, joinLimit, func(m any) {
				c, ok := m.(confirm)
				if !ok {
					drop()
					return
				}
				_, err := e.s.ExchangeFenced(e.now(), c.fenced)
				e.pump()
				if err != nil {
					e.w.violate("%s: the confirm on rail %d: %v", e, r.id, err)
				}
				if !r.attach(s, h.gen) {
					drop()
				}
			})
		}})
	})
}

// attach opens the generation at this end. False: it is over already.
func (r *railEnd) attach(s *sock, gen wire.Generation) bool {
	e := r.e
	c := &carrier{r: r, e: e, sock: s, pulse: rail.NewHealth(rail.HealthConfig{}, e.now())}
	var g *session.Generation
	if s.qp != nil {
		g = e.s.Lane(r.id).AttachOneSided(e.now(), gen, c)
	} else {
		g = e.s.Lane(r.id).Attach(e.now(), gen, c)
	}
	if g == nil {
		e.pump()
		return false
	}
	c.gen = g
	if s.qp != nil {
		s.qp.owner = c
	}
	c.health, r.heard = newHealthCheck(c), e.now() // the handshake was an answer
	e.w.Count.Joins++
	e.note("rail %d: generation %d is attached", r.id, gen)
	e.pair.lives.attached(e, g)
	r.carrier = c
	e.pump()
	e.node.soon("reader", c.want)
	c.beat()
	return true
}

// copyFenced makes a list its own, as an encoding would.
func copyFenced(list []wire.Retired) []wire.Retired {
	out := append([]wire.Retired(nil), list...)
	for i := range out {
		out[i].Refusals = append(wire.Refusals(nil), out[i].Refusals...)
	}
	return out
}
