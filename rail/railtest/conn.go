package railtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"railyard/rail"
	"railyard/rma"
)

// The two bugs of a link that a connection can see.
var (
	errNoRoom        = errors.New("pipe: the link's plan has no memory to read into")
	errNothingFilled = errors.New("pipe: the link's plan has no bytes to write")
	errRunning       = errors.New("pipe: after Run only the link reads and writes")
)

// Conn is one end of a connection of a Network: see rail.Conn for its contract.
type Conn struct {
	local, remote string
	pair          *pair
	in, out       *flow

	kick chan struct{}
	stop chan struct{} // closed when the link is to be called no more
	over atomic.Bool   // likewise; read before each call of the link

	link rail.Link
	lost func(error)

	scatter rma.Scatter // Owner: the reader
	gather  rma.Gather  // Owner: the holder of the write token
	// writing is held while the write half is in use, so that Close can wait for a WriteNow in progress.
	writing sync.Mutex

	mu       sync.Mutex
	running  bool
	killed   bool
	cause    error // the write half's failure; the reader reports it
	deadline time.Time
	moved    chan struct{} // closed and replaced when the deadline changes

	joined sync.WaitGroup
}

var _ rail.Conn = (*Conn)(nil)

// newPair makes a connection's two ends. near is at the cable's first end unless flipped.
func newPair(c *cable, buffer int, flipped bool) (near, far *Conn) {
	p := &pair{flows: [2]*flow{newFlow(c, 0, buffer), newFlow(c, 1, buffer)}}
	p.flows[0].peer, p.flows[1].peer = p.flows[1], p.flows[0]
	forth, back := p.flows[0], p.flows[1]
	if flipped {
		forth, back = back, forth
	}
	c.mu.Lock()
	c.pairs = append(c.pairs, p)
	c.mu.Unlock()
	return newConn(p, back, forth), newConn(p, forth, back)
}

func newConn(p *pair, in, out *flow) *Conn {
	return &Conn{
		pair: p, in: in, out: out,
		kick: make(chan struct{}, 1), stop: make(chan struct{}), moved: make(chan struct{}),
	}
}

// LocalAddr implements rail.Conn.
func (c *Conn) LocalAddr() string { return c.local }

// RemoteAddr implements rail.Conn.
func (c *Conn) RemoteAddr() string { return c.remote }

// Read blocks until something has arrived, the deadline, or the end.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		if c.isRunning() {
			return 0, errRunning
		}
		n, err := c.in.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, c.dress("read", err)
		}
		if err := c.await(c.in.readable); err != nil {
			return 0, c.dress("read", err)
		}
	}
}

// Write blocks until all of p has been taken, the deadline, or the end.
func (c *Conn) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		if c.isRunning() {
			return done, errRunning
		}
		n, err := c.out.put(p[done:])
		done += n
		if err == nil && done < len(p) {
			err = c.await(c.out.writable)
		}
		if err != nil {
			return done, c.dress("write", err)
		}
	}
	return done, nil
}

// SetDeadline holds for calls in progress as well.
func (c *Conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return errRunning
	}
	c.deadline = t
	close(c.moved)
	c.moved = make(chan struct{})
	return nil
}

// await waits for a signal in the handshake's life.
func (c *Conn) await(ready chan struct{}) error {
	c.mu.Lock()
	deadline, moved := c.deadline, c.moved
	c.mu.Unlock()
	var late <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ready:
	case <-moved:
	case <-late:
		return os.ErrDeadlineExceeded
	case <-c.stop:
		return net.ErrClosed
	}
	return nil
}

func (c *Conn) isRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *Conn) dress(call string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pipe: %s, %s to %s: %w", call, c.local, c.remote, err)
}

// Run starts the reader and the writer, or nothing if the connection has been killed.
func (c *Conn) Run(link rail.Link, lost func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return
	}
	if c.running {
		panic("pipe: Run was called twice on one connection")
	}
	c.running = true
	c.link, c.lost = link, lost
	c.joined.Add(2)
	go c.readLoop()
	go c.writeLoop()
}

// Kick wakes the writer goroutine.
func (c *Conn) Kick() { signal(c.kick) }

// Kill ends this end at once; the peer learns of it as fast as the wire lets it.
func (c *Conn) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return
	}
	c.killed = true
	c.finish()
}

// Close kills and waits for the goroutines and for a WriteNow in progress.
func (c *Conn) Close() {
	c.Kill()
	c.joined.Wait()
	c.writing.Lock()
	defer c.writing.Unlock()
}

// Unacked counts the bytes that have not arrived at the peer's end.
func (c *Conn) Unacked() (int, bool) { return c.out.inFlight(), true }

// finish forbids every further call of the link and ends this end of the wire. The caller holds mu.
func (c *Conn) finish() {
	if c.over.Swap(true) {
		return
	}
	close(c.stop)
	cable := c.in.cable
	cable.mu.Lock()
	defer cable.mu.Unlock()
	c.in.deaf = true
	c.in.fail(net.ErrClosed, nil)
	c.out.close()
	if c.pair.gone++; c.pair.gone == len(c.pair.flows) {
		cable.forget(c.pair)
	}
}
