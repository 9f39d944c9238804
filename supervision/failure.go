package supervision

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Class says what kind of trouble a failure is, and so whether trying again can help.
type Class uint8

const (
	// Transient: the peer lives and the path works; this connection is over. A reset, an end of
	// file, a dial refused by a live peer.
	Transient Class = iota
	// Path: nothing comes through. Silence, unreachable, the device is down, a dial timed out.
	Path
	// Peer: the peer said so. Goodbye, a new incarnation, refused for good.
	Peer
	// Bug: ours. A panic that is no Failure, or an error of the protocol.
	Bug
)

// String gives the word that logs and events use.
func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case Path:
		return "path"
	case Peer:
		return "peer"
	case Bug:
		return "bug"
	default:
		return "class " + strconv.Itoa(int(c))
	}
}

// What a Failure of class Peer wraps in Err, so that a policy can tell them apart.
var (
	// ErrGoodbye: the peer ended the session.
	ErrGoodbye = errors.New("the peer said goodbye: connect again if it is to come back")
	// ErrNewIncarnation: another process answers at the peer's address.
	ErrNewIncarnation = errors.New("the peer has restarted: a new session with it is needed")
	// ErrRefused: the peer will not have this rail, now or later.
	ErrRefused = errors.New("the peer refuses this rail for good: " +
		"compare versions, secrets and limits of both nodes")
)

// Failure is why a generation of a rail ended, or why none began. A transport panics with a
// *Failure.
type Failure struct {
	// Rail is the rail's name; Local and Remote are the two devices' addresses.
	Rail, Local, Remote string
	// Generation is the life that ended; 0 where none had begun.
	Generation uint64
	Class      Class
	// Err is the cause.
	Err error
	// At is when it was noticed, since the node's start.
	At time.Duration
}

// Error names both devices and the cause, so that the one to look at can be found.
func (f Failure) Error() string {
	var b strings.Builder
	b.WriteString("rail")
	if f.Rail != "" {
		b.WriteString(" " + f.Rail)
	}
	if f.Local != "" || f.Remote != "" {
		fmt.Fprintf(&b, " (%s to %s)", orUnknown(f.Local), orUnknown(f.Remote))
	}
	if f.Generation != 0 {
		fmt.Fprintf(&b, " lost generation %d", f.Generation)
	} else {
		b.WriteString(" did not come up")
	}
	fmt.Fprintf(&b, ", %s failure", f.Class)
	if f.Err != nil {
		b.WriteString(": " + f.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (f Failure) Unwrap() error { return f.Err }

func orUnknown(address string) string {
	if address == "" {
		return "an unknown address"
	}
	return address
}

// PanicError is the Err of a Failure that was a panic of our own code.
type PanicError struct {
	// Value is what was panicked with.
	Value any
}

// Error shows the value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic (report it, with the log): %v", e.Value)
}

// Unwrap gives the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
