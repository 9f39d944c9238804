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

	// Owner of the rest: Endpoint.mu.
	// awake: a writer has the token, or has been told to take it. torn: the stream may stand inside a frame.
	awake, torn bool
	last        farewell
}

var _ rail.Link = (*link)(nil)

// Fill implements rail.Link.
func (l *link) Fill(out *rma.Gather) (ok bool) {
	if l.g == nil {
		return false
	}
	l.e.mu.Lock()
	defer l.e.release()
	l.awake = false
	if l.e.bug == nil {
		ok = l.g.Fill(l.e.m.now(), out)
	} else {
		ok = l.last.say(l, out)
	}
	l.awake = ok
	return ok
}

// Wrote implements rail.Link.
func (l *link) Wrote(out *rma.Gather, n int) error {
	size := out.Size()
	ok, err := l.wrote(out, n)
	if !ok && size > n && size == out.Size() { // else the session has taken note
		l.e.mu.Lock()
		defer l.e.mu.Unlock()
		l.last.keep(out, n)
	}
	return err
}

// wrote tells the session; false: it has had a bug.
func (l *link) wrote(out *rma.Gather, n int) (ok bool, err error) {
	l.e.mu.Lock()
	defer l.e.release()
	if n > 0 { // else the stream stands where it stood
		l.torn = n < out.Size()
	}
	if l.e.bug != nil {
		return false, nil
	}
	err = l.g.Wrote(l.e.m.now(), out, n)
	return true, err
}

// Want implements rail.Link.
func (l *link) Want(in *rma.Scatter) error {
	if l.g == nil {
		return session.ErrFenced
	}
	ok, err := l.want(in)
	if !ok { // what still comes is nobody's; to leave it unread might cost the peer our goodbye
		*in = rma.Scatter{First: make([]byte, 4<<10)}
		return nil
	}
	return err
}

// want asks the session; false: it has had a bug.
func (l *link) want(in *rma.Scatter) (ok bool, err error) {
	l.e.mu.Lock()
	defer l.e.unlock()
	if l.e.bug != nil {
		return false, nil
	}
	err = l.g.Want(l.e.m.now(), in)
	return true, err
}

// Got implements rail.Link. What has come is delivered here, in the reader's goroutine, with the bracket open and
// the lock released.
func (l *link) Got(in *rma.Scatter, n int) error {
	batch, err := l.got(in, n)
	for len(batch) > 0 {
		for i := range batch {
			l.e.deliver(&batch[i])
		}
		batch, err = l.delivered()
	}
	return err
}

func (l *link) got(in *rma.Scatter, n int) ([]session.Delivery, error) {
	l.e.mu.Lock()
	defer l.e.release()
	if l.e.bug != nil {
		return nil, nil
	}
	return l.g.Got(l.e.m.now(), in, n)
}

func (l *link) delivered() ([]session.Delivery, error) {
	l.e.mu.Lock()
	defer l.e.release()
	if l.e.bug != nil {
		return nil, nil
	}
	return l.g.Delivered(l.e.m.now())
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
