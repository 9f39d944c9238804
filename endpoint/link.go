package endpoint

import (
	"runtime/debug"

	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

// link is one generation as its connection sees it: the session's two halves behind the endpoint's lock.
//
// Owner: the connection, from Run on; g is set by Attach, before it.
type link struct {
	e *Endpoint
	g *session.Generation
}

var _ rail.Link = (*link)(nil)

// Fill implements rail.Link.
func (l *link) Fill(out *rma.Gather) bool {
	if l.g == nil {
		return false
	}
	l.e.mu.Lock()
	ok := l.g.Fill(l.e.m.now(), out)
	l.e.release()
	return ok
}

// Wrote implements rail.Link.
func (l *link) Wrote(out *rma.Gather, n int) error {
	l.e.mu.Lock()
	err := l.g.Wrote(l.e.m.now(), out, n)
	l.e.release()
	return err
}

// Want implements rail.Link.
func (l *link) Want(in *rma.Scatter) error {
	if l.g == nil {
		return session.ErrFenced
	}
	l.e.mu.Lock()
	err := l.g.Want(l.e.m.now(), in)
	l.e.mu.Unlock()
	return err
}

// Got implements rail.Link. What has come is delivered here, in the reader's goroutine, with the bracket open and
// the lock released.
func (l *link) Got(in *rma.Scatter, n int) error {
	e := l.e
	e.mu.Lock()
	batch, err := l.g.Got(e.m.now(), in, n)
	for len(batch) > 0 {
		e.release()
		for i := range batch {
			e.deliver(&batch[i])
		}
		e.mu.Lock()
		batch, err = l.g.Delivered(e.m.now())
	}
	e.release()
	return err
}

// deliver hands one message to the host. A panic there costs that message alone (rule 4).
func (e *Endpoint) deliver(d *session.Delivery) {
	defer func() {
		if value := recover(); value != nil {
			e.log.Error("panic while a message was delivered (a bug in the receiving actor's dispatcher or in the host)",
				zap.String("target", d.Target.S), zap.Any("panic", value), zap.ByteString("stack", debug.Stack()))
			e.m.cfg.Events.Publish(rail.Event{Kind: rail.MessageRefused, Peer: e.address,
				Cause: &rail.PanicError{Value: value}})
		}
	}()
	if d.System && d.Target.String() == toldTarget {
		e.told(d.Payload)
		return
	}
	if d.System && d.Target.S == devicesTarget {
		e.hearDevices(d.Payload)
		return
	}
	e.m.cfg.Host.Deliver(e, d)
}

// find gives an unsettled generation of a rail; nil: it is over. Called with the lock held.
func (e *Endpoint) find(id wire.RailID, g wire.Generation) *session.Generation {
	return e.s.Lane(id).Find(g)
}
