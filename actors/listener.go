package actors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"railyard/endpoint"
	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
)

// Why there is no listener, or no stream; compare with errors.Is.
var (
	// ErrServiceInUse: one listener a service.
	ErrServiceInUse = errors.New("this node listens for that service already: close the other listener, or take another name")
	// ErrServiceName: a service is named by one to maxService bytes.
	ErrServiceName = errors.New("a service's name has 1 to " + strconv.Itoa(maxService) + " bytes")
	// ErrNoService: nobody listens there for that service.
	ErrNoService = errors.New("that node does not listen for this service: is its name right, and has it called Listen?")
	// ErrServiceBusy: the listener's queue, or the node's limit of streams, is full.
	ErrServiceBusy = errors.New("that node takes no more streams for this service now: try again later, or raise its Config.MaxStreams")
)

const (
	streamNetwork = "railyard"
	maxService    = 255
	// backlog is how many streams wait for Accept; more are refused.
	backlog = 128
	// leastStreamWindow is the smallest window of a stream.
	leastStreamWindow = 64 << 10
)

// streamAddr is one end of a stream, or a listener.
type streamAddr struct{ address, service string }

// Network implements net.Addr.
func (a streamAddr) Network() string { return streamNetwork }

// String is "address/service".
func (a streamAddr) String() string { return a.address + "/" + a.service }

func refusal(code uint64) error {
	switch code {
	case refusedNoService:
		return ErrNoService
	case refusedBusy:
		return ErrServiceBusy
	default:
		return fmt.Errorf("%w: the node refuses this version of streams (%d)", ErrStreamProtocol, code)
	}
}

// streams are a node's listeners and its ends of streams.
//
// Invariant: byID has at most Config.MaxStreams streams that peers have opened, and those that were dialed here.
type streams struct {
	node *Node

	mu sync.Mutex
	// Owner of the rest: mu.
	listeners map[string]*listener
	byID      map[uint64]*stream
	last      uint64
	accepted  map[uint64]bool
	over      bool
}

// listener is one service's.
type listener struct {
	node    *Node
	service string
	queue   chan *stream
	done    chan struct{}
	once    sync.Once

	mu sync.Mutex
	// claimed counts the streams in the queue, and those on their way into it. Owner: mu.
	claimed int
}

// Listen takes the streams that peers open to a service of this node, a name of 1 to 255 bytes. The connections are ordered
// streams of bytes over all rails: they survive every rail's death, have a window each, deadlines, and CloseWrite.
//
// Errors: ErrServiceInUse, ErrServiceName, rma.ErrShutdown.
func (n *Node) Listen(service string) (net.Listener, error) {
	if service == "" || len(service) > maxService {
		return nil, fmt.Errorf("listening for %q: %w", service, ErrServiceName)
	}
	t := &n.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return nil, fmt.Errorf("listening for %q: %w", service, rma.ErrShutdown)
	case t.listeners[service] != nil:
		return nil, fmt.Errorf("listening for %q: %w", service, ErrServiceInUse)
	}
	l := &listener{node: n, service: service, queue: make(chan *stream, backlog), done: make(chan struct{})}
	t.listeners[service] = l
	return l, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
	default:
		select {
		case s := <-l.queue:
			l.taken()
			return s, nil
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: streamNetwork, Addr: l.Addr(), Err: net.ErrClosed}
}

// Close implements net.Listener. Streams that nobody has accepted are closed.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		err = nil
		t := &l.node.streams
		t.mu.Lock()
		delete(t.listeners, l.service)
		t.mu.Unlock()
		l.mu.Lock()
		close(l.done)
		l.mu.Unlock()
		l.drain()
	})
	if err != nil {
		return &net.OpError{Op: "close", Net: streamNetwork, Addr: l.Addr(), Err: err}
	}
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return streamAddr{l.node.address, l.service} }

// Dial opens a stream to a service of the node at address, and connects to that node if need be.
//
// Errors are *net.OpError around ErrNoService, ErrServiceBusy, rma.ErrNoRoute, rma.ErrShutdown, rma.ErrEndpointDown,
// rma.ErrPeerRestarted, or ctx's.
func (n *Node) Dial(ctx context.Context, address, service string) (net.Conn, error) {
	s, err := n.dial(ctx, address, service)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = tooSlow{err}
		}
		return nil, &net.OpError{Op: "dial", Net: streamNetwork, Addr: streamAddr{address, service}, Err: err}
	}
	return s, nil
}

// tooSlow is a time-out for package net.
type tooSlow struct{ error }

// Timeout is how net.OpError knows.
func (tooSlow) Timeout() bool { return true }

// Unwrap gives the cause.
func (e tooSlow) Unwrap() error { return e.error }

func (n *Node) dial(ctx context.Context, address, service string) (*stream, error) {
	if service == "" || len(service) > maxService {
		return nil, ErrServiceName
	}
	e, err := n.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	s, err := n.streams.add(e, false)
	if err != nil {
		return nil, err
	}
	s.local, s.remote = streamAddr{n.address, strconv.FormatUint(s.id, 36)}, streamAddr{address, service}
	open := &frame{kind: frameOpen, pos: streamVersion, id: s.id, n: s.window}
	o := open.notify(listenPrefix + service)
	o.System = true
	if err = e.TrySend(o); err == nil {
		err = s.await(ctx)
	}
	if err != nil {
		_ = s.Close() // the error before matters
		return nil, err
	}
	return s, nil
}

