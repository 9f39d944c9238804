package railtest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"railyard/rail"
)

// KindPipe is the name of the kind that a Network makes.
const KindPipe = "pipe"

// Bounds of a network.
const (
	// DefaultBuffer is how many bytes one direction of a connection holds at most, where Buffer says nothing else.
	DefaultBuffer = 256 << 10
	// backlog is how many connections wait for Accept; more are refused.
	backlog = 128
)

// Network is a set of hosts, the cables between them and the listeners on them. It is safe from any goroutine.
type Network struct {
	buffer int

	mu        sync.Mutex
	listeners map[string]*listener
	cables    map[[2]string]*cable
	lastPort  int
}

// Option changes a network that NewNetwork makes.
type Option func(*Network)

// Buffer sets how many bytes one direction of a connection holds; at least 1.
func Buffer(bytes int) Option { return func(n *Network) { n.buffer = max(bytes, 1) } }

// NewNetwork returns a network without faults.
func NewNetwork(opts ...Option) *Network {
	n := &Network{
		buffer:    DefaultBuffer,
		listeners: make(map[string]*listener),
		cables:    make(map[[2]string]*cable),
		lastPort:  40000,
	}
	for _, opt := range opts {
		opt(n)
	}
	return n
}

// Kind gives the network's kind. A name is any string; what follows its last colon is a port, and the port 0
// is replaced by a free one. Hosts, between which cables run, are names without their ports.
func (n *Network) Kind() rail.Kind { return kind{n} }

// Wire gives the cable between two hosts or addresses, seen from a: what is Forth goes from a to b.
func (n *Network) Wire(a, b string) Wire {
	c, flipped := n.cable(a, b)
	return Wire{cable: c, flipped: flipped}
}

// cable gives the one cable of two hosts; flipped says that its own first end is the second host.
func (n *Network) cable(a, b string) (c *cable, flipped bool) {
	ends := [2]string{host(a), host(b)}
	if ends[0] > ends[1] {
		ends[0], ends[1], flipped = ends[1], ends[0], true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c = n.cables[ends]
	if c == nil {
		c = &cable{mended: make(chan struct{})}
		n.cables[ends] = c
	}
	return c, flipped
}

// host is the name without its port.
func host(address string) string {
	if colon := strings.LastIndexByte(address, ':'); colon >= 0 {
		if _, err := strconv.ParseUint(address[colon+1:], 10, 16); err == nil {
			return address[:colon]
		}
	}
	return address
}

type kind struct{ n *Network }

func (k kind) Name() string { return KindPipe }

// Dial waits while the cable is stalled, fails at once where it is cut or nobody listens, and takes the round trip
// that Delay gives.
func (k kind) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	c, flipped := k.n.cable(local, remote)
	if err := c.passable(ctx); err != nil {
		return nil, fmt.Errorf("pipe: cannot reach %s from %s: %w", remote, local, err)
	}
	k.n.mu.Lock()
	l := k.n.listeners[remote]
	k.n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("pipe: nobody listens at %s (dialed from %s): %w", remote, local, syscall.ECONNREFUSED)
	}
	near, far := newPair(c, k.n.buffer, flipped)
	near.local, near.remote = local, remote
	far.local, far.remote = remote, local
	if err := l.offer(far); err != nil {
		near.Close()
		far.Close()
		return nil, fmt.Errorf("pipe: %s took no connection from %s: %w", remote, local, err)
	}
	return near, nil
}

// Listen takes a name that nobody else listens at.
func (k kind) Listen(_ context.Context, b rail.Binding) (rail.Listener, error) {
	n := k.n
	n.mu.Lock()
	defer n.mu.Unlock()
	address := b.Address
	if port := strings.TrimSuffix(address, ":0"); port != address {
		n.lastPort++
		address = port + ":" + strconv.Itoa(n.lastPort)
	}
	if n.listeners[address] != nil {
		return nil, fmt.Errorf("pipe: %s is in use by another listener of this network: %w",
			address, syscall.EADDRINUSE)
	}
	l := &listener{n: n, address: address, queue: make(chan *Conn, backlog), closed: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

type listener struct {
	n       *Network
	address string
	queue   chan *Conn

	mu     sync.Mutex
	ended  bool
	closed chan struct{}
}

// offer puts a connection in the queue.
func (l *listener) offer(c *Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return syscall.ECONNREFUSED
	}
	select {
	case l.queue <- c:
		return nil
	default:
		return fmt.Errorf("%d connections wait for Accept already: %w", backlog, syscall.ECONNREFUSED)
	}
}

func (l *listener) Accept() (rail.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, fmt.Errorf("pipe: accept at %s: %w", l.address, net.ErrClosed)
	}
}

func (l *listener) Addr() string { return l.address }

// Close frees the name and resets who was never accepted.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	close(l.closed)
	l.n.mu.Lock()
	delete(l.n.listeners, l.address)
	l.n.mu.Unlock()
	for {
		select {
		case c := <-l.queue:
			c.Kill()
		default:
			return nil
		}
	}
}

// sleep waits for d within ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
