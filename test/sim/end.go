package main

import (
	"fmt"
	"time"

	"railyard/endpoint/session"
	"railyard/wire"
)

// End is one end of a session: what the endpoint will be to it, reduced to carrying out effects.
type End struct {
	w     *World
	node  *Node
	pair  *Pair
	side  int
	peer  *End
	s     *session.Session
	rails []*railEnd
	app   *App
	cards *cards // that write for this peer
	denials

	fx      []session.Effect // in the order in which they came, not yet carried out
	running bool
	late    bool // they wait for their turn
	tickAt  time.Duration
	waiters []quietWaiter
	ended   bool // we have closed the session
	left    bool // the peer has said goodbye
}

// quietWaiter is a join that waits until everything older on its rail is quiet.
type quietWaiter struct {
	lane *session.Lane
	gen  wire.Generation
	then func()
}

func newEnd(n *Node, p *Pair, side int, opener bool) *End {
	e := &End{w: n.w, node: n, pair: p, side: side, cards: newCards(n.w), denials: make(denials)}
	cfg := n.w.opt.sessionFor(side)
	cfg.Opener = opener
	s, err := session.New(cfg, n.regions)
	if err != nil {
		n.w.violate("the session refused its configuration: %v", err)
	}
	e.s = s
	for k, path := range p.paths {
		e.rails = append(e.rails, &railEnd{e: e, id: wire.RailID(k), path: path, dials: opener || n.w.opt.BothDial,
			opener: opener})
	}
	n.ends = append(n.ends, e)
	return e
}

func (e *End) String() string { return fmt.Sprintf("%d>%d", e.node.id, e.peer.node.id) }

func (e *End) now() time.Duration { return e.node.clock() }

func (e *End) note(format string, args ...any) {
	e.w.note("%s %s", e, fmt.Sprintf(format, args...))
}

// pump carries out what the session asks for; to be called after every call of the session's.
func (e *End) pump() {
	if e.s.HasEffects() {
		e.fx = append(e.fx, e.s.Effects(nil)...)
	}
	if err := e.s.Closed(); err != nil && !e.ended {
		e.w.violate("%s closed its session: %v", e, err)
	}
	e.arm()
	if e.running || e.late || len(e.fx) == 0 {
		return
	}
	if e.w.chance(e.w.opt.LateFx) {
		e.late = true
		e.node.soon("effects", func() {
			e.late = false
			e.carryOut()
		})
		return
	}
	e.carryOut()
}

func (e *End) carryOut() {
	e.running = true
	for len(e.fx) > 0 {
		fx := e.fx[0]
		e.fx = e.fx[1:]
		e.effect(fx)
	}
	e.running = false
}

func (e *End) effect(fx session.Effect) {
	switch fx.Kind {
	case session.Completed:
		e.app.completed(fx.Op, fx.Err)
	case session.Offered:
		c := carrierOf(fx.Gen)
		c.mail("offer", func() {
			e.s.Accept(e.now(), fx.Gen, fx.Op)
			e.pump()
		})
	case session.Withdrawn:
		c := carrierOf(fx.Gen)
		c.mail("withdraw", func() {
			e.s.Withdraw(e.now(), fx.Gen, fx.Op)
			e.pump()
		})
	case session.Wake:
		carrierOf(fx.Gen).wake(fx.Inline)
	case session.Killed:
		carrierOf(fx.Gen).kill(fx.Err)
	case session.Quiet:
		e.quiet(fx.Gen)
	case session.Settled:
		e.note("rail %d generation %d is settled", fx.Gen.Lane().ID, fx.Gen.ID)
		e.pair.lives.settled(e, fx.Gen)
		e.settledCards(fx.Gen)
	case session.LaneUp:
		e.note("rail %d generation %d is up", fx.Gen.Lane().ID, fx.Gen.ID)
		e.pair.lives.up(e, fx.Gen)
	case session.Room:
		e.app.room()
	case session.MapWanted:
		e.node.soon("register", func() { e.register(fx.Gen, fx.Region) })
	case session.Unmap:
		e.node.soon("deregister", fx.Mapping.Release)
	case session.Undelivered:
		e.app.undelivered(fx.Message, fx.Err)
	case session.PeerLeft:
		if e.w.opt.Ending != Goodbye || e.left {
			e.w.violate("%s heard a goodbye that nobody said, or twice", e)
		}
		e.note("the peer says goodbye")
		e.left = true
		e.node.soon("close", e.close)
	default:
		e.w.violate("%s got an unknown effect %d", e, fx.Kind)
	}
}

// arm has Tick called at the session's deadline.
func (e *End) arm() {
	d := e.s.Deadline()
	if d == 0 || (e.tickAt != 0 && e.tickAt <= d) {
		return
	}
	e.tickAt = d
	e.node.after(max(d-e.now(), 0)+e.w.between(0, 20*time.Microsecond), "tick", func() {
		if e.tickAt != d { // an earlier one has come in between
			return
		}
		e.tickAt = 0
		e.s.Tick(e.now())
		e.pump()
	})
}

// quiet lets the joins go on that waited for it.
func (e *End) quiet(g *session.Generation) {
	e.note("rail %d generation %d is quiet", g.Lane().ID, g.ID)
	e.w.Count.Retires++
	waiters := e.waiters
	e.waiters = nil
	for _, q := range waiters {
		e.whenQuiet(q)
	}
}

// whenQuiet runs the waiter's function once every older generation of its rail is fenced and quiet.
func (e *End) whenQuiet(q quietWaiter) {
	quiet := q.lane.FenceOlder(e.now(), q.gen, session.ErrReplaced)
	if !quiet {
		e.waiters = append(e.waiters, q)
		e.pump()
		return
	}
	e.pump()
	q.then()
}
