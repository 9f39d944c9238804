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

// The frames of the handshake, in their order: the product's own, with its proofs. What is beside them no node looks at but
// to tell the checkers who its peer is.
type (
	challenge struct{ *wire.Challenge }
	hello     struct {
		*wire.Hello
		from   *End
		epoch  *Epoch
		played bool // back, by a stranger
	}
	answer struct {
		*wire.Answer
		from *End
	}
	confirm struct{ *wire.Confirm }
)

// Limits of a dial and of a handshake.
const (
	dialLimit = 300 * time.Millisecond
	joinLimit = 600 * time.Millisecond
)

// look sees whether the rail has to be dialed, and when.
func (r *railEnd) look() {
	if r.dialing || r.waits || !r.wanting() {
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

// may tells whether this end may dial: the acceptor not before it knows that the opener has heard it.
func (r *railEnd) may() bool { return r.dials && !r.e.ended && (r.e.opener || r.e.joined) }

// wanting tells whether the rail has nothing to work with. Before the peer is known the opener tries a single rail.
func (r *railEnd) wanting() bool {
	e := r.e
	return r.may() && (e.agreed || int(r.id) == e.first) && (r.carrier == nil || r.carrier.suspect)
}

func (r *railEnd) dial() {
	r.dialing = true
	n := r.e.node
	r.path.ask(r.e.side, dialLimit, func(ok bool) {
		n.soon("dialed", func() {
			other := r.path.pair.nodes[1-r.e.side]
			if !ok || other.dead || r.e.ended {
				r.failed(nil)
				return
			}
			c := newConn(r.path)
			s := c.socks[r.e.side]
			other.soon("accept", func() { other.accept(c.socks[1-r.e.side]) })
			n.await(s, joinLimit, func(m any) {
				ch, ok := m.(challenge)
				if !ok || r.e.ended {
					r.failed(s)
					return
				}
				r.challenged(s, ch)
			})
		})
	})
}

// failed ends a dial without a generation.
func (r *railEnd) failed(s *sock) {
	e := r.e
	if s != nil {
		s.close(e.w.chance(e.w.opt.Zombies))
	}
	r.dialing = false
	r.fails++
	if !e.agreed && e.opener && int(r.id) == e.first { // perhaps the peer answers at another address
		e.first = e.w.number(0, len(e.rails)-1)
		e.rails[e.first].fails = max(e.rails[e.first].fails, 1)
		e.rails[e.first].look()
	}
	r.look()
}

// await gives the next message of the handshake; nil when it does not come.
func (n *Node) await(s *sock, limit time.Duration, then func(m any)) {
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
		s.readable = func() { n.soon("handshake", wait) }
	}
	wait()
	n.after(limit, "join-limit", func() {
		if !over {
			s.readable = nil
			end(nil)
		}
	})
}

// challenged: somebody lives at the other end of the new connection. A silent one beside it gets one more beat of time (rule 6).
func (r *railEnd) challenged(s *sock, ch challenge) {
	e := r.e
	if !r.may() { // it greets a dial of a session that was given up
		r.failed(s)
		return
	}
	said := wire.NodeID(ch.GetIncarnation())
	switch e.s.Greet(e.agreed, e.incarnation, said) {
	case session.Restarted:
		e.close(errRestarted)
		r.failed(s)
		return
	case session.Stranger:
		e.note("rail %d: another incarnation answers, and the old one is still heard", r.id)
		r.failed(s)
		return
	case session.Meant:
		if !e.agreed {
			e.incarnation = said
		}
	}
	old := r.carrier
	if old == nil {
		r.hello(s, ch)
		return
	}
	heard := old.gen.Vitals().Heard
	e.node.after(50*time.Millisecond, "candidate", func() {
		if !old.dead && (!old.suspect || old.gen.Vitals().Heard != heard) {
			e.note("rail %d: its old connection has been heard, the candidate goes", r.id)
			r.failed(s)
			return
		}
		r.hello(s, ch)
	})
}

// hello fences what is older and sends the third step's question.
func (r *railEnd) hello(s *sock, ch challenge) {
	e := r.e
	lane := e.s.Lane(r.id)
	gen := lane.NextGeneration()
	if !r.may() || !lane.Reserve(gen) {
		r.failed(s)
		return
	}
	say := func() {
		if !r.may() {
			r.failed(s)
			return
		}
		e.note("rail %d: hello for generation %d", r.id, gen)
		h := r.sayHello(s, ch, gen)
		e.node.await(s, joinLimit, func(m any) {
			a, ok := m.(answer)
			if !ok || !r.hears(ch, h, a) {
				r.failed(s)
				return
			}
			r.answered(s, gen, ch, h, a)
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

func (r *railEnd) sayHello(s *sock, ch challenge, gen wire.Generation) hello {
	e := r.e
	cfg := e.s.Config()
	h := hello{&wire.Hello{
		Version: wire.Version, Node: nameOf(e.node.id), Incarnation: e.node.incarnation[:], Challenge: ch.GetNonce(),
		Nonce: make([]byte, wire.NonceSize), Target: nameOf(e.other()), TargetIncarnation: ch.GetIncarnation(),
		Session: append([]byte(nil), e.epoch.id[:]...), Epoch: 1, First: !e.agreed, Rail: uint32(r.id), Generation: uint64(gen),
		Fenced: wire.FencedOf(e.s.Fenced()), Window: cfg.Window, MaxMessage: cfg.MaxMessage,
	}, e, e.epoch, false}
	e.w.random(h.Nonce)
	if h.First && !e.w.opt.Secret {
		h.Token = e.epoch.token
	}
	h.Mac = session.HelloProof(e.epoch.key, ch.Challenge, h.Hello)
	s.send(h)
	return h
}

// hears takes an answer. False: it is none that lets the rail join.
func (r *railEnd) hears(ch challenge, h hello, a answer) bool {
	e := r.e
	proved := session.SameProof(a.GetMac(), session.AnswerProof(e.epoch.key, ch.Challenge, h.Hello, a.Answer))
	switch {
	case !r.may():
		return false
	case a.GetCode() == wire.RefusalCode_UNKNOWN_SESSION && proved:
		e.close(errForgotten)
		return false
	case a.GetCode() != wire.RefusalCode_OK:
		e.note("rail %d: refused: %s", r.id, a.GetCode())
		return false
	case !proved:
		e.w.violate("%s: the answer on rail %d proves nothing", e, r.id)
	}
	if !e.agreed {
		e.agree(a.from, a.GetWindow(), a.GetMaxMessage())
	}
	return true
}

// answered: the peer has agreed; what it has fenced is known now, and it is told what came of that.
func (r *railEnd) answered(s *sock, gen wire.Generation, ch challenge, h hello, a answer) {
	e := r.e
	c := confirm{&wire.Confirm{Fenced: wire.FencedOf(e.exchange(r.id, a.GetFenced()))}}
	c.Mac = session.ConfirmProof(e.epoch.key, ch.Challenge, h.Hello, c.Confirm)
	s.send(c)
	if !e.rails[r.id].attach(s, gen) {
		r.failed(s)
		return
	}
	r.dialing = false
	r.fails = 0
	r.look() // it may have been lost within the call
}

// exchange takes over a handshake's list of fenced generations, and gives the one to answer with.
func (e *End) exchange(id wire.RailID, said []*wire.Fenced) []wire.Retired {
	list, err := wire.RetiredOf(said)
	if err == nil {
		list, err = e.s.ExchangeFenced(e.now(), list)
		e.pump()
	}
	if err != nil {
		e.w.violate("%s: what the handshake on rail %d says: %v", e, id, err)
	}
	return list
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
		s.qp.owner, s.qp.end = c, e
	}
	c.health, r.heard = newHealthCheck(c), e.now() // the handshake was an answer
	e.w.Count.Joins++
	e.joined = true
	e.note("rail %d: generation %d is attached", r.id, gen)
	e.epoch.lives.attached(e, g)
	r.carrier = c
	e.pump()
	e.node.soon("reader", c.want)
	c.beat()
	return true
}
