package rail

import (
	"context"
	"io"
	"time"

	"railyard/rma"
)

// Kind makes connections of one kind of rail ("tcp", "pipe"). The node injects the kinds that it uses.
type Kind interface {
	// Name is the kind's short name, as in Binding.Kind.
	Name() string
	// Dial opens a connection from the local device's address to a remote one. It returns
	// within ctx; the error says which of the two addresses it could not use.
	Dial(ctx context.Context, local, remote string) (Conn, error)
	// Listen takes connections at a binding's address until the listener is closed.
	Listen(ctx context.Context, b Binding) (Listener, error)
}

// Listener hands out accepted connections. Accept is unblocked by Close with net.ErrClosed.
type Listener interface {
	Accept() (Conn, error)
	// Addr is the address in force, with the port that the system chose.
	Addr() string
	Close() error
}

// Conn is the byte stream of one generation. It has two lives: first a plain blocking stream for the
// handshake (Read, Write, SetDeadline), then, after Run, a pump between the socket and a Link.
//
// Invariant: after Kill has returned the connection calls nothing of its Link any more except that a call
// already in progress may finish; after Close has returned, no goroutine of it is left and none of its calls is in progress.
type Conn interface {
	io.Reader
	io.Writer
	SetDeadline(t time.Time) error
	LocalAddr() string
	RemoteAddr() string

	// Run ends the handshake's life and starts the reader and the writer over link. It is called
	// once. lost is called exactly once, from a goroutine of the connection, when the stream ends for
	// whatever cause but Kill and Close: io.EOF, a socket error, or the error that the Link returned.
	Run(link Link, lost func(error))
	// Kick tells the writer goroutine that the link has something to write and that the write token is
	// its own. It never blocks.
	Kick()
	// WriteNow writes in the caller's goroutine until the link has nothing more or the socket is full
	// (then the writer goroutine goes on with the token). The caller holds the write token. It never waits for room.
	WriteNow()
	// Kill ends the stream at once and for good: nothing that the kernel still holds is sent
	// (SO_LINGER 0), nothing more is read. It does not wait.
	Kill()
	// Close kills and waits for the connection's goroutines. It must not be called from one of them.
	Close()
	// Unacked gives the bytes that the kernel has taken but the peer's kernel has not acknowledged; ok is
	// false where the kind cannot tell.
	Unacked() (bytes int, ok bool)
}

// Link is one generation of a lane as its connection sees it: where bytes come from and where they go.
// The endpoint implements it over the session, behind the session's lock.
//
// The write half (Fill, Wrote) is called only by the holder of the write token, the read half (Want,
// Got) only by the reader. Each Fill that returned true is followed by exactly one Wrote, each Want that
// returned nil by exactly one Got; between the two the memory named in the plan is used by the
// socket call, and nobody frees or reuses it: that bracket is what cancel, revoke and retire wait for. Nothing is called while
// a bracket is open except inside it: the socket call itself must not block.
type Link interface {
	// Fill says what to write next. False: nothing now, and the write token has been given back.
	Fill(g *rma.Gather) bool
	// Wrote says that the first n bytes of the plan have been taken (0: the socket is full; the caller waits for
	// room and calls Fill again). An error ends the connection; it has then called nothing after it.
	Wrote(g *rma.Gather, n int) error
	// Want says where the next bytes go. An error (rail fenced) ends the connection.
	Want(s *rma.Scatter) error
	// Got says that n bytes (0: none there yet) have been read into the plan's buffers in order. An error
	// names what was wrong with them and ends the connection.
	Got(s *rma.Scatter, n int) error
}
