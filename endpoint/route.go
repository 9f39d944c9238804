package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
)

// Route is what messages to one address go through. Endpoints come and go behind it. The first message connects. It is good for the node's
// life, though the node may have forgotten it (MaxRoutes).
type Route struct {
	m       *Manager
	address string
	to      atomic.Pointer[Endpoint]

	mu sync.Mutex
	// Owner of the rest: mu.
	resolving bool
	waiting   []*Outgoing // messages that came before an endpoint was up; their bytes are their own
	bytes     uint64      // of them
	closed    bool
	dropped   bool          // the node has forgotten it
	used      time.Duration // when it was made, or last looked for an endpoint
	// kept counts the messages that had to wait so far, handed those of them that are the session's or came back.
	kept, handed uint64
}

// Address is the address that the route leads to.
func (r *Route) Address() string { return r.address }

// Endpoint gives the endpoint in use; nil: none.
func (r *Route) Endpoint() *Endpoint {
	e := r.to.Load()
	if e != nil && e.Err() == nil {
		return e
	}
	if other := r.standIn(); other != nil {
		return other.Endpoint()
	}
	return nil
}

// TrySend sends without waiting. Nil: it will arrive exactly once and in order, or come back by Host.Undelivered.
func (r *Route) TrySend(m *Outgoing) error {
	if e := r.to.Load(); e != nil {
		err := e.send(m)
		if err == nil || !errors.Is(err, errEnded) {
			return err
		}
		r.to.CompareAndSwap(e, nil)
	}
	return r.enqueue(m)
}

// errEnded tells TrySend that the endpoint is over, so that a new one is made.
var errEnded = errors.New("this endpoint has ended")

// send puts a message into the session. It never waits for room.
func (e *Endpoint) send(m *Outgoing) error {
	idle, err := e.put(m)
	e.probe(idle)
	if errors.Is(err, errBroken) && e.hasTaken() { // it comes back with all others: nobody is told twice
		return nil
	}
	return err
}

func (e *Endpoint) put(m *Outgoing) (idle []*actor.PID, err error) {
	e.mu.Lock()
	defer e.release()
	if e.over() != nil {
		return nil, errEnded
	}
	err = errBroken //nolint:wastedassign // what it gives where this has a bug: release recovers
	msg := session.Message{Target: m.Target.resolve(e.s), Sender: m.Sender.resolve(e.s), Type: m.Type.resolve(e.s),
		System: m.System, Headers: m.Headers, Payload: m.Payload}
	now := e.m.now()
	idle = e.working(now)
	e.sending = e.s.Sent() + 1
	err = e.sendShared(now, &msg, m.waited)
	e.sending = 0
	return idle, err
}

