package main

import (
	"errors"
	"fmt"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
	"railyard/wire"
)

// Epoch is one session, from its opener's first dial to the end of both ends.
type Epoch struct {
	id    [wire.SessionSize]byte
	token []byte
	key   []byte
	n     int // which one of its pair
	ends  []*End
	lives livesCheck
}

func (x *Epoch) String() string { return fmt.Sprintf("epoch %d", x.n) }

// Why an end is over. The operations that are open then complete with it.
var (
	errOver      = fmt.Errorf("sim: this end is over: %w", rma.ErrEndpointDown)
	errOutage    = fmt.Errorf("sim: no rail was up for too long: %w", rma.ErrEndpointDown)
	errBug       = fmt.Errorf("sim: a bug in the endpoint: %w", errors.Join(rma.ErrOutcomeUnknown, rma.ErrEndpointDown))
	errForgotten = fmt.Errorf("sim: the peer has ended the session: %w", rma.ErrEndpointDown)
	errReplaced  = fmt.Errorf("sim: the peer has opened another session: %w", rma.ErrEndpointDown)
	errRestarted = fmt.Errorf("sim: the peer is another incarnation: %w", rma.ErrPeerRestarted)
)

// newEpoch is a session that nobody has heard of yet.
func newEpoch(w *World, p *Pair) *Epoch {
	p.epochs++
	x := &Epoch{n: p.epochs, token: make([]byte, 32)}
	x.lives = livesCheck{w: w, lives: make(map[lifeKey]*life)}
	w.random(x.id[:])
	w.random(x.token)
	x.key = session.Key(w.opt.secret(), x.token, x.id[:])
	return x
}

// secret is what all nodes share; nil: nothing.
func (o *Options) secret() []byte {
	if !o.Secret {
		return nil
	}
	return []byte("a secret")
}

// agree: the peer takes part in the session; work may begin.
func (e *End) agree(peer *End, window, maxMessage uint64) {
	e.agreed, e.agreedAt, e.peer, e.incarnation = true, e.now(), peer, peer.node.incarnation
	e.s.SetPeerLimits(window, maxMessage)
	e.us().fails = 0
	e.note("agrees on %s with incarnation %d", e.epoch, peer.node.life)
	e.agreedCheck()
	e.w.Count.Agreed++
	e.app.start()
	for _, r := range e.rails {
		r.look()
	}
}

// adopt makes the session of a first hello this end's own, which has none that is agreed.
func (e *End) adopt(h *hello) {
	e.opener, e.epoch = false, h.epoch
	e.epoch.ends = append(e.epoch.ends, e)
	e.s.SetOpener(false)
	for _, r := range e.rails {
		r.opener, r.dials = false, e.w.opt.BothDial
	}
	e.agree(h.from, h.GetWindow(), h.GetMaxMessage())
}

// close ends the session of this end. Its generations are killed, and no rail of it comes back.
func (e *End) close(cause error) {
	if e.ended {
		return
	}
	e.closeCheck(cause)
	e.ended, e.cause = true, cause
	e.note("%s is over here: %v", e.epoch, cause)
	us := e.us()
	us.end, us.former = nil, e
	us.graves[string(e.epoch.id[:])] = true
	e.s.Close(e.now(), cause)
	e.app.backlog = nil
	e.pump()
	e.node.reconnect(e.other())
}

// whenStill runs fn once nothing of the ended session is in progress.
func (e *End) whenStill(fn func()) {
	if e.over {
		fn()
		return
	}
	e.stillWaiters = append(e.stillWaiters, fn)
}

// rest: the session is over, and nothing of it is in progress any more.
func (e *End) rest() {
	e.over = true
	e.note("nothing of %s is in progress here", e.epoch)
	e.overCheck()
	waiters := e.stillWaiters
	e.stillWaiters = nil
	for _, fn := range waiters {
		e.node.soon("still", fn)
	}
}

// lateLook is by how much the product calls a look late.
const lateLook = time.Second

// watchOutage ends the endpoint when no rail has been up for too long.
func (e *End) watchOutage() {
	if e.ended || e.outageDue || !e.s.Silent() {
		return
	}
	e.outageDue = true
	at := max(e.waiting, e.s.SilentSince()) + e.w.opt.OutageLimit
	e.node.after(at-e.now(), "outage", func() {
		e.outageDue = false
		if e.now()-at > lateLook { // it was this node that was stopped
			e.waiting = e.now()
		}
		if e.ended || !e.s.Silent() {
			return
		}
		if since := max(e.waiting, e.s.SilentSince()); e.now()-since >= e.w.opt.OutageLimit {
			e.w.Count.Outages++
			e.close(errOutage)
			return
		}
		e.watchOutage()
	})
}

// crash is the death of a node's process. A host that dies says nothing more; of a process the kernel ends the connections, and
// what it holds of them may still go out.
func (n *Node) crash(host bool) {
	n.w.note("node %d dies (host: %v), incarnation %d", n.id, host, n.life)
	n.dead = true
	for _, p := range n.peers {
		if p == nil {
			continue
		}
		for _, path := range p.pair.paths {
			for _, c := range append([]*conn(nil), path.live...) {
				if s := c.socks[p.side]; host {
					s.vanish()
				} else {
					s.close(n.w.chance(n.w.opt.Zombies))
				}
			}
		}
		for _, h := range p.home.areas {
			p.pair.stale[p.side] = append(p.pair.stale[p.side], h.key)
		}
		if p.end != nil {
			p.end.diedCheck()
		}
		if p.former != nil && !p.former.over {
			p.former.diedCheck()
		}
	}
}

// restart begins the node's next incarnation, with new memory and without any endpoint.
func (n *Node) restart() {
	w := n.w
	if w.nodes[n.id] != n {
		return
	}
	w.Count.Restarts++
	next := newNode(w, n.id, n.life+1)
	w.nodes[n.id] = next
	for i, p := range n.peers {
		if p != nil {
			next.meet(p.pair, p.side, i)
		}
	}
	w.note("node %d starts, incarnation %d", next.id, next.life)
	for i, p := range next.peers {
		if p != nil && (w.calm || w.chance(0.5)) {
			next.after(w.between(0, 20*time.Millisecond), "connect", func() { next.connect(i) })
		}
	}
}
