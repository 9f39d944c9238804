package cable

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is one way through the cable.
type Direction uint8

// The directions: toward the target that the cable forwards to, and back.
const (
	ToTarget Direction = iota
	ToSource
)

func (d Direction) String() string {
	if d == ToTarget {
		return "to-target"
	}
	return "to-source"
}

func (d Direction) opposite() Direction { return d ^ 1 }

// Limits of one cable.
const (
	maxLinks   = 64        // connections at a time, those that hang in a black hole included
	chunk      = 256 << 10 // bytes that a pump takes at a time
	maxDelayed = 4 << 20   // bytes that one direction of one connection keeps under Delay
	kernelRoom = 512 << 10 // socket buffers, so that a cable does not swallow seconds of traffic
)

// dialLimit bounds the dial to the target.
const dialLimit = 2 * time.Second

// Editor rewrites the bytes of one connection on their way to the target. It may hold bytes back until later ones
// have come; it belongs to one pump and needs no lock.
type Editor interface {
	// Edit appends to dst what is to be forwarded now that src has been read.
	Edit(dst, src []byte) []byte
}

// Config of a cable.
type Config struct {
	Address string        // where to listen, host:port; port 0 takes a free one
	Target  string        // where to forward to; may be set later with SetTarget
	Edit    func() Editor // makes the editor of a new connection; nil: bytes pass as they are
}

// Cable is one virtual cable. All methods are safe from any goroutine.
type Cable struct {
	config   Config
	listener net.Listener
	carried  [2]atomic.Uint64
	work     sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond // a gate may have opened, or something ended
	// Owner: mu, for all that follows.
	target  string
	held    [2]bool
	refuse  bool
	rate    float64 // bytes per second and direction; 0: no limit
	delay   time.Duration
	links   map[*link]struct{}
	closed  bool
	healing uint64 // counts heals, so that a flap knows that it has been overruled
}

// ErrClosed says that the cable has been closed.
var ErrClosed = errors.New("cable is closed; make a new one")

// Listen starts a cable.
func Listen(config Config) (*Cable, error) {
	// A cable is plain TCP: Go's listeners would speak MPTCP otherwise.
	lc := net.ListenConfig{Control: smallBuffers}
	lc.SetMultipathTCP(false)
	listener, err := lc.Listen(context.Background(), "tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("cable cannot listen on %s: %w", config.Address, err)
	}
	c := &Cable{config: config, listener: listener, target: config.Target, links: map[*link]struct{}{}}
	c.change = sync.NewCond(&c.mu)
	c.work.Go(c.accept)
	return c, nil
}

// Addr is the address that the cable listens on.
func (c *Cable) Addr() string { return c.listener.Addr().String() }

// SetTarget says where new connections are forwarded to.
func (c *Cable) SetTarget(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.target = address
}

// Carried gives the bytes handed over since the start, in each direction.
func (c *Cable) Carried() (toTarget, toSource uint64) {
	return c.carried[ToTarget].Load(), c.carried[ToSource].Load()
}

// Connections gives the number of connections, those that hang included.
func (c *Cable) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.links)
}

// InFlight gives the bytes that one side has handed to the cable and the other has not got: in the cable, in the
// sockets' receive queues, and unacknowledged in their send queues.
func (c *Cable) InFlight() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlightLocked()
}

func (c *Cable) inFlightLocked() uint64 {
	var sum uint64
	for l := range c.links {
		sum += l.inFlight()
	}
	return sum
}

// Close cuts everything and joins every goroutine.
func (c *Cable) Close() error {
	c.mu.Lock()
	c.closed = true
	for l := range c.links {
		l.killLocked()
	}
	c.change.Broadcast()
	c.mu.Unlock()
	err := c.listener.Close()
	c.work.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("cable at %s did not close its port: %w", c.Addr(), err)
	}
	return nil
}

// accept takes connections until the listener is closed. A black hole accepts too, as a kernel's backlog
// does; the connection then hangs.
func (c *Cable) accept() {
	for {
		conn, err := c.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: the next try may do
			continue
		}
		c.open(conn.(*net.TCPConn))
	}
}

func (c *Cable) open(near *net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.refuse || len(c.links) >= maxLinks {
		reset(near)
		return
	}
	l := &link{cable: c, near: near, over: make(chan struct{})}
	c.links[l] = struct{}{}
	c.work.Go(l.run)
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // a reset instead of an orderly end
	_ = conn.Close()
}