// add makes an end of a stream.
func (t *streams) add(e *endpoint.Endpoint, accepted bool) (*stream, error) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return nil, rma.ErrShutdown
	}
	if accepted && len(t.accepted) >= t.node.cfg.MaxStreams {
		t.mu.Unlock()
		return nil, ErrServiceBusy
	}
	t.last++
	s := newStream(t.node, e, t.last)
	t.byID[s.id] = s
	if accepted {
		t.accepted[s.id] = true
	}
	t.mu.Unlock()
	if err := e.Err(); err != nil { // nobody tells of its end any more
		s.fail(err)
	}
	return s, nil
}

func (t *streams) remove(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, s.id)
	delete(t.accepted, s.id)
}

// down ends the streams of an endpoint that has ended.
func (t *streams) down(e *endpoint.Endpoint, cause error) {
	for _, s := range t.matching(func(s *stream) bool { return s.e == e }) {
		s.fail(fmt.Errorf("stream to %s: %w", s.remote, cause))
	}
}

// shutdown closes everything, and lets nothing new come.
func (t *streams) shutdown() {
	t.mu.Lock()
	t.over = true
	var open []*listener
	for _, l := range t.listeners {
		open = append(open, l)
	}
	t.mu.Unlock()
	for _, l := range open {
		_ = l.Close() // closed by its user meanwhile
	}
	for _, s := range t.matching(func(*stream) bool { return true }) {
		_ = s.Close() // closed by its user meanwhile
	}
}

func (t *streams) matching(match func(*stream) bool) []*stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*stream
	for _, s := range t.byID {
		if match(s) {
			list = append(list, s)
		}
	}
	return list
}

// isStream tells whether a target is a listener's or a stream's.
func isStream(target string) bool {
	return strings.HasPrefix(target, streamPrefix) || strings.HasPrefix(target, listenPrefix)
}

// deliver takes a frame. It runs in a connection's reader and waits for nothing.
func (t *streams) deliver(from *endpoint.Endpoint, d *session.Delivery) error {
	f, err := parseFrame(d.Payload)
	if err != nil {
		return err
	}
	if service, ok := strings.CutPrefix(d.Target.S, listenPrefix); ok {
		return t.open(from, service, &f)
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(d.Target.S, streamPrefix), 36, 64)
	if err != nil {
		return fmt.Errorf("%w: %q is no stream: %w", ErrStreamProtocol, d.Target.S, err)
	}
	t.mu.Lock()
	s := t.byID[id]
	t.mu.Unlock()
	switch {
	case s != nil && s.e == from:
		s.frameIn(&f)
	case f.kind == frameAccepted: // whoever dialed waits no more
		t.answer(from, f.id, &frame{kind: frameReset})
	}
	return nil // what comes for a stream that is closed here has been answered by its Closed
}

// open makes the stream that a peer dials.
func (t *streams) open(from *endpoint.Endpoint, service string, f *frame) error {
	if f.kind != frameOpen {
		return fmt.Errorf("%w: a frame of kind %d for a listener", ErrStreamProtocol, f.kind)
	}
	var code uint64
	t.mu.Lock()
	l := t.listeners[service]
	t.mu.Unlock()
	switch {
	case f.pos != streamVersion || f.n < leastStreamWindow:
		code = refusedVersion
	case l == nil:
		code = refusedNoService
	default:
		code = t.accept(from, l, f)
	}
	if code != 0 {
		t.answer(from, f.id, &frame{kind: frameRefused, n: code})
	}
	return nil
}

func (t *streams) accept(from *endpoint.Endpoint, l *listener, f *frame) (refused uint64) {
	s, err := t.add(from, true)
	if err != nil {
		return refusedBusy
	}
	s.local = streamAddr{t.node.address, l.service}
	s.remote = streamAddr{from.Address(), strconv.FormatUint(f.id, 36)}
	s.mu.Lock()
	s.join(f.id, f.n)
	s.mu.Unlock()
	if !l.claim() {
		t.remove(s)
		return refusedBusy
	}
	// The answer goes before the stream is anybody's: it is the first thing that the peer hears of it.
	s.tell(&frame{kind: frameAccepted, id: s.id, n: s.window})
	l.queue <- s
	if isClosed(l.done) {
		l.drain()
	}
	return 0
}

// claim takes a place in the queue: who has one puts a stream there without waiting.
func (l *listener) claim() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isClosed(l.done) || l.claimed == backlog {
		return false
	}
	l.claimed++
	return true
}

func (l *listener) taken() {
	l.mu.Lock()
	l.claimed--
	l.mu.Unlock()
}

// drain closes what nobody will accept.
func (l *listener) drain() {
	for {
		select {
		case s := <-l.queue:
			l.taken()
			_ = s.Close() // it is open: nobody else has it
		default:
			return
		}
	}
}

// answer sends a frame to an end of a stream that has no end here.
func (t *streams) answer(to *endpoint.Endpoint, id uint64, f *frame) {
	o := f.notify(streamPrefix + strconv.FormatUint(id, 36))
	o.System = true
	_ = to.TrySend(o) // where it cannot be sent the endpoint has ended, and the peer's end with it
}

// refuseFrame says that a peer's frame was no good.
func (n *Node) refuseFrame(from *endpoint.Endpoint, d *session.Delivery, cause error) {
	n.events.Publish(rail.Event{Kind: rail.MessageRefused, Peer: from.Address(),
		Cause: fmt.Errorf("frame for %q: %w", d.Target.String(), cause)})
}

// maxStreamWindow keeps a ring what one operation can name.
const maxStreamWindow = 1 << 30
