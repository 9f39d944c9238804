package endpoint

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
)

// This file: the lock's way out, and what becomes of a bug in the session or in what carries out its effects: it costs the epoch, at
// whatever call it shows (rule 10). Who called goes on as if the endpoint had just ended.
//
// Invariant: a session that had a bug is called once more, to be closed, when none of its connections is in use; e.s is then
// another one, which is closed and empty, so that nobody else has to know.

// errBroken is what a call gives in the course of which the session had a bug.
var errBroken = fmt.Errorf("a bug in the endpoint, which ends, came between: %w", join(rma.ErrOutcomeUnknown, rma.ErrEndpointDown))

// locked runs f on the session, and then carries out what it asks for.
func (e *Endpoint) locked(f func(now time.Duration)) {
	e.mu.Lock()
	defer e.release()
	f(e.m.now())
}

// look runs f with the lock held, where f asks the session for nothing that has to be carried out.
func (e *Endpoint) look(f func()) {
	e.mu.Lock()
	defer e.unlock()
	f()
}

// unlock gives the lock back. It must be deferred directly: then it also takes a panic of what was done under the lock.
func (e *Endpoint) unlock() {
	if bug := recover(); bug != nil {
		e.breakDown(bug)
		return
	}
	e.mu.Unlock()
}

// release is unlock, and carries the session's effects out.
func (e *Endpoint) release() {
	if bug := recover(); bug != nil {
		e.breakDown(bug)
		return
	}
	fx, over := e.collect()
	if len(fx) == 0 {
		return
	}
	e.carryOut(fx)
	if over != nil { // the session itself found that the peer breaks the protocol
		e.end(over)
	}
	e.mu.Lock()
	if cap(fx) > cap(e.spare) && cap(fx) <= 4096 {
		e.spare = fx[:0]
	}
	e.mu.Unlock()
}

// collect takes what the session asks for, and gives the lock back. over: the session has closed itself.
func (e *Endpoint) collect() (fx []session.Effect, over error) {
	defer e.unlock()
	if n := e.consumed.Swap(0); n > 0 {
		e.s.Consumed(e.m.now(), n)
	}
	if e.s.DeadlineMoved() {
		e.arm()
	}
	if !e.s.HasEffects() {
		return nil, nil
	}
	fx = e.s.Effects(e.spare)
	e.spare = nil
	for i := range fx {
		switch f := &fx[i]; f.Kind {
		case session.Completed:
			e.open.remove(f.Op.User.(*operation))
		case session.Wake:
			f.Gen.User.(*carrier).link.awake = true
		case session.Quiet:
			c := f.Gen.User.(*carrier)
			delete(e.carriers, pendingKey{c.rail, c.generation})
		default: // nothing to remember
		}
	}
	if e.ended == nil {
		over = e.s.Closed()
	}
	return fx, over
}

// keepsake is what the outside may still ask for of a session that had a bug.
type keepsake struct {
	stats session.Stats
	flow  Flow
}

// hasTaken tells whether the message in the course of whose sending the session had its bug was in its books.
func (e *Endpoint) hasTaken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.taken
}

// wreck is what is left of a session that had a bug.
type wreck struct {
	s        *session.Session
	carriers []*carrier
	// cause ends what was open; why is what the endpoint ends with: the same, unless it was about to end.
	cause, why error
}

// breakDown gives the session up, at the first bug. Called with the lock held, and gives it back.
func (e *Endpoint) breakDown(bug any) {
	stack := debug.Stack()
	first := e.bug == nil
	var w *wreck
	if first {
		w = e.giveUp(bug)
	}
	e.mu.Unlock()
	e.log.Error("bug in an endpoint: its epoch ends", zap.Any("panic", bug), zap.Bool("first", first), zap.ByteString("stack", stack))
	if first {
		e.m.track(func() { e.windUp(w) })
	}
}

// giveUp puts an empty session in the place of the one that had a bug. Called with the lock held.
func (e *Endpoint) giveUp(bug any) *wreck {
	w := &wreck{s: e.s}
	w.cause = fmt.Errorf("a bug in the session with %s (%v): %w", e.address, bug, join(rma.ErrOutcomeUnknown, rma.ErrEndpointDown))
	for _, c := range e.carriers {
		w.carriers = append(w.carriers, c)
	}
	slices.SortFunc(w.carriers, func(a, b *carrier) int { return int(a.rail) - int(b.rail) })
	e.bug, e.winding = w.cause, true
	e.attempt("the counters of a session with a bug are read", func() { e.kept.stats = w.s.Stats() })
	e.attempt("the window of a session with a bug is read", func() { e.kept.flow.Window = w.s.PeerWindow() })
	e.taken = e.sending != 0 && e.kept.stats.MessagesSent >= e.sending
	fresh, err := session.New(e.m.cfg.Session, e.m.regions)
	if err != nil {
		panic(fmt.Errorf("a session's settings were good once: %w", err)) // withDefaults has checked them
	}
	fresh.Close(e.m.now(), w.cause)
	e.s = fresh
	if e.over() == nil {
		e.parting = w.cause
	}
	w.why = e.over()
	if e.ended == nil {
		e.m.forget(e)
	}
	return w
}

