package main

import (
	"strconv"
	"strings"
	"time"

	"railyard/endpoint/session"
	"railyard/wire"
)

// The listening side of a handshake: what endpoint/accept.go does with sockets and goroutines, step for step, with the same
// decisions (session.Standing).

// acceptance is one hello being answered.
type acceptance struct {
	n    *Node
	s    *sock
	path *Path
	ch   challenge
	at   time.Duration // when the challenge was sent
	h    hello
	key  []byte
	e    *End
}

// accept takes a connection: the acceptor speaks first.
func (n *Node) accept(s *sock) {
	a := &acceptance{n: n, s: s, path: s.conn.path, at: n.clock()}
	a.ch = challenge{&wire.Challenge{Version: wire.Version, Nonce: make([]byte, wire.NonceSize), Node: nameOf(n.id),
		Incarnation: n.incarnation[:]}}
	n.w.random(a.ch.Nonce)
	s.send(a.ch)
	n.await(s, 2*joinLimit, func(m any) {
		h, ok := m.(hello)
		if !ok || !session.Echoes(a.ch.Challenge, h.Hello) {
			a.drop()
			return
		}
		a.h = h
		a.judge()
	})
}

func (a *acceptance) drop() { a.s.close(a.n.w.chance(a.n.w.opt.Zombies)) }

// from is the number of the node that says hello.
func (a *acceptance) from() int {
	id, err := strconv.Atoi(strings.TrimPrefix(a.h.GetNode(), "node-"))
	if err != nil {
		a.n.w.violate("a hello from %q", a.h.GetNode())
	}
	return id
}

// judge finds the session that the hello belongs to, or opens it.
func (a *acceptance) judge() {
	n, h := a.n, a.h
	from := a.from()
	us := n.peers[from]
	ours := n.bySession(h.GetSession())
	if ours != nil {
		a.key = ours.epoch.key
	} else {
		a.key = session.Key(n.w.opt.secret(), h.GetToken(), h.GetSession())
	}
	first := h.GetFirst()
	if (ours != nil || first || n.w.opt.Secret) && !session.SameProof(h.GetMac(), session.HelloProof(a.key, a.ch.Challenge, h.Hello)) {
		a.drop()
		return
	}
	st := session.Standing{Ours: ours != nil, First: first, There: us.end != nil, Lower: n.id < from,
		Ended: us.graves[string(h.GetSession())]}
	if us.end != nil {
		st.Agreed, st.Opener, st.Silent = us.end.agreed, us.end.opener, us.end.s.Silent()
		st.Fresh = a.at > us.end.agreedAt
	}
	verdict := st.Judge()
	a.verdictCheck(verdict)
	switch verdict {
	case session.Joins:
		a.e = ours
		a.join()
	case session.Opens:
		a.open(us)
	case session.Replaces:
		a.replace(us.end)
	case session.Yields:
		us.end.note("yields to the peer's session")
		us.end.adopt(&h)
		a.e = us.end
		a.join()
	case session.Busy:
		a.refuse(wire.RefusalCode_BUSY)
	case session.Stale:
		a.refuse(wire.RefusalCode_BUSY)
	case session.Alive:
		a.refuse(wire.RefusalCode_OLD_SESSION_ALIVE)
	case session.Unknown:
		a.refuse(wire.RefusalCode_UNKNOWN_SESSION)
	}
}

// open makes this end of the session, once nothing of the one before is in progress.
func (a *acceptance) open(us *peer) {
	if us.former != nil && !us.former.s.Still() {
		us.former.whenStill(a.judge)
		return
	}
	a.e = newEnd(a.n, us, false)
	a.e.adopt(&a.h)
	a.e.begin()
	a.join()
}

// replace ends the epoch that is there.
func (a *acceptance) replace(old *End) {
	cause := errRestarted
	if string(old.incarnation[:]) == string(a.h.GetIncarnation()) {
		cause = errReplaced
	}
	old.close(cause)
	old.whenStill(a.judge)
}

func (a *acceptance) refuse(code wire.RefusalCode) {
	w := a.n.w
	w.note("node %d refuses a hello on path %s: %s", a.n.id, a.path.name, code)
	a.answer(&wire.Answer{Code: code})
}

func (a *acceptance) answer(m *wire.Answer) {
	m.Node, m.Incarnation, m.Nonce = nameOf(a.n.id), a.n.incarnation[:], a.h.GetNonce()
	m.Mac = session.AnswerProof(a.key, a.ch.Challenge, a.h.Hello, m)
	a.s.send(answer{m, a.e})
}

// join takes the rail into the session.
func (a *acceptance) join() {
	e, gen := a.e, wire.Generation(a.h.GetGeneration())
	id := wire.RailID(a.h.GetRail())
	lane := e.s.Lane(id)
	if !lane.Reserve(gen) {
		a.refuse(wire.RefusalCode_STALE_GENERATION)
		return
	}
	e.whenQuiet(quietWaiter{lane: lane, gen: gen, then: func() {
		if e.ended {
			a.drop()
			return
		}
		back := e.exchange(id, a.h.GetFenced())
		cfg := e.s.Config()
		a.answer(&wire.Answer{Code: wire.RefusalCode_OK, Session: a.h.GetSession(), Epoch: a.h.GetEpoch(),
			Fenced: wire.FencedOf(back), Window: cfg.Window, MaxMessage: cfg.MaxMessage})
		a.n.await(a.s, joinLimit, func(m any) {
			c, ok := m.(confirm)
			if !ok || e.ended ||
				!session.SameProof(c.GetMac(), session.ConfirmProof(a.key, a.ch.Challenge, a.h.Hello, c.Confirm)) {
				a.drop()
				return
			}
			e.exchange(id, c.GetFenced())
			if !e.rails[id].attach(a.s, gen) {
				a.drop()
			}
		})
	}})
}
