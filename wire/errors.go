package wire

import (
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by every error about the bytes of a frame. Whoever receives such a frame
// closes the connection: the stream can no longer be trusted to be in step.
var ErrMalformed = errors.New("malformed frame")

// Error says what was wrong with a frame.
type Error struct {
	Kind   Kind   // of the frame; 0 where it is not known
	Reason string // what was found, and what is allowed
	Own    bool   // a frame of this node, refused before it was sent
}

// Error names the frame and the fault.
func (e *Error) Error() string {
	if e.Own && e.Kind == 0 {
		return "wire: cannot send: " + e.Reason
	}
	if e.Own {
		return fmt.Sprintf("wire: cannot send a %v frame: %s", e.Kind, e.Reason)
	}
	if e.Kind == 0 {
		return fmt.Sprintf("wire: malformed frame: %s; "+
			"check that the peer speaks this version of Railyard", e.Reason)
	}
	return fmt.Sprintf("wire: malformed %v frame: %s; "+
		"check that the peer speaks this version of Railyard", e.Kind, e.Reason)
}

// Unwrap gives ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

// malformed is kept out of line: the parsers that call it stay small and allocate only when they
// fail.
//
//go:noinline
func malformed(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Reason: fmt.Sprintf(format, args...)}
}

// reason gives an error's own words without the frame in which it was found.
func reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// unsendable is the error for what this node must not send.
func unsendable(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Reason: fmt.Sprintf(format, args...), Own: true}
}