// windUp ends what had a bug: the peer is told, the connections are closed, and only then, with nobody at the memory of
// operations any more, whoever waits is told.
func (e *Endpoint) windUp(w *wreck) {
	e.lastWords(w)
	for _, c := range w.carriers {
		e.attempt("a connection is killed", c.conn.Kill)
	}
	for _, c := range w.carriers {
		e.attempt("a connection is closed", c.conn.Close)
	}
	e.mu.Lock()
	told, held, whole := e.salvage(w)
	e.mu.Unlock()
	e.settle(told)
	e.mu.Lock()
	left := e.open.take()
	e.winding = false
	clear(e.carriers)
	e.mu.Unlock()
	for _, o := range left {
		e.attempt("an operation is completed", func() { o.complete(e, w.cause) })
	}
	if !whole {
		e.tellUnknown(w.cause)
	}
	e.tellHeld(held, w.cause)
	e.end(w.why)
	e.wakeAll(&e.calm)
	e.rest()
}

// tellUnknown: the session could not even be closed, so that the messages that were under way cannot be given back one by one.
func (e *Endpoint) tellUnknown(cause error) {
	err := fmt.Errorf("messages to %s that had not arrived are lost, and not given back: %w", e.address, cause)
	e.log.Error("messages that were under way are lost: the session had a bug, and cannot tell which", zap.Error(err))
	e.m.cfg.Events.Publish(rail.Event{Kind: rail.MessageRefused, Peer: e.address, Cause: err})
}

// lastWords has each connection say goodbye, and waits for the peer to hang up, which it does at once when it hears that.
func (e *Endpoint) lastWords(w *wreck) {
	var idle []*carrier
	e.mu.Lock()
	for _, c := range w.carriers {
		if !c.link.awake { // else its writer will look by itself
			c.link.awake = true
			idle = append(idle, c)
		}
	}
	e.mu.Unlock()
	for _, c := range idle {
		e.attempt("a connection is woken", c.conn.Kick)
	}
	brief, done := context.WithTimeout(context.Background(), lastWords)
	defer done()
	// Who is silent does not answer; what was written reaches it, or does not.
	_ = e.poll(brief, func() bool {
		return !slices.ContainsFunc(w.carriers, func(c *carrier) bool { return !c.lost && !c.link.last.failed })
	})
}

// salvage closes the session that had a bug, as far as that works, and gives what it has to tell. Called with the lock held.
// whole: all of that worked.
func (e *Endpoint) salvage(w *wreck) (fx []session.Effect, held map[string]int, whole bool) {
	whole = true
	take := func() { fx = append(fx, w.s.Effects(nil)...) }
	for _, step := range []func(){take, func() { held = w.s.Held() }, func() { w.s.Close(e.m.now(), w.cause) }, take} {
		err := safely(func() error { // it is the same bug, or follows from it
			step()
			return nil
		})
		whole = whole && err == nil
	}
	return fx, held, whole
}

// settle carries out what others wait for, whatever else has become of the session.
func (e *Endpoint) settle(fx []session.Effect) {
	for i := range fx {
		switch f := &fx[i]; f.Kind {
		case session.Completed, session.Undelivered, session.Unmap:
			e.attempt("an effect is carried out", func() { e.do(f) })
		default: // of connections that are closed
		}
	}
}

// attempt calls f; a panic of it is logged, and goes no further.
func (e *Endpoint) attempt(what string, f func()) {
	err := safely(func() error {
		f()
		return nil
	})
	if err != nil {
		e.log.Error("panic while "+what, zap.Error(err))
	}
}

// openList is the operations that the session has not called complete: who is to be told where it cannot.
//
// Owner: Endpoint.mu.
type openList struct{ first *operation }

func (l *openList) add(o *operation) {
	o.listed, o.after = true, l.first
	if l.first != nil {
		l.first.before = o
	}
	l.first = o
}

func (l *openList) remove(o *operation) {
	if !o.listed {
		return
	}
	if o.before != nil {
		o.before.after = o.after
	} else {
		l.first = o.after
	}
	if o.after != nil {
		o.after.before = o.before
	}
	o.listed, o.before, o.after = false, nil, nil
}

// take empties the list, and gives what was on it, the oldest first.
func (l *openList) take() (all []*operation) {
	for l.first != nil {
		all = append(all, l.first)
		l.remove(l.first)
	}
	slices.Reverse(all)
	return all
}
