package main

import (
	"fmt"
	"time"

	"railyard/endpoint/session"
	"railyard/wire"
)

// End is one end of a session: what the endpoint is to it, reduced to carrying out effects. It is one epoch (decision 0008).
type End struct {
	w     *World
	node  *Node
	pair  *Pair
	side  int
	epoch *Epoch
	peer  *End // who agreed; nil: nobody yet
	s     *session.Session
	rails []*railEnd
	app   *App
	cards *cards // that write for this peer
	denials

	waiting     time.Duration // since when an outage counts at the earliest
	opener      bool
	agreed      bool
	agreedAt    time.Duration
	joined      bool        // a rail has joined
	incarnation wire.NodeID // of the peer
	first       int         // the rail that an opener dials before it has met its peer
	outageDue   bool        // the time is set at which the outage is too long

	fx      []session.Effect // in the order in which they came, not yet carried out
	running bool
	late    bool // they wait for their turn
	tickAt  time.Duration
	waiters []quietWaiter
	ended   bool // we have closed the session
	cause   error
	over    bool // and nothing of it is in progress
	left    bool // the peer has said goodbye

	stillWaiters []func()
}

// quietWaiter is a join that waits until everything older on its rail is quiet.
type quietWaiter struct {
	lane *session.Lane
	gen  wire.Generation
	then func()
}

func newEnd(n *Node, us *peer, opener bool) *End {
	p, side := us.pair, us.side
	e := &End{w: n.w, node: n, pair: p, side: side, opener: opener, waiting: n.clock(),
		cards: newCards(n.w), denials: make(denials)}
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
	if opener {
		e.epoch = newEpoch(n.w, p)
		e.epoch.ends = append(e.epoch.ends, e)
	}
	us.end = e
	n.w.all = append(n.w.all, e)
	e.app = newApp(e, us.home)
	return e
}

// begin has the rails dialed.
func (e *End) begin() {
	for _, r := range e.rails {
		r.look()
	}
	e.watchOutage()
}

func (e *End) String() string { return fmt.Sprintf("%d>%d", e.node.id, e.other()) }

// other is the peer's number.
func (e *End) other() int { return e.pair.nodes[1-e.side].id }

// us is what the node keeps of the peer.
func (e *End) us() *peer { return e.node.peers[e.other()] }

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
	e.watchOutage()
	if e.running || e.late {
		return
	}
	if len(e.fx) == 0 {
		e.restsNow()
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
	e.restsNow()
}

// restsNow notices that nothing of an ended session is in progress any more.
func (e *End) restsNow() {
	if e.ended && !e.over && e.s.Still() && len(e.fx) == 0 {
		e.rest()
	}
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
		e.epoch.lives.settled(e, fx.Gen)
		e.settledCards(fx.Gen)
	case session.LaneUp:
		e.note("rail %d generation %d is up", fx.Gen.Lane().ID, fx.Gen.ID)
		e.epoch.lives.up(e, fx.Gen)
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
		e.node.soon("close", func() { e.close(errOver) })
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
