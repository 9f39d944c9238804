package main

import (
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
)

// revokeOne takes back one of our regions, with whatever is under way to it.
func (a *App) revokeOne() {
	a.revoke(a.home.areas[a.w.number(0, len(a.home.areas)-1)])
}

func (a *App) revoke(r *area) {
	a.e.note("region %d is revoked", r.key.Region())
	r.revoke()
	a.w.Count.Revokes++
}

// peerRevokeSoon: an operation of ours may still land in the peer's region: the peer takes it back.
func (a *App) peerRevokeSoon(s *slot) {
	owner := a.e.peer.app
	owner.e.node.after(a.w.between(0, 300*time.Millisecond), "revoke-lost", func() {
		if !s.revoked {
			owner.revoke(s.area)
		}
	})
}

// target gives the key of one of the peer's regions; sometimes one that is gone.
func (a *App) target() (*area, rma.Key) {
	h := a.e.peer.app.home
	r := h.areas[a.w.number(0, len(h.areas)-1)]
	if !r.old.IsZero() && a.w.chance(0.05) {
		return r, r.old
	}
	return r, r.key
}

func (a *App) opSize() int {
	l := &a.w.opt.Load
	switch a.w.number(0, 9) {
	case 0:
		return 0
	case 1, 2, 3:
		return a.w.number(1, min(l.BigPut, 4<<10))
	default:
		return a.w.number(1, l.BigPut)
	}
}

// newWork makes an operation on n bytes of a region of the peer's. Nil: no room there.
func (a *App) newWork(kind session.OpKind, n int) *work {
	w := a.w
	a.orders++
	area, key := a.target()
	k := &work{app: a, kind: kind, id: a.nextID(), n: n, order: a.orders, area: area, region: key.Region()}
	k.op = session.Op{Kind: kind, Region: key.Region(), Token: key.Token(), Fence: w.chance(w.opt.Load.Fence)}
	k.data = make([]byte, n)
	switch {
	case w.chance(w.opt.Load.Evil):
		k.spoil()
	case !key.Equal(k.area.key):
		k.evil = rma.ErrRevoked
	case k.area.doomed:
		return nil
	default:
		if k.slot = k.area.reserve(n, kind == session.Put, k.id); k.slot == nil {
			return nil
		}
		k.op.Offset = uint64(k.slot.at)
	}
	if kind == session.Put {
		copy(k.data, pattern(k.id, n))
	} else {
		fill(k.data, unread)
	}
	k.op.Data = k.data
	*a.budget() -= n + 200
	return k
}

// spoil makes the claim one that the target must refuse.
func (k *work) spoil() {
	w := k.app.w
	stale := k.app.e.pair.stale[1-k.app.e.side]
	switch w.number(0, 4) {
	case 0:
		k.evil = rma.ErrUnknownRegion
		k.op.Token[w.number(0, 15)] ^= 1
	case 1:
		k.evil = rma.ErrUnknownRegion
		k.op.Region += 1 << 30
	case 2:
		k.evil = rma.ErrRights
		k.area = k.app.e.peer.app.home.sealed[k.kind]
		k.region, k.op.Region, k.op.Token = k.area.key.Region(), k.area.key.Region(), k.area.key.Token()
	case 3:
		if len(stale) > 0 { // a key of an earlier incarnation
			key := stale[w.number(0, len(stale)-1)]
			k.evil = rma.ErrUnknownRegion
			k.op.Region, k.op.Token = key.Region(), key.Token()
			return
		}
		fallthrough
	default:
		k.evil = rma.ErrBounds
		k.op.Offset = uint64(len(k.area.mem)-k.n) + uint64(w.number(1, 1<<20))
		if w.chance(0.3) {
			k.op.Offset = ^uint64(0) - uint64(w.number(0, k.n))
		}
	}
}

func (a *App) put() {
	k := a.newWork(session.Put, a.opSize())
	if k == nil {
		return
	}
	w := a.w
	w.Count.Puts++
	if w.chance(w.opt.Load.Notify) {
		w.Count.Notified++
		k.notify = true
		s := a.e.s
		k.op.Notify = &session.Message{Target: s.Intern("notified"), Type: s.Intern("note"),
			Payload: messageBytes(k.id, k.order, w.number(identitySize, 2000))}
	}
	a.begin(k)
}

func (a *App) get() {
	if k := a.newWork(session.Get, a.opSize()); k != nil {
		a.w.Count.Gets++
		a.begin(k)
	}
}

func (a *App) flush() {
	a.orders++
	a.w.Count.Flushes++
	*a.budget() -= 200
	a.begin(&work{app: a, kind: session.Flush, id: a.nextID(), order: a.orders, op: session.Op{Kind: session.Flush}})
}

// begin starts an operation, and what will become of it.
func (a *App) begin(k *work) {
	w, e := a.w, a.e
	k.op.User = k
	a.open = append(a.open, k)
	a.works[&k.op] = k
	a.byID[k.id] = k
	if k.op.Fence {
		w.Count.Fenced++
	}
	a.tell("starts %s", asked{k})
	e.s.Start(e.now(), &k.op)
	e.pump()
	if !w.chance(w.opt.Load.Cancel) {
		return
	}
	abandon := w.chance(w.opt.Load.Abandon)
	var wait time.Duration
	switch w.number(0, 4) {
	case 0: // at once
	case 1:
		wait = w.between(0, 200*time.Microsecond)
	case 2:
		wait = w.between(0, 30*time.Millisecond)
	default: // while its bytes are under way
		rate := 0.0
		for _, p := range e.pair.paths {
			rate += p.dir[e.side].rate
		}
		long := time.Duration(float64(k.n) / rate * float64(time.Second))
		wait = w.between(0, 2*long+10*w.opt.MaxDelay+4*w.opt.Turn)
	}
	if abandon && w.chance(0.3) {
		e.node.after(wait, "abandon", func() { a.abandon(k) })
		return
	}
	e.node.after(wait, "cancel", func() { a.cancel(k, abandon) })
}

func (a *App) cancel(k *work, abandon bool) {
	if k.completed {
		return
	}
	w, e := a.w, a.e
	w.Count.Cancels++
	a.tell("cancels %s", k)
	k.canceled = true
	e.s.Cancel(e.now(), &k.op)
	e.pump()
	if !abandon || k.completed {
		return
	}
	var wait time.Duration
	if w.chance(0.7) {
		wait = w.between(0, 5*w.opt.MaxDelay+5*w.opt.Turn)
	}
	e.node.after(wait, "abandon", func() { a.abandon(k) })
}

// abandon ends the operation here, whatever becomes of it.
func (a *App) abandon(k *work) {
	if k.completed {
		return
	}
	a.w.Count.Abandons++
	a.tell("abandons %s", k)
	k.abandoned = true
	a.e.s.Abandon(a.e.now(), &k.op)
	a.e.pump()
}

// completed is the end of an operation.
func (a *App) completed(op *session.Op, err error) {
	k := a.works[op]
	if k == nil {
		a.w.violate("%s: an operation completed that was never started, or long ago: %v", a.e, err)
	}
	a.tell("hears of %s: it %s", k, verdict{err})
	k.outcome(err)
	for i, have := range a.open {
		if have == k {
			a.open = append(a.open[:i], a.open[i+1:]...)
			break
		}
	}
	delete(a.works, op)
	a.orderCheck(k)
	k.notifyCheck()
	k.finish()
}
