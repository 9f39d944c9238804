package rma

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// OpKind is what an operation does.
type OpKind uint8

const (
	// PutOp writes to a peer's region.
	PutOp OpKind = iota
	// GetOp reads from a peer's region.
	GetOp
	// FlushOp waits until everything before it is visible at the peer.
	FlushOp
)

// String gives the name that errors and logs use.
func (k OpKind) String() string {
	switch k {
	case PutOp:
		return "put"
	case GetOp:
		return "get"
	case FlushOp:
		return "flush"
	default:
		return fmt.Sprintf("operation kind %d", uint8(k))
	}
}

// Canceler takes operations back: their owner.
type Canceler interface {
	// CancelOp has op completed: with ErrCanceled where it could be taken back, with
	// ErrOutcomeUnknown where the target could not be asked, else as it went. It returns when that
	// has happened; where ctx ends first it frees the source and completes op with
	// ErrOutcomeUnknown. An error that it gives counts only while op has not completed. It is
	// called any number of times for one op, from any goroutine.
	CancelOp(ctx context.Context, op *Op) error
}

// OpConfig is what an operation is; it does not change.
type OpConfig struct {
	Kind OpKind
	// Key and Offset, in bytes, say where at the peer; a flush has neither, nor Data.
	Key    Key
	Offset uint64
	// Data is the source of a put, the destination of a get; its length is the operation's.
	Data    []byte
	Options Options
	// Canceler is asked by Cancel; nil: the operation cannot be taken back, only awaited.
	Canceler Canceler
	// OnDone is called once, after completion, by the goroutine that completed; nil: nobody is.
	// The owner holds no lock that OnDone needs when it completes.
	OnDone func(*Op)
}

// Op is the handle of one operation. The application waits, reads the outcome, and may cancel; the
// owner completes. All methods but Init may be called from any goroutine. It must not be copied.
//
// Invariant: it completes once: err is set before finished, finished before the channel is closed,
// that before OnDone is called, and none of them changes after.
type Op struct {
	config OpConfig

	finished atomic.Bool
	// mu guards what follows.
	mu   sync.Mutex
	err  error
	done chan struct{}
}

// closedChannel serves all who ask for the channel of an operation that is over.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// NewOp makes an open operation.
func NewOp(c OpConfig) *Op {
	op := new(Op)
	op.Init(c)
	return op
}

// Init is NewOp for an Op inside a larger struct: once, before anybody else sees it.
func (op *Op) Init(c OpConfig) { op.config = c }

// Kind is what the operation does.
func (op *Op) Kind() OpKind { return op.config.Kind }

// Key is the peer's region's key.
func (op *Op) Key() Key { return op.config.Key }

// Offset is where in the region, in bytes.
func (op *Op) Offset() uint64 { return op.config.Offset }

// Data is the source of a put, the destination of a get. It belongs to the owner until completion.
func (op *Op) Data() []byte { return op.config.Data }

// Len is the operation's length in bytes.
func (op *Op) Len() uint64 { return uint64(len(op.config.Data)) }

// Options is what it was started with.
func (op *Op) Options() Options { return op.config.Options }

// Done gives a channel that is closed at completion; the same at each call while the operation is
// open.
func (op *Op) Done() <-chan struct{} {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.done == nil {
		if op.finished.Load() {
			op.done = closedChannel
		} else {
			op.done = make(chan struct{})
		}
	}
	return op.done
}

// Finished tells whether the operation has completed, well or not.
func (op *Op) Finished() bool { return op.finished.Load() }

// Err is the outcome: nil if it went well, and nil while it is open (ask Finished, or wait for
// Done). Compare with errors.Is.
func (op *Op) Err() error {
	if !op.finished.Load() {
		return nil
	}
	return op.err
}

// Wait waits for completion and gives Err. Where ctx ends first it gives an error that wraps ctx's,
// and the operation goes on: its buffer is not free.
func (op *Op) Wait(ctx context.Context) error {
	if op.Finished() {
		return op.Err()
	}
	select {
	case <-op.Done():
		return op.Err()
	case <-ctx.Done():
		// Both may be ready, and the outcome says more.
		if op.Finished() {
			return op.Err()
		}
		return fmt.Errorf("stopped waiting for a %s that goes on (Cancel it to free its buffer): %w",
			op.Kind(), context.Cause(ctx))
	}
}

// Cancel takes the operation back, and waits until the target has confirmed that, or ctx ends.
//
// Nil: nothing of it is written at the target any more and its buffer is free, because it was
// canceled or had completed, well or not; Err says which. ErrOutcomeUnknown: the buffer is free,
// but the target could not be asked. It may be called more than once.
func (op *Op) Cancel(ctx context.Context) error {
	if !op.Finished() {
		if err := op.cancel(ctx); !op.Finished() {
			return err
		}
	}
	if err := op.Err(); errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return nil
}

// cancel gives an error, or the operation has completed.
func (op *Op) cancel(ctx context.Context) error {
	if op.config.Canceler != nil {
		if err := op.config.Canceler.CancelOp(ctx, op); err != nil {
			return err
		}
	}
	// An owner that only took note, or none: what remains is to see it end.
	select {
	case <-op.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("could not cancel a %s in time, its buffer is still in use: %w",
			op.Kind(), context.Cause(ctx))
	}
}

// Complete is for the owner: it ends the operation with err (nil: well) and tells whoever waits.
// Only the first call does anything, and only it gives true.
func (op *Op) Complete(err error) bool {
	op.mu.Lock()
	if op.finished.Load() {
		op.mu.Unlock()
		return false
	}
	op.err = err
	op.finished.Store(true)
	if op.done != nil {
		close(op.done)
	}
	op.mu.Unlock()
	if op.config.OnDone != nil {
		op.config.OnDone(op)
	}
	return true
}

// String shows the operation and its state, without data and token.
func (op *Op) String() string {
	state := "open"
	if op.Finished() {
		state = "done"
		if err := op.Err(); err != nil {
			state = err.Error()
		}
	}
	return fmt.Sprintf("%s(%d bytes, offset %d, %s): %s",
		op.Kind(), op.Len(), op.Offset(), op.config.Key, state)
}

// Format writes String whatever the verb, so that no verb shows data or token.
func (op *Op) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(op.String())) }
