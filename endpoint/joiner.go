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
	defer j.e.unlock()
	return j.e.s.Lane(id).NextGeneration()
}

// Join implements rail.Joiner.
func (j joiner) Join(ctx context.Context, id wire.RailID, g wire.Generation, conn rail.Conn) (rail.Link, error) {
	return j.e.join(ctx, id, g, conn)
}

// Vitals implements rail.Joiner.
func (j joiner) Vitals(id wire.RailID, g wire.Generation) (rail.Vitals, bool) {
	j.e.mu.Lock()
	defer j.e.unlock()
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
	e.locked(func(now time.Duration) {
		l := e.pendingLink(id, g)
		if l == nil {
			return
		}
		c := &carrier{e: e, rail: id, generation: g, transport: t, conn: conn, link: l}
		if l.g = e.s.Lane(id).Attach(now, g, c); l.g != nil {
			e.carriers[pendingKey{id, g}] = c
		}
	})
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
	var gen *session.Generation
	open := false
	e.locked(func(now time.Duration) {
		e.dropPending(id, g)
		if c := e.carriers[pendingKey{id, g}]; c != nil {
			c.lost = true
		}
		if gen = e.find(id, g); gen != nil {
			e.s.Lost(now, gen, cause)
			open = !gen.IsQuiet()
		}
	})
	if open {
		e.m.track(func() { e.breakOff(gen, cause) })
	}
}

// breakOff closes what a lost connection has left open between two calls of its link: a bug in it must not keep operations
// waiting for the end of a socket call that nobody makes.
func (e *Endpoint) breakOff(gen *session.Generation, cause error) {
	gen.User.(*carrier).conn.Close() // from here on no call of its is in progress
	e.locked(func(now time.Duration) {
		if e.bug == nil {
			gen.BreakOff(now, cause)
		}
	})
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
	j.e.locked(func(now time.Duration) {
		if gen := j.e.find(id, g); gen != nil {
			f(now, gen)
		}
	})
}
