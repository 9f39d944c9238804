package main

import (
	"errors"
	"strings"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
	"railyard/wire"
)

// App is the application at one end: it makes work for the peer, and takes what the peer sends.
type App struct {
	e    *End
	w    *World
	home *home // ours, for the peer

	// Messages.
	outbox     *messageCheck // what we send
	backlog    []outgoing    // found no room in the window
	ids        uint64
	seqs       map[string]uint64
	unconsumed uint64

	// Operations.
	open    []*work
	openOps int
	works   map[*session.Op]*work
	byID    map[uint64]*work
	orders  uint64
	graves  []graveBuffer
	// dangling are puts that ended with their session: they may land until the peer's is over as well.
	dangling []*work
	started  bool
	goesOn   bool    // works on though the world is calm
	owed     []*work // completed, and the notification may still be on its last step
}

// outgoing is a message that is still to be taken by the session.
type outgoing struct {
	target, sender, kind string
	size, headers        int
	system               bool
}

// sealedSize is the length of a region that gives one right only.
const sealedSize = 64 << 10

func newApp(e *End, h *home) *App {
	a := &App{e: e, w: e.w, home: h, outbox: newMessageCheck(e), seqs: make(map[string]uint64),
		works: make(map[*session.Op]*work), byID: make(map[uint64]*work)}
	a.ids = uint64(len(e.w.all)) << 32 // each end counts from there
	return a
}

// budget is what is left of the bytes that this side of the pair may send.
func (a *App) budget() *int { return &a.e.pair.budget[a.e.side] }

func (a *App) nextID() uint64 {
	a.ids++
	return a.ids
}

// start begins the load, once the peer is known.
func (a *App) start() {
	if a.started {
		return
	}
	a.started = true
	a.next()
	if d := a.w.opt.Load.RevokeEvery; d > 0 {
		a.later(d, a.revokeOne)
	}
}

// later runs fn after about d, again and again until the world is calm.
func (a *App) later(d time.Duration, fn func()) {
	a.e.node.after(a.w.between(d/10, 2*d), "load", func() {
		if a.w.calm && !a.goesOn || a.e.ended && a.w.chance(0.8) {
			return
		}
		fn()
		a.later(d, fn)
	})
}

// next has a burst of work done, and one more after a while.
func (a *App) next() {
	l := &a.w.opt.Load
	if l.Messages+l.Large+l.Puts+l.Gets+l.Flushes == 0 {
		return
	}
	a.later(l.Every, func() {
		for range a.w.number(1, l.Burst) {
			if *a.budget() > 0 {
				a.piece()
			}
		}
	})
}

func (a *App) piece() {
	l := &a.w.opt.Load
	at := a.w.number(0, l.Messages+l.Large+l.Puts+l.Gets+l.Flushes-1)
	switch {
	case at < l.Messages:
		a.message(a.messageSize())
	case at < l.Messages+l.Large:
		a.message(a.w.number(wire.MaxInline+1, int(a.e.s.Config().PeerMaxMessage)))
	case at < l.Messages+l.Large+l.Puts:
		a.put()
	case at < l.Messages+l.Large+l.Puts+l.Gets:
		a.get()
	default:
		a.flush()
	}
}

func (a *App) messageSize() int {
	switch a.w.number(0, 9) {
	case 0:
		return 0
	case 1:
		return a.w.number(1, wire.MaxInline)
	case 2: // where the ways of sending change
		return min(wire.MaxInline+a.w.number(-1, 1), int(a.e.s.Config().PeerMaxMessage))
	default:
		return a.w.number(1, 300)
	}
}

// message sends one of n bytes, or has it wait behind those that found no room.
func (a *App) message(n int) {
	w := a.w
	o := outgoing{target: a.e.peer.String() + "/" + itoa(uint64(w.number(1, w.opt.Load.Targets))), size: n}
	if w.chance(0.5) {
		o.sender = a.e.String() + "/" + itoa(uint64(w.number(1, 5)))
	}
	o.kind = "type" + itoa(uint64(w.number(1, 4)))
	if n < identitySize || w.chance(0.1) {
		o.headers = w.number(identitySize, 200)
		if w.chance(0.05) {
			o.headers = wire.MaxHeaders
		}
	}
	if w.chance(0.03) {
		o.target += strings.Repeat("/long", (wire.MaxName-len(o.target))/len("/long"))
	}
	o.system = n <= 300 && w.chance(w.opt.Load.System)
	*a.budget() -= n + 100
	if len(a.backlog) > 0 && !o.system || !a.send(&o) {
		a.backlog = append(a.backlog, o)
	}
}

// send gives a message to the session. False: no room.
func (a *App) send(o *outgoing) bool {
	w, s := a.w, a.e.s
	id, seq := a.nextID(), a.seqs[o.target]+1
	m := session.Message{Target: s.Intern(o.target), Type: s.Intern(o.kind), System: o.system,
		Payload: messageBytes(id, seq, o.size), Headers: messageBytes(id, seq, o.headers)}
	if o.sender != "" {
		m.Sender = s.Intern(o.sender)
	}
	err := s.Send(a.e.now(), &m)
	if err == nil {
		a.seqs[o.target] = seq
		a.outbox.sent(o.target, sentMessage{id: id, seq: seq, size: o.size, system: o.system,
			sender: o.sender, kind: o.kind, headers: o.headers, after: a.orders})
		w.Count.Messages++
		a.tell("sends message %d to %s, %d bytes", seq, o.target, o.size)
		if o.size > wire.MaxInline {
			w.Count.Large++
		} else {
			fill(m.Payload, poison) // it may be reused at once
		}
		if o.system {
			w.Count.System++
		}
		fill(m.Headers, poison)
	}
	a.e.pump()
	switch {
	case err == nil:
		return true
	case a.e.ended && errors.Is(err, a.e.cause):
		return false
	case errors.Is(err, rma.ErrWindowFull) && !o.system:
		w.Count.WindowFull++
		return false
	}
	w.violate("%s: a message of %d bytes is refused: %v", a.e, o.size, err)
	return false
}

// room sends what had found none.
func (a *App) room() {
	if a.e.ended {
		a.backlog = nil
	}
	for len(a.backlog) > 0 && a.send(&a.backlog[0]) {
		a.backlog = a.backlog[1:]
	}
}

// delivered takes a message, keeps it for a while, and gives its room back.
func (a *App) delivered(d *session.Delivery) {
	if k := a.e.peer.app.notifyOf(d); k != nil {
		k.arrived()
		return
	}
	a.e.peer.app.outbox.delivered(d)
	a.unconsumed += d.Cost
	a.windowCheck()
	if d.Cost == 0 {
		return
	}
	l := &a.w.opt.Load
	wait := a.w.between(0, l.Consume)
	if a.w.chance(l.Slow) {
		wait *= 50
	}
	c := d.Cost
	a.e.node.after(wait, "consumed", func() {
		a.unconsumed -= c
		a.e.s.Consumed(a.e.now(), c)
		a.e.pump()
	})
}
