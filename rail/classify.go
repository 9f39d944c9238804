package rail

import (
	"errors"
	"fmt"

	"railyard/supervision"
	"railyard/wire"
)

// ErrNotNeeded is Join's answer to a candidate whose rail has answered on its older connection meanwhile. The
// candidate goes; nothing has failed.
var ErrNotNeeded = errors.New("candidate connection not needed: the older one has answered")

// ErrSuperseded is why a generation ends when the session has taken a newer one in its place.
var ErrSuperseded = errors.New("a newer connection of the same rail took its place")

// ErrStopped is why a generation ends when its transport, rail or endpoint is stopped.
var ErrStopped = errors.New("the rail was stopped on this side")

// errRestarted is why a generation ends when its rail actor had a bug.
var errRestarted = &PanicError{Value: "the rail actor restarts with a new connection"}

// errNobodyDialed and errNotAsked say why a rail without any failure is not up.
var (
	errNobodyDialed = errors.New("the peer has not dialed this rail: check its card and the path from there")
	errNotAsked     = errors.New("the first dial has not ended yet: check the card and the path to the peer's")
)

// errOver is why a transport ends whose generation the session has ended without saying why.
var errOver = errors.New("the session has ended this connection's generation")

// PanicError is a panic of our own code (a bug) that a connection's or transport's goroutine caught, so that it costs one
// generation and not the process.
type PanicError struct {
	Value any
	Stack []byte
}

// Error gives the panic's value; the stack is for the log.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in the transport's own code (a bug, please report it): %v", e.Value)
}

// Unwrap gives the panic's value where it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Classed is an error that knows whose fault it is: the session's refusals are.
type Classed interface {
	error
	FailureClass() supervision.Class
}

// Classify says whose fault err is: what this package and the session know, then what the error itself
// tells. What is unknown is transient, which costs one more try.
func Classify(err error) supervision.Class {
	var failure *supervision.Failure
	if errors.As(err, &failure) {
		return failure.Class
	}
	var classed Classed
	if errors.As(err, &classed) {
		return classed.FailureClass()
	}
	var panicked *PanicError
	if errors.As(err, &panicked) || errors.Is(err, wire.ErrMalformed) {
		return supervision.Bug
	}
	var silence *SilenceError
	if errors.As(err, &silence) || errors.Is(err, ErrSuperseded) {
		return supervision.Path
	}
	return supervision.ClassOf(err)
}
