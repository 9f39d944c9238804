package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"railyard/rail"
	"railyard/rma"
)

const (
	// recordSize is how much one TLS record carries.
	recordSize = 16 << 10
	// maxSealed bounds the bytes that one bracket encrypts, and with their records' frames what is held here because the
	// socket is full.
	maxSealed = 128 << 10
	maxHeld   = 2 * maxSealed
)

var (
	errSecured  = errors.New("tcp: the stream is encrypted already")
	errTooHeld  = errors.New("tcp: the peer asks for more answers of TLS than it takes")
	errNoStream = errors.New("tcp: a deadline is set on the connection, not on the stream below TLS")
)

var (
	_ rail.Securable     = (*Conn)(nil)
	_ rail.SecurableKind = (*Kind)(nil)
)

// Secures implements rail.SecurableKind.
func (k *Kind) Secures() bool { return true }

// secured is the encrypted stream of a connection. crypto/tls waits inside its Read, so the reader lets it decrypt into a
// buffer of its own and copies from there, inside the bracket; and it cannot take back what it has sealed, so what a socket has no room
// for waits here.
//
// Invariant: at most maxSealed bytes of a plan, sealed, are held; the link is asked for more only when the socket has taken all of them.
type secured struct {
	stream *tls.Conn
	plain  *Conn
	stage  []byte // Owner: the holder of the write token. Small buffers, to make one record of
	bounce []byte // Owner: the reader goroutine

	mu sync.Mutex
	// Owner of the rest: mu. The reader seals too: it answers a peer's change of keys.
	pumping bool
	held    []byte // sealed, and not taken by the socket from at on
	at      int
}

