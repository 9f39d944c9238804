package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/supervision"
	"railyard/wire"
)

// joiner is the endpoint as its rails see it.
type joiner struct{ e *Endpoint }

var _ rail.Joiner = joiner{}

// NextGeneration implements rail.Joiner.
func (j joiner) NextGeneration(id wire.RailID) wire.Generation {
	j.e.mu.Lock()
	defer j.e.mu.Unlock()
	return j.e.s.Lane(id).NextGeneration()
}

// Join implements rail.Joiner.
func (j joiner) Join(ctx context.Context, id wire.RailID, g wire.Generation, conn rail.Conn) (rail.Link, error) {
	return j.e.join(ctx, id, g, conn)
}

// Vitals implements rail.Joiner.
func (j joiner) Vitals(id wire.RailID, g wire.Generation) (rail.Vitals, bool) {
	j.e.mu.Lock()
	defer j.e.mu.Unlock()
	gen := j.e.find(id, g)
	if gen == nil || (gen.Fenced() && gen.IsQuiet() && j.e.ended != nil) {
		return rail.Vitals{}, false
	}
	v := gen.Vitals()
	return rail.Vitals{
		Heard: v.Heard, Answered: v.Answered, OldestPing: v.OldestPing, Acked: v.AckedBytes, InFlight: v.InFlight,
		RTT: v.RoundTrip, Jitter: v.Jitter, Busy: v.Busy,
	}, !gen.Fenced()
}

// Beat implements rail.Joiner.
func (j joiner) Beat(id wire.RailID, g wire.Generation) {
	j.with(id, g, func(now time.Duration, gen *session.Generation) { j.e.s.Beat(now, gen) })
}

// Attach implements rail.Joiner.
func (j joiner) Attach(id wire.RailID, g wire.Generation, t *actor.PID, conn rail.Conn) {
	e := j.e
	e.mu.Lock()
	l := e.pendingLink(id, g)
	if l == nil {
		e.mu.Unlock()
		return
	}
	l.g = e.s.Lane(id).Attach(e.m.now(), g, &carrier{e: e, rail: id, generation: g, transport: t, conn: conn})
	e.release()
}

// Suspect implements rail.Joiner. Where no other rail is usable, candidates are dialed beside the silent ones (rule 6).
func (j joiner) Suspect(id wire.RailID, g wire.Generation, cause error) {
	e := j.e
	j.with(id, g, func(now time.Duration, gen *session.Generation) {
		e.s.Suspect(now, gen, cause)
		if r := e.record(id); r != nil {
			r.status.Reason, r.since = fmt.Sprint(cause), now
		}
	})
	e.root.Send(e.pid, &railsChanged{})
}

// Trust implements rail.Joiner.
func (j joiner) Trust(id wire.RailID, g wire.Generation) {
	j.with(id, g, func(now time.Duration, gen *session.Generation) { j.e.s.Trust(now, gen) })
}

// Lost implements rail.Joiner.
func (j joiner) Lost(id wire.RailID, g wire.Generation, cause error) {
	e := j.e
	var failure *supervision.Failure
	if errors.As(cause, &failure) && failure.Err != nil {
		cause = failure.Err
	}
	e.mu.Lock()
	e.dropPending(id, g)
	gen := e.find(id, g)
	if gen != nil {
		e.s.Lost(e.m.now(), gen, cause)
	}
	open := gen != nil && !gen.IsQuiet()
	e.release()
	if open {
		e.m.track(func() { e.breakOff(gen, cause) })
	}
}

// breakOff closes what a lost connection has left open between two calls of its link: a bug in it must not keep operations
// waiting for the end of a socket call that nobody makes.
func (e *Endpoint) breakOff(gen *session.Generation, cause error) {
	gen.User.(*carrier).conn.Close() // from here on no call of its is in progress
	e.mu.Lock()
	gen.BreakOff(e.m.now(), cause)
	e.release()
}

// Offer implements rail.Joiner.
func (j joiner) Offer(id wire.RailID, g wire.Generation, op any) {
	j.with(id, g, func(now time.Duration, gen *session.Generation) { j.e.s.Accept(now, gen, op.(*session.Op)) })
}

// Withdraw implements rail.Joiner.
func (j joiner) Withdraw(id wire.RailID, g wire.Generation, op any) {
	j.with(id, g, func(now time.Duration, gen *session.Generation) { j.e.s.Withdraw(now, gen, op.(*session.Op)) })
}

func (j joiner) with(id wire.RailID, g wire.Generation, f func(now time.Duration, gen *session.Generation)) {
	e := j.e
	e.mu.Lock()
	if gen := e.find(id, g); gen != nil {
		f(e.m.now(), gen)
	}
	e.release()
}
