package tcp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"railyard/rail"
)

// errRunning is the answer to the handshake's calls after Run.
var errRunning = errors.New("tcp: the connection belongs to its link since Run; the handshake is over")

// The lives of a connection, in the only order that they can take.
const (
	handshake uint32 = iota
	running
	// draining: a write failed. Nothing more is written; the reader takes what had arrived and reports.
	draining
	// over: the link is called no more.
	over
)

// Conn is one TCP connection: see rail.Conn for its contract.
type Conn struct {
	tcp *net.TCPConn
	raw syscall.RawConn

	// state goes upwards only; it is read before each call of the link.
	state atomic.Uint32
	kick  chan struct{} // capacity 1: there is one token, so there is one kick
	stop  chan struct{} // closed when state becomes over

	// sec is set by Secure, before Run; nil: the stream is plain.
	sec *secured

	link rail.Link   // set once by Run, before state is running
	lost func(error) // likewise; called by the reader goroutine only

	in  inbound  // Owner: the reader goroutine
	out outbound // Owner: the holder of the write token

	mu     sync.Mutex
	killed bool
	cause  error // the first failure of the write half; the reader reports it

	// joined counts the reader, the writer and the closer. The closer is counted from the start, so that Run and
	// Close never meet at zero.
	joined sync.WaitGroup
}

var _ rail.Conn = (*Conn)(nil)

func newConn(tc *net.TCPConn) (*Conn, error) {
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("tcp: the socket to %s closed before it was used: %w", tc.RemoteAddr(), err)
	}
	c := &Conn{tcp: tc, raw: raw, kick: make(chan struct{}, 1), stop: make(chan struct{})}
	c.joined.Add(1)
	return c, nil
}

// Read reads in the handshake's life. It takes nothing from the socket beyond p.
func (c *Conn) Read(p []byte) (int, error) {
	if c.state.Load() == running {
		return 0, errRunning
	}
	if c.sec != nil {
		return c.sec.stream.Read(p)
	}
	return c.tcp.Read(p)
}

// Write writes in the handshake's life.
func (c *Conn) Write(p []byte) (int, error) {
	if c.state.Load() == running {
		return 0, errRunning
	}
	if c.sec != nil {
		return c.sec.stream.Write(p)
	}
	return c.tcp.Write(p)
}

// SetDeadline bounds the handshake's reads and writes; Run lifts it.
func (c *Conn) SetDeadline(t time.Time) error {
	if c.state.Load() == running {
		return errRunning
	}
	return c.tcp.SetDeadline(t)
}

// LocalAddr implements rail.Conn.
func (c *Conn) LocalAddr() string { return c.tcp.LocalAddr().String() }

// RemoteAddr implements rail.Conn.
func (c *Conn) RemoteAddr() string { return c.tcp.RemoteAddr().String() }

// Run starts the reader and the writer, or nothing if the connection has been killed already.
func (c *Conn) Run(link rail.Link, lost func(error)) {
	// The poller would count a deadline that the handshake left behind against the pump.
	_ = c.tcp.SetDeadline(time.Time{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return
	}
	c.link, c.lost = link, lost
	if c.sec != nil {
		c.sec.pump()
	}
	c.out.parking, c.out.inline = c.writeParking, c.writeInline
	if !c.state.CompareAndSwap(handshake, running) {
		panic("tcp: Run was called twice on one connection")
	}
	c.joined.Add(2)
	go c.readLoop()
	go c.writeLoop()
}

// Kick wakes the writer goroutine, which goes on with the token.
func (c *Conn) Kick() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Kill ends the connection; see rail.Conn. It waits for no goroutine; the kernel may make it wait for a copy of
// at most maxWrite bytes.
func (c *Conn) Kill() {
	c.mu.Lock()
	if c.killed {
		c.mu.Unlock()
		return
	}
	c.killed = true
	c.finish()
	c.mu.Unlock()
	c.abort()
	go func() {
		defer c.joined.Done()
		// Close waits until no call on the descriptor is in progress, WriteNow's in other goroutines included;
		// so whoever waits for this goroutine has waited for them.
		_ = c.tcp.Close()
	}()
}

// Close kills and waits for the goroutines and for calls of WriteNow in progress.
func (c *Conn) Close() {
	c.Kill()
	c.joined.Wait()
}

// Unacked is false once the connection is over.
func (c *Conn) Unacked() (int, bool) { return ask(c, unacked) }

// BytesAcked gives how many bytes the peer's kernel has acknowledged since the connection was made (the SYN counts
// as one); it grows only. False once the connection is over.
func (c *Conn) BytesAcked() (uint64, bool) { return ask(c, bytesAcked) }

// SetNotSent changes the bound on unsent bytes (Config.NotSent) of this connection, as its rate becomes known; bytes is
// above 0. False: the system refused, or the connection is over.
func (c *Conn) SetNotSent(bytes int) bool {
	_, ok := ask(c, func(fd uintptr) (struct{}, error) { return struct{}{}, setNotSent(int(fd), bytes) })
	return ok
}

// ask asks the kernel about a connection that somebody may be ending.
func ask[T any](c *Conn, question func(fd uintptr) (T, error)) (answer T, ok bool) {
	if c.state.Load() == over {
		return answer, false
	}
	var failed error
	err := c.raw.Control(func(fd uintptr) { answer, failed = question(fd) })
	return answer, err == nil && failed == nil
}

// finish forbids every further call of the link. Only mu's holder calls it.
func (c *Conn) finish() {
	if c.state.Swap(over) != over {
		close(c.stop)
	}
}

func (c *Conn) abort() { _ = c.raw.Control(abort) }

// verdict ends the pump and gives what lost is told: nil where the connection was killed, the write half's
// failure if there was one (it came first, and the reader only noticed its effect), else the reader's own.
func (c *Conn) verdict(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	killed := c.killed
	c.finish()
	switch {
	case killed:
		return nil
	case c.cause != nil:
		return c.cause
	default:
		return err
	}
}

// opError dresses a failed socket call as package net does, so that errors.Is finds the system's number.
func (c *Conn) opError(call string, errno syscall.Errno) error {
	return &net.OpError{Op: call, Net: "tcp", Source: c.tcp.LocalAddr(), Addr: c.tcp.RemoteAddr(), Err: errno}
}