// Peek waits for the next byte; see rail.Securable.
func (c *Conn) Peek() (byte, error) {
	if c.state.Load() == running {
		return 0, errRunning
	}
	var b [1]byte
	n, failed := 0, error(nil)
	err := c.raw.Read(func(fd uintptr) bool {
		n, _, failed = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	var errno syscall.Errno
	switch {
	case err != nil:
		return 0, err
	case errors.As(failed, &errno):
		return 0, c.opError("recv", errno)
	case n == 0:
		return 0, io.EOF
	}
	return b[0], nil
}

// Secure encrypts the stream; see rail.Securable.
func (c *Conn) Secure(cfg *tls.Config, dialer bool) (tls.ConnectionState, error) {
	switch {
	case c.state.Load() == running:
		return tls.ConnectionState{}, errRunning
	case c.sec != nil:
		return tls.ConnectionState{}, errSecured
	}
	s := &secured{plain: c}
	if dialer {
		s.stream = tls.Client((*below)(s), cfg)
	} else {
		s.stream = tls.Server((*below)(s), cfg)
	}
	if err := s.stream.Handshake(); err != nil {
		return tls.ConnectionState{}, fmt.Errorf("tcp: TLS with %s: %w", c.RemoteAddr(), err)
	}
	c.sec = s
	return s.stream.ConnectionState(), nil
}

// pump makes ready for Run: from here on what is sealed is held, and flushed by the holder of the write token.
func (s *secured) pump() {
	s.stage, s.bounce = make([]byte, 0, recordSize), make([]byte, recordSize)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pumping = true
}

// seal encrypts what a plan's buffers hold, or as much of it as one bracket may, and says how much that was.
func (s *secured) seal(bufs [][]byte) (n int, err error) {
	for _, b := range bufs {
		for len(b) > 0 && n < maxSealed {
			took, err := s.sealFrom(b[:min(len(b), maxSealed-n)])
			if err != nil {
				return n, err
			}
			n, b = n+took, b[took:]
		}
	}
	return n, s.sealStage()
}

// sealFrom seals the beginning of b: whole records straight from it, what is less by way of the stage.
func (s *secured) sealFrom(b []byte) (int, error) {
	if len(s.stage) == 0 && len(b) >= recordSize {
		whole := len(b) - len(b)%recordSize
		_, err := s.stream.Write(b[:whole])
		return whole, err
	}
	take := min(len(b), recordSize-len(s.stage))
	s.stage = append(s.stage, b[:take]...)
	if len(s.stage) < recordSize {
		return take, nil
	}
	return take, s.sealStage()
}

func (s *secured) sealStage() error {
	if len(s.stage) == 0 {
		return nil
	}
	_, err := s.stream.Write(s.stage)
	s.stage = s.stage[:0]
	return err
}

// flush gives the socket what is held. wait: it has no room.
func (s *secured) flush(fd uintptr) (step, syscall.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.at < len(s.held) {
		iov := [1]unix.Iovec{{Base: &s.held[s.at]}}
		iov[0].SetLen(len(s.held) - s.at)
		raceWriting(iov[:])
		n, errno := vectored(unix.SYS_WRITEV, fd, iov[:])
		switch errno {
		case 0:
			s.at += n
		case unix.EAGAIN:
			return wait, 0
		default:
			return leave, errno
		}
	}
	s.held, s.at = s.held[:0], 0
	return again, 0
}

// flush ends the connection where the socket fails.
func (c *Conn) flush(fd uintptr) step {
	s, errno := c.sec.flush(fd)
	if errno != 0 {
		c.failWrite(draining, c.opError("write", errno))
	}
	return s
}

// sealOnce is the rest of a bracket that Fill has opened.
func (c *Conn) sealOnce() step {
	c.out.plan.Acquire()
	n, failed := c.sec.seal(c.out.plan.Bufs)
	err := c.wrote(n)
	switch {
	case err != nil:
		c.failWrite(over, err)
	case failed != nil:
		c.failWrite(draining, fmt.Errorf("tcp: encrypting for %s: %w", c.RemoteAddr(), failed))
	case n == 0:
		c.failWrite(over, errNothingFilled)
	default:
		return again
	}
	return leave
}

// unseal is the read loop of an encrypted stream. Its first bracket finds nothing, as that of a plain one may.
func (c *Conn) unseal() error {
	if _, err := c.land(nil); err != nil {
		return err
	}
	for c.state.Load() != over {
		n, failed := c.sec.stream.Read(c.sec.bounce)
		for b := c.sec.bounce[:n]; len(b) > 0 && c.state.Load() != over; {
			landed, err := c.land(b)
			if err != nil {
				return err
			}
			b = b[landed:]
		}
		switch {
		case errors.Is(failed, io.EOF):
			return fmt.Errorf("tcp: %s ended the encrypted stream: %w", c.RemoteAddr(), failed)
		case failed != nil:
			return fmt.Errorf("tcp: decrypting what %s sent: %w", c.RemoteAddr(), failed)
		}
	}
	return nil
}

// land is one bracket Want, copy, Got. It gives how many bytes of b found their place.
func (c *Conn) land(b []byte) (int, error) {
	plan := &c.in.plan
	*plan = rma.Scatter{}
	if err := c.link.Want(plan); err != nil {
		return 0, err
	}
	n := 0 // where the region was revoked: the next plan discards
	if plan.Acquire() {
		n = spread(plan, b)
	}
	room := len(plan.First)+len(plan.Then) > 0
	if err := c.link.Got(plan, n); err != nil {
		return 0, err
	}
	if !room {
		return 0, errNoRoom
	}
	return n, nil
}

// spread copies into an acquired plan, and gives its lease back whatever happens.
func spread(plan *rma.Scatter, b []byte) int {
	defer plan.Release()
	n := copy(plan.First, b)
	if n == len(plan.First) {
		n += copy(plan.Then, b[n:])
	}
	return n
}

// below is the stream under TLS: the socket, which before Run may keep its caller waiting and after it may not.
type below secured

var _ net.Conn = (*below)(nil)

func (s *below) Read(p []byte) (int, error) {
	n, err := s.plain.tcp.Read(p)
	raceReading(nil, n) // what flush has told the race detector, it learns here
	return n, err
}

func (s *below) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pumping {
		return s.plain.tcp.Write(p)
	}
	if len(s.held)-s.at+len(p) > maxHeld {
		return 0, errTooHeld
	}
	s.held = append(s.held, p...)
	return len(p), nil
}

func (s *below) Close() error {
	s.plain.Kill()
	return nil
}

func (s *below) LocalAddr() net.Addr { return s.plain.tcp.LocalAddr() }

func (s *below) RemoteAddr() net.Addr { return s.plain.tcp.RemoteAddr() }

func (s *below) SetDeadline(time.Time) error { return errNoStream }

func (s *below) SetReadDeadline(time.Time) error { return errNoStream }

func (s *below) SetWriteDeadline(time.Time) error { return errNoStream }
