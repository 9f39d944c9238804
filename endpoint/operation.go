package endpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint/session"
	"railyard/rma"
	"railyard/wire"
)

// operation is one put, get or flush: the application's handle and the session's record of it.
type operation struct {
	rma.Op
	ticket
	s session.Op
	e *Endpoint
	// Owner: Endpoint.open.
	listed        bool
	before, after *operation
	// reply and id are an actor's, which asked by message; reply is nil otherwise.
	reply *actor.PID
	id    uint64
}

var opNames = map[rma.OpKind]string{rma.PutOp: "put", rma.GetOp: "get", rma.FlushOp: "flush"}

// complete tells whoever waits. Only the first call for an operation does.
func (o *operation) complete(e *Endpoint, err error) {
	var typed *rma.OpError
	if err != nil && !errors.As(err, &typed) {
		err = &rma.OpError{Op: opNames[o.Kind()], ID: o.s.ID, Err: err}
	}
	if o.Complete(err) && o.reply != nil {
		e.root.Send(e.pid, &completed{o: o, err: err})
	}
}

// newOperation prepares an operation for the session. An error says what is wrong with the request itself.
func (e *Endpoint) newOperation(c rma.OpConfig) (*operation, error) {
	o := &operation{e: e}
	c.Canceler = o
	o.Init(c)
	opts := c.Options
	o.s = session.Op{Region: c.Key.Region(), Token: c.Key.Token(), Offset: c.Offset, Data: c.Data, Fence: opts.Fence, User: o}
	switch c.Kind {
	case rma.PutOp:
		o.s.Kind = session.Put
	case rma.GetOp:
		o.s.Kind = session.Get
	default:
		o.s.Kind = session.Flush
	}
	if opts.NotifyPID == nil || c.Kind != rma.PutOp {
		return o, nil
	}
	m, err := e.m.cfg.Host.Marshal(opts.NotifyPID, opts.NotifyMessage)
	if err != nil {
		return o, fmt.Errorf("the message of Notify: %w", err)
	}
	if len(m.Payload)+len(m.Headers) > wire.MaxInline {
		return o, fmt.Errorf("the message of Notify has %d bytes; at most %d: %w", len(m.Payload), wire.MaxInline, rma.ErrTooLarge)
	}
	for _, name := range []*Ref{m.Target, m.Sender, m.Type} {
		if name != nil && len(name.S) > wire.MaxName {
			return o, fmt.Errorf("a name of %d bytes in Notify; at most %d: %w", len(name.S), wire.MaxName, rma.ErrTooLarge)
		}
	}
	n := &session.Message{Target: &session.Name{S: m.Target.S}, Type: &session.Name{S: m.Type.S}, Headers: m.Headers, Payload: m.Payload}
	if m.Sender != nil {
		n.Sender = &session.Name{S: m.Sender.S}
	}
	o.s.Notify = n
	return o, nil
}

// newOperationSafely is newOperation for the endpoint's actor: a panic of what serializes an application's message is that
// operation's error, and no bug of the endpoint.
func (e *Endpoint) newOperationSafely(c rma.OpConfig) (o *operation, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("serializing the message of Notify panicked: %v", value)
		}
	}()
	return e.newOperation(c)
}

// start makes an operation and sends it to the endpoint's actor.
func (e *Endpoint) start(c rma.OpConfig) *rma.Op {
	o, err := e.newOperation(c)
	if err == nil {
		err = e.hand(o)
	}
	if err != nil {
		o.Complete(&rma.OpError{Op: opNames[c.Kind], Err: err})
	}
	return &o.Op
}

// StartPut begins to write data at offset, in bytes, of the region of key at the peer. Data belongs to the endpoint until
// the operation has completed.
func (e *Endpoint) StartPut(key rma.Key, offset uint64, data []byte, opts ...rma.Option) *rma.Op {
	return e.start(rma.OpConfig{Kind: rma.PutOp, Key: key, Offset: offset, Data: data, Options: rma.Apply(opts)})
}

// StartGet begins to fill dst from offset, in bytes, of the region of key. Dst belongs to the endpoint until
// the operation has completed.
func (e *Endpoint) StartGet(key rma.Key, offset uint64, dst []byte, opts ...rma.Option) *rma.Op {
	return e.start(rma.OpConfig{Kind: rma.GetOp, Key: key, Offset: offset, Data: dst, Options: rma.Apply(opts)})
}

// Put is StartPut, and waits until every byte is visible at the peer. When ctx ends first the operation is canceled (P3):
// the error wraps ctx's and ErrCanceled, or ErrOutcomeUnknown where the peer could not be asked within Config.CancelWait; data is
// free in each case. Where the cancel came too late Put returns nil.
func (e *Endpoint) Put(ctx context.Context, key rma.Key, offset uint64, data []byte, opts ...rma.Option) error {
	return e.finish(ctx, e.StartPut(key, offset, data, opts...))
}

// Get is StartGet, and waits. When ctx ends first the operation is canceled and dst is free.
func (e *Endpoint) Get(ctx context.Context, key rma.Key, offset uint64, dst []byte, opts ...rma.Option) error {
	return e.finish(ctx, e.StartGet(key, offset, dst, opts...))
}

// Flush waits until all operations that were started before are done at the peer, well or not, and until all messages that were
// sent before have been delivered there, or come back.
func (e *Endpoint) Flush(ctx context.Context) error {
	return e.finish(ctx, e.start(rma.OpConfig{Kind: rma.FlushOp}))
}

func (e *Endpoint) finish(ctx context.Context, op *rma.Op) error {
	select {
	case <-op.Done():
		return op.Err()
	case <-ctx.Done():
	}
	// The context that bounds the cancel cannot be the one that has ended.
	wait, done := context.WithTimeout(context.WithoutCancel(ctx), e.m.cfg.CancelWait)
	defer done()
	err := op.Cancel(wait)
	if op.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", op.Err(), ctx.Err())
}

// CancelOp implements rma.Canceler: an operation takes itself back.
func (o *operation) CancelOp(ctx context.Context, op *rma.Op) error {
	e := o.e
	if !e.submit(&takeBack{o: o}) {
		<-op.Done() // the endpoint has ended, and completes everything
		return nil
	}
	select {
	case <-op.Done():
		return nil
	case <-ctx.Done():
	}
	if !e.submit(&abandon{o: o}) {
		<-op.Done()
		return nil
	}
	<-op.Done()
	return nil
}
