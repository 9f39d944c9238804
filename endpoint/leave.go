package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"railyard/rma"
)

// This file: how an endpoint ends in good order, by its node's shutdown or on its own.

// lastWords is how long a peer may take to hang up once goodbye has been said. One that hears it does so at once.
const lastWords = 500 * time.Millisecond

// errUnheard is why a shutdown does not wait for a peer's acknowledgements any longer.
var errUnheard = errors.New("nothing is heard of the peer, so that nobody can say how far the work had got")

// leave drains one endpoint, says goodbye, and ends it.
func (e *Endpoint) leave(ctx context.Context) error {
	e.mu.Lock()
	e.leaving = true
	e.mu.Unlock()
	err := e.poll(ctx, func() bool { return e.handed == 0 })
	e.locked(func(time.Duration) { e.s.Leave() })
	if err == nil {
		err = e.drain(ctx)
	}
	if err != nil {
		err = fmt.Errorf("shutting down with work open to %s: %w", e.address, err)
	}
	e.sayGoodbye()
	e.end(rma.ErrShutdown)
	<-e.down // a bug is wound up first
	e.mu.Lock()
	defer e.mu.Unlock()
	return join(err, e.bug)
}

// drain waits until nothing is open. It gives up when nothing has been heard of the peer for a while: see Shutdown.
func (e *Endpoint) drain(ctx context.Context) error {
	patience := e.m.cfg.Health.WithDefaults().Ceiling
	if deadline, limited := ctx.Deadline(); limited {
		patience = max(patience, time.Until(deadline)/4)
	}
	heard, unheard := e.m.now(), false
	err := e.poll(ctx, func() bool {
		now := e.m.now()
		if !e.s.Silent() {
			heard = now
		}
		open := e.s.Open()
		unheard = open && now-heard >= patience
		return unheard || !open
	})
	if unheard {
		return fmt.Errorf("%w (waited for %s)", errUnheard, patience)
	}
	return err
}

// depart ends the endpoint for a reason of this side's own: new work is refused from now on, and the peer is told before
// the rails go. It does not wait; afterwards, where given, is called when the endpoint has ended.
func (e *Endpoint) depart(cause error, afterwards func()) {
	e.mu.Lock()
	first := e.parting == nil && e.ended == nil
	if first {
		e.parting = cause
		e.m.forget(e)
	}
	e.mu.Unlock()
	e.m.track(func() {
		if first {
			e.sayGoodbye()
			e.end(cause)
		}
		<-e.down
		if afterwards != nil {
			afterwards()
		}
	})
}

// sayGoodbye tells the peer that this side leaves, on every rail, and waits for it to hang up.
func (e *Endpoint) sayGoodbye() {
	e.locked(func(now time.Duration) { e.s.SayGoodbye(now) })
	brief, done := context.WithTimeout(context.Background(), lastWords)
	defer done()
	// Who is silent does not answer; what was written reaches it, or does not. A rail that is about to be attached says it, too.
	_ = e.poll(brief, func() bool { return e.s.Silent() && len(e.pending) == 0 })
}

// poll waits until cond holds, which it looks at with the lock held.
func (e *Endpoint) poll(ctx context.Context, cond func() bool) error {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for {
		ok := false
		e.look(func() { ok = e.ended != nil || cond() })
		if ok {
			return nil
		}
		select {
		case <-t.C:
		case <-e.down:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
