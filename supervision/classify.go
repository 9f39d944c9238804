package supervision

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// pathErrnos are those that say that nothing gets through; the others come from a live peer or this
// connection.
var pathErrnos = [...]syscall.Errno{
	syscall.ETIMEDOUT, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN,
	syscall.ENODEV, syscall.ENONET, syscall.EADDRNOTAVAIL,
}

// ClassOf guesses the class of a socket's or a dial's error. Protocol errors and the peer's own
// word are for the caller to tell: it knows where the error came from. What is unknown counts as
// Transient, which costs one more try.
func ClassOf(err error) Class {
	if failure, typed := typedFailure(err); typed {
		return failure.Class
	}
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		return Bug
	case errors.Is(err, ErrGoodbye), errors.Is(err, ErrNewIncarnation), errors.Is(err, ErrRefused):
		return Peer
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Transient
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return Path
	}
	for _, errno := range pathErrnos {
		if errors.Is(err, errno) {
			return Path
		}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return Path
	}
	return Transient
}

// Classify makes a Failure of whatever a child failed with. known fills in what a panic cannot
// tell: rail, addresses, generation and time; a *Failure keeps its own, and gets At where it has
// none.
func Classify(reason any, known Failure) Failure {
	f, typed := typedFailure(reason)
	if !typed {
		f = known
		f.Class, f.Err = Bug, &PanicError{Value: reason}
	}
	if f.At == 0 {
		f.At = known.At
	}
	return f
}

// typedFailure finds the Failure that a transport meant.
func typedFailure(reason any) (Failure, bool) {
	err, ok := reason.(error)
	if !ok {
		return Failure{}, false
	}
	var failure *Failure
	if errors.As(err, &failure) {
		if failure == nil {
			return Failure{Class: Bug, Err: errNilFailure}, true
		}
		return *failure, true
	}
	var value Failure
	ok = errors.As(err, &value)
	return value, ok
}

// errNilFailure stands for a nil *Failure, which is an error on which no method may be called.
var errNilFailure = errors.New("a nil failure was reported (report it, with the log)")