// Send is TrySend that waits for room until ctx ends; then the error wraps rma.ErrWindowFull and ctx's.
func (r *Route) Send(ctx context.Context, m *Outgoing) error {
	for {
		var room <-chan struct{}
		if e := r.to.Load(); e != nil {
			e.mu.Lock()
			room = e.room
			e.mu.Unlock()
		}
		err := r.TrySend(m)
		if !errors.Is(err, rma.ErrWindowFull) {
			return err
		}
		var soon <-chan time.Time
		if room == nil { // no endpoint is up yet: its coming is what to wait for
			soon = time.After(5 * time.Millisecond)
		}
		select {
		case <-room:
		case <-soon:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// giveBack hands a message to the host that is not known to have arrived. A panic there costs that message alone.
func (m *Manager) giveBack(from *Endpoint, o *Outgoing, cause error) {
	err := safely(func() error {
		m.cfg.Host.Undelivered(from, o, cause)
		return nil
	})
	if err != nil {
		m.log.Error("panic while an undelivered message was given back (a bug in the host or in who listens to dead letters)",
			zap.String("target", o.Target.S), zap.Error(err))
	}
}

// enqueue keeps a message until an endpoint is up, and sees to it that one is made. Only then are the peer's limits known.
func (r *Route) enqueue(m *Outgoing) error {
	cfg := r.m.cfg.Session
	if uint64(len(m.Payload)) > cfg.MaxMessage {
		return fmt.Errorf("message of %d bytes to %s is over this node's limit of %d (Config.MaxMessage): %w",
			len(m.Payload), r.address, cfg.MaxMessage, rma.ErrTooLarge)
	}
	r.mu.Lock()
	if other := r.enter(); other != r {
		r.mu.Unlock()
		return other.TrySend(m)
	}
	if r.closed || r.m.closing.Load() {
		r.mu.Unlock()
		return fmt.Errorf("message to %s: %w", r.address, rma.ErrShutdown)
	}
	if e := r.to.Load(); e != nil && e.Err() == nil { // up meanwhile, and what waited went before
		r.mu.Unlock()
		return e.send(m)
	}
	defer r.mu.Unlock()
	size := cost(m)
	if r.bytes > 0 && r.bytes+size > cfg.Window/2 { // the other half is for whom they are not for
		return fmt.Errorf("%d bytes of messages wait for a connection to %s: %w", r.bytes, r.address, rma.ErrWindowFull)
	}
	kept := *m
	kept.Payload = append([]byte(nil), m.Payload...)
	kept.Headers = append([]byte(nil), m.Headers...)
	kept.Address, kept.waited = r.address, true
	r.waiting = append(r.waiting, &kept)
	r.bytes += size
	r.kept++
	r.used = r.m.now()
	if !r.resolving {
		r.resolving = true
		r.m.track(r.resolve)
	}
	return nil
}

func cost(m *Outgoing) uint64 {
	return uint64(len(m.Payload) + len(m.Headers) + session.MessageOverhead)
}

// resolve brings an endpoint up, and hands over what waits for it, in order; or gives it back.
func (r *Route) resolve() {
	ctx, done := context.WithTimeout(r.m.ctx, r.m.cfg.OutageLimit)
	defer done()
	e, err := r.connect(ctx)
	if err == nil {
		err = e.waitUp(ctx)
	}
	for {
		r.mu.Lock()
		list := r.waiting
		r.waiting, r.bytes = nil, 0
		if len(list) == 0 {
			r.resolving, r.used = false, r.m.now()
			if err == nil {
				r.to.Store(e)
			}
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, m := range list {
			if err == nil {
				err = e.sendWithin(r.m.ctx, m)
			}
			if err != nil {
				r.m.giveBack(nil, m, err)
				if !ends(err) { // it was about this message alone
					err = nil
				}
			}
			r.mu.Lock()
			r.handed++
			r.mu.Unlock()
		}
	}
}

// ends tells whether an error of a send is about the endpoint rather than about the message.
func ends(err error) bool { return !errors.Is(err, rma.ErrTooLarge) }

// sendWithin is send that waits for room, until ctx or the endpoint ends.
func (e *Endpoint) sendWithin(ctx context.Context, m *Outgoing) error {
	for {
		e.mu.Lock()
		room := e.room
		e.mu.Unlock()
		err := e.send(m)
		if !errors.Is(err, rma.ErrWindowFull) {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// connect finds the node at the address, and makes the endpoint to it unless there is one. It returns as soon
// as there is an endpoint, up or not.
func (r *Route) connect(ctx context.Context) (*Endpoint, error) {
	m := r.m
	if r.address == m.address {
		return nil, fmt.Errorf("%s is this node's own address: %w", r.address, rma.ErrNoRoute)
	}
	if e := m.peer(r.address); e != nil {
		return e, nil
	}
	delay := 20 * time.Millisecond
	var told error
	for {
		node, from, err := m.identify(ctx, r.address)
		if err == nil {
			return m.ensurePeer(ctx, node, from, r.address)
		}
		if told == nil || !timedOut(err) { // what was answered says more than an attempt that was cut short
			told = err
		}
		m.log.Debug("no node found yet", zap.String("address", r.address), zap.Error(err))
		if m.closing.Load() {
			return nil, fmt.Errorf("connecting to %s: %w", r.address, rma.ErrShutdown)
		}
		select {
		case <-time.After(delay):
			delay = min(2*delay, time.Second)
		case <-ctx.Done():
			return nil, fmt.Errorf("nobody answers at %s: %w", r.address, join(rma.ErrNoRoute, ctx.Err(), told))
		}
		if e := m.peer(r.address); e != nil { // it has come to us meanwhile
			return e, nil
		}
	}
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// ensurePeer gives the endpoint to a node; a new one dials address from the binding.
func (m *Manager) ensurePeer(ctx context.Context, node string, from rail.Binding, address string) (*Endpoint, error) {
	if node == m.address {
		return nil, fmt.Errorf("%s leads back to this node: %w", address, rma.ErrNoRoute)
	}
	for {
		if e := m.peer(node); e != nil {
			return e, nil
		}
		e, err := m.create(ctx, node, true, func(*Endpoint) {})
		if errors.Is(err, errPeerExists) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e.root.Send(e.pid, &open{from: from, address: address})
		return e, nil
	}
}

// Connect gives the endpoint to the node at address, once a rail to it is up, and what was sent to that address before has been handed to
// the session: so that a Flush waits for it. The address is any one of the node's.
func (m *Manager) Connect(ctx context.Context, address string) (*Endpoint, error) {
	r := m.Route(address)
	limit, done := context.WithTimeout(ctx, m.cfg.OutageLimit)
	defer done()
	for {
		e := r.Endpoint()
		if e == nil {
			var err error
			if e, err = r.connect(limit); err != nil {
				return nil, err
			}
		}
		err := e.waitUp(limit)
		if err == nil {
			r.adopt(e)
			r.handOver(limit)
			return e, nil
		}
		if limit.Err() != nil || !errors.Is(err, rma.ErrPeerRestarted) {
			return nil, err
		}
	}
}

// adopt makes the route lead to an endpoint that is up, unless messages are just being handed over to one.
func (r *Route) adopt(e *Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.resolving {
		r.to.Store(e)
	}
}

// close gives back what still waits.
func (r *Route) close() {
	r.mu.Lock()
	r.closed = true
	list := r.waiting
	r.waiting, r.bytes = nil, 0
	r.mu.Unlock()
	for _, m := range list {
		r.m.giveBack(nil, m, rma.ErrShutdown)
	}
}

// drain waits until what waits for an endpoint has been handed over or given back, or ctx ends.
func (r *Route) drain(ctx context.Context) {
	r.wait(ctx, func() bool { return !r.resolving })
}

// handOver waits until what waits now has been handed over or given back, or ctx ends.
func (r *Route) handOver(ctx context.Context) {
	r.mu.Lock()
	until := r.kept
	r.mu.Unlock()
	r.wait(ctx, func() bool { return r.closed || r.handed >= until })
}

// wait waits for a condition, which it looks at with the lock held, or until ctx ends.
func (r *Route) wait(ctx context.Context, cond func() bool) {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for {
		r.mu.Lock()
		ok := cond()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
