package main

import (
	"bytes"
	"errors"

	"railyard/endpoint/session"
	"railyard/rma"
)

// work is one operation, as the application and the checkers see it.
type work struct {
	app    *App
	op     session.Op
	kind   session.OpKind
	id     uint64
	n      int
	slot   *slot // nil: a flush, or a claim that must be refused
	data   []byte
	evil   error // what the target must answer
	area   *area
	region uint64 // the number of the key that it goes by
	order  uint64 // among the operations of its end

	notify                         bool
	notified                       int
	canceled, abandoned, completed bool
	err                            error
}

// String names it among those of its end; name, in the world.
func (k *work) String() string {
	what := map[session.OpKind]string{session.Put: "put", session.Get: "get", session.Flush: "flush"}[k.kind]
	return what + " " + itoa(k.order)
}

func (k *work) name() string { return k.app.e.String() + " " + k.String() }

// outcome checks that the operation ended once, and as it may.
func (k *work) outcome(err error) {
	w := k.app.e.w
	if k.completed {
		w.violate("%s completed twice: %v and then %v", k.name(), k.err, err)
	}
	k.completed, k.err = true, err
	switch {
	case err == nil:
		if k.evil != nil {
			w.violate("%s completed well; it had to be refused: %v", k.name(), k.evil)
		}
		w.Count.Good++
	case k.app.e.ended && errors.Is(err, k.app.e.cause):
		k.abandoned = true // whether it has landed is not known
		w.Count.Over++
	case errors.Is(err, rma.ErrCanceled):
		if !k.canceled {
			w.violate("%s is called canceled; nobody canceled it", k.name())
		}
		w.Count.Canceled++
	case errors.Is(err, rma.ErrRevoked):
		if k.area == nil || k.area.key.Region() == k.region {
			w.violate("%s is called revoked; its region was not", k.name())
		}
		w.Count.Revoked++
	case errors.Is(err, rma.ErrOutcomeUnknown):
		if !k.abandoned {
			w.violate("%s has an unknown outcome; nobody abandoned it: %v", k.name(), err)
		}
		w.Count.Unknown++
	case errors.Is(err, rma.ErrWindowFull):
		if w.opt.Session.MaxOpen > 1<<16 {
			w.violate("%s found no room, with %d operations open", k.name(), k.app.openOps)
		}
		w.Count.WindowFull++
	default:
		if k.evil == nil || !errors.Is(err, k.evil) {
			w.violate("%s ended with %v (expected refusal: %v)", k.name(), err, k.evil)
		}
		w.Count.Refused++
	}
}

// order checks that what was to wait for everything before it did.
func (a *App) orderCheck(k *work) {
	if k.err != nil || (k.kind != session.Flush && !k.op.Fence) {
		return
	}
	for _, other := range a.open {
		if other.order < k.order {
			a.e.w.violate("%s completed before %s, which it had to wait for", k.name(), other.name())
		}
	}
	if late := a.outbox.before(k.order); late != "" {
		a.e.w.violate("%s completed before %s arrived, which it had to wait for", k.name(), late)
	}
}

// finish checks the memory of an operation that is over.
func (k *work) finish() {
	switch k.kind {
	case session.Put:
		k.finishPut()
	case session.Get:
		k.finishGet()
	default: // no memory
	}
}

func (k *work) finishPut() {
	fill(k.data, poison) // the source is ours again: whoever reads it now sends this
	if k.slot == nil {
		return
	}
	if k.app.e.ended && errors.Is(k.err, k.app.e.cause) {
		k.app.dangling = append(k.app.dangling, k) // until the peer's end is over as well
		k.app.landed()
		return
	}
	if errors.Is(k.err, rma.ErrOutcomeUnknown) && !k.slot.revoked {
		k.slot.area.doomed = true // it may land until the revoke
		k.app.peerRevokeSoon(k.slot)
		return
	}
	k.slot.over(k.name(), k.err == nil)
}

// unread is what the destination of a get holds before it.
const unread = 0xEE

func (k *work) finishGet() {
	w := k.app.e.w
	if k.slot != nil {
		want := k.slot.before()
		untouched := bytes.Repeat([]byte{unread}, len(k.data))
		switch {
		case k.err == nil && !bytes.Equal(k.data, want):
			w.violate("%s completed with other bytes than the region has", k.name())
		case k.err != nil && !mixOf(k.data, want, untouched, make([]byte, len(k.data))):
			w.violate("%s ended with %v and bytes that were never in the region", k.name(), k.err)
		}
		k.slot.release()
	} else if !isAll(k.data, unread) {
		w.violate("%s was refused, and has written to its destination", k.name())
	}
	fill(k.data, poison)
	g := graveBuffer{k.data, k.name()}
	k.app.graves = append(k.app.graves, g)
	if len(k.app.graves) > 64 {
		w.look(k.app.graves[0])
		k.app.graves = k.app.graves[1:]
	}
}

func itoa(n uint64) string {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}
