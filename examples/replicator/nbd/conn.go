package nbd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

var (
	errDisconnected = errors.New("nbd: the client has disconnected")
	errStopping     = errors.New("nbd: the server stops")
	errGrace        = errors.New("nbd: requests in flight took longer than Grace after the end of the connection")
)

// conn is one connection.
//
// Owner: the goroutine of Server.serve, which alone reads. It is gone when that returns, with everything that it was asked to do.
//
// Invariant: life ends, at the latest, as soon as the reader knows that the connection has died; nothing of a dead connection goes on
// for longer than its device needs to let go of it.
type conn struct {
	server     *Server
	cfg        *Config
	raw        net.Conn
	in         *bufio.Reader
	out        replies
	budget     *budget
	requests   sync.WaitGroup // in flight: at most budget.maxCount
	life       context.Context
	end        context.CancelCauseFunc
	generation uint64

	// What the handshake has found out.
	hub                          *hub
	size                         int64 // bytes
	secure, structured, noZeroes bool

	mu       sync.Mutex
	net      net.Conn    // Owner: mu, and read by the reader without; raw, or TLS over it
	stopping bool        // Owner: mu; nothing more is read
	patience *time.Timer // Owner: mu; ends what is in flight

	wrote bool // Owner: hub.mu
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		server: s, cfg: &s.cfg, raw: nc, net: nc, in: bufio.NewReaderSize(nc, readAhead),
		budget: newBudget(s.cfg.Requests, s.cfg.Bytes),
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.out.reset(nc)
	return c
}

// deadline bounds reading and writing, unless the connection is to stop, which has a deadline of its own.
func (c *conn) deadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return errStopping
	}
	if err := c.raw.SetDeadline(t); err != nil {
		return fmt.Errorf("nbd: no deadline on this connection: %w", err)
	}
	return nil
}

// stop has the reader end, and gives what is in flight the time of Grace. The reader may be waiting for that, too.
func (c *conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	c.stopping = true
	c.patience = time.AfterFunc(c.cfg.Grace, func() { c.kill(errGrace) })
	_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // an error means that it has ended
}

func (c *conn) stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// kill ends the connection at once. The first cause stays.
func (c *conn) kill(cause error) {
	c.end(cause)
	_ = c.raw.Close()
}

// close ends it in good order, if there is still something to end.
func (c *conn) close() {
	c.end(errDisconnected)
	c.mu.Lock()
	inner := c.net
	if c.patience != nil {
		c.patience.Stop()
	}
	c.mu.Unlock()
	_ = inner.Close()
	_ = c.raw.Close()
}

// transmit serves requests, and returns when none is in flight any more: nil where the client took its leave.
func (c *conn) transmit() error {
	err := c.read()
	switch {
	case errors.Is(err, errDisconnected):
		c.stop()
		err = nil
	case c.stopped():
		err = errStopping
	default:
		c.kill(err)
	}
	c.requests.Wait()
	if cause := context.Cause(c.life); cause != nil {
		return cause
	}
	return err
}

// read takes requests in until the connection ends.
func (c *conn) read() error {
	for {
		q, err := c.readRequest()
		if err != nil {
			return err
		}
		if q.command == cmdDisconnect {
			return errDisconnected
		}
		if result, why := c.check(q); result != codeOK {
			if err := c.decline(q, result, why); err != nil {
				return err
			}
			continue
		}
		c.budget.take(q.room())
		payload, err := c.readPayload(q)
		if err != nil {
			c.budget.give(q.room())
			return err
		}
		c.requests.Go(func() {
			defer c.budget.give(q.room())
			c.perform(q, payload)
		})
	}
}

func (c *conn) readRequest() (request, error) {
	var head [requestLength]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return request{}, fmt.Errorf("nbd: no further request: %w", err)
	}
	if magic := order.Uint32(head[:]); magic != magicRequest {
		return request{}, fmt.Errorf("nbd: a request begins with %#x", magic)
	}
	return parseRequest(head), nil
}

// readPayload gives what a write has to write; nil for every other request.
func (c *conn) readPayload(q request) (*[]byte, error) {
	if q.command != cmdWrite {
		return nil, nil
	}
	p := borrow(int(q.length))
	if _, err := io.ReadFull(c.in, *p); err != nil {
		giveBack(p)
		return nil, fmt.Errorf("nbd: the payload of a write ended early: %w", err)
	}
	return p, nil
}

// decline answers a request that is not carried out, and passes over its payload; a payload of more than twice what is allowed is not
// worth that.
func (c *conn) decline(q request, result code, why string) error {
	if q.command == cmdWrite {
		if int64(q.length) > 2*int64(c.cfg.MaxPayload) {
			return fmt.Errorf("nbd: a write of %d bytes: %s", q.length, why)
		}
		if _, err := io.CopyN(io.Discard, c.in, int64(q.length)); err != nil {
			return fmt.Errorf("nbd: the payload of a write that was declined ended early: %w", err)
		}
	}
	return c.answerError(q, result, why)
}

func (c *conn) answerError(q request, result code, why string) error {
	if c.structured {
		return c.out.failed(q.cookie, result, why)
	}
	return c.out.simple(q.cookie, result, nil)
}
