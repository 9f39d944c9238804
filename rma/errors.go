package rma

import (
	"errors"
	"fmt"

	"railyard/wire"
)

// What may become of an operation. Compare with errors.Is: they arrive wrapped, mostly in an
// OpError.
var (
	// ErrRevoked: the region's owner took its key back. What had landed before stays; nothing lands
	// after.
	ErrRevoked = errors.New("the region was revoked by its owner: ask the owner for a new key")
	// ErrBounds: offset and length lie outside the region.
	ErrBounds = errors.New("outside the region: keep offset+length within Key.Len")
	// ErrRights: the key does not permit what was asked.
	ErrRights = errors.New("the key does not allow this: have the region registered " +
		"with RemoteWrite for puts, RemoteRead for gets")
	// ErrUnknownRegion: the peer has no region with that key; also the answer to a wrong token.
	ErrUnknownRegion = errors.New("the peer knows no such region: the key is another node's, " +
		"of an earlier start of it, or was revoked long ago; ask the owner for a new one")
	// ErrCanceled: taken back by the initiator; its buffer is free and nothing more is written.
	ErrCanceled = errors.New("canceled by the initiator: its buffer is free, " +
		"start it again if it is still wanted")
	// ErrOutcomeUnknown: the local buffer is free, but the target could not be asked. What was sent
	// may still land until the region is revoked or the session's next epoch begins.
	ErrOutcomeUnknown = errors.New("the peer could not be asked what became of it: " +
		"it may have landed, and may still; have the region revoked before its memory is reused")
	// ErrPeerRestarted: the peer process is a new one; regions of the old one are gone.
	ErrPeerRestarted = errors.New("the peer has restarted: exchange keys again")
	// ErrEndpointDown: the endpoint has ended.
	ErrEndpointDown = errors.New("the endpoint is down: connect to the peer again")
	// ErrNoRoute: no rail to the peer can be made.
	ErrNoRoute = errors.New("no rail leads to the peer: " +
		"check its address and the cards in Config.Rails")
	// ErrTooLarge: more than the limit for one message or operation.
	ErrTooLarge = errors.New("too large for one piece: split it, or raise the limit at both ends")
	// ErrWindowFull: the peer's window stayed full until the context ended.
	ErrWindowFull = errors.New("the peer's window is full: send slower, or wait longer")
	// ErrShutdown: the node is shutting down.
	ErrShutdown = errors.New("the node is shutting down: start nothing new on it")
	// ErrMalformed: the peer could not make sense of what it was sent.
	ErrMalformed = errors.New("malformed: " +
		"run versions that fit together, and hand keys over unchanged")
	// ErrLimit: a configured bound, such as that on open operations, was reached.
	ErrLimit = errors.New("a configured limit is reached: " +
		"have fewer operations open at once, or raise it")
	// ErrInternal: the peer had a bug while it applied the operation.
	ErrInternal = errors.New("the peer failed inside while it applied this: " +
		"look into the peer's log")
)

// ErrAccess is what a transport wraps where the peer's card refused a place: the memory is registered there no more, or not by
// that key. The session asks for the key again before it posts anything else to the region.
var ErrAccess = errors.New("the peer's card refused access to the memory: its region was revoked, or the key is of another generation")

// Why Register refuses.
var (
	// ErrEmptyRegion: a region needs at least one byte.
	ErrEmptyRegion = errors.New("cannot register an empty buffer: pass at least one byte")
	// ErrNoRights: no right, or an unknown one.
	ErrNoRights = errors.New("cannot register with these rights: " +
		"pass RemoteWrite, RemoteRead or both")
	// ErrTooManyRegions: the table's limit is reached.
	ErrTooManyRegions = errors.New("too many regions are registered: " +
		"revoke some, or raise the limit")
	// ErrEntropy: no random token could be drawn.
	ErrEntropy = errors.New("no random bytes for the key: check the system's random source")
)

// codes pairs each code that travels with its error.
var codes = [...]struct {
	code wire.Code
	err  error
}{
	{wire.CodeRevoked, ErrRevoked},
	{wire.CodeBounds, ErrBounds},
	{wire.CodeRights, ErrRights},
	{wire.CodeUnknownRegion, ErrUnknownRegion},
	{wire.CodeCanceled, ErrCanceled},
	{wire.CodeTooLarge, ErrTooLarge},
	{wire.CodeMalformed, ErrMalformed},
	{wire.CodeLimit, ErrLimit},
	{wire.CodeInternal, ErrInternal},
}

// CodeError gives the error for a code that a peer sent; nil for OK. A code that this
// version does not know becomes an error that wraps ErrInternal.
func CodeError(c wire.Code) error {
	if c == wire.CodeOK {
		return nil
	}
	for _, known := range codes {
		if known.code == c {
			return known.err
		}
	}
	return fmt.Errorf("the peer refused with code %d, unknown to this version: %w",
		uint8(c), ErrInternal)
}

// ErrorCode gives the code that tells a peer of err: OK for nil, Internal for what has no code.
func ErrorCode(err error) wire.Code {
	if err == nil {
		return wire.CodeOK
	}
	for _, known := range codes {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return wire.CodeInternal
}

// OpError says which operation ended with which error.
type OpError struct {
	// Op is what it was: "put", "get", "flush".
	Op string
	// ID is the operation's number in its session; 0 when it got none.
	ID wire.OpID
	// Err is why; never nil.
	Err error
}

// Error names the operation and the cause.
func (e *OpError) Error() string {
	if e.ID == 0 {
		return e.Op + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s %d: %s", e.Op, uint64(e.ID), e.Err)
}

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Unknown is the outcome of an operation that cause cut off before the target could say what became
// of it: it wraps ErrOutcomeUnknown and cause.
func Unknown(cause error) error {
	if cause == nil {
		return ErrOutcomeUnknown
	}
	if errors.Is(cause, ErrOutcomeUnknown) {
		return cause
	}
	return fmt.Errorf("%w (cut off because: %w)", ErrOutcomeUnknown, cause)
}
