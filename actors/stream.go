package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"railyard/endpoint"
	"railyard/rma"
)

// What becomes of streams; compare with errors.Is. An endpoint's end is rma.ErrEndpointDown, rma.ErrPeerRestarted or
// rma.ErrShutdown.
var (
	// ErrStreamClosed: the other end reads no more.
	ErrStreamClosed = errors.New("the other end of the stream has been closed: open another one")
	// ErrStreamReset: the other end has given the stream up in the middle.
	ErrStreamReset = errors.New("the other end has reset the stream: what was under way is lost, open another one")
	// ErrStreamBroken: a write was taken back in its middle.
	ErrStreamBroken = errors.New("a write to this stream was taken back in its middle: open another one")
	// ErrStreamProtocol: the peer broke the rules of streams.
	ErrStreamProtocol = errors.New("the peer broke the rules of streams: bring both nodes to one version")
)

// streamOverhead is what each piece costs of a stream's window besides its bytes.
const streamOverhead = 64

// stream is one end of a stream of bytes. Small writes travel as messages; large ones are put straight into a ring of
// memory that the other end registers when it is asked for the first time, each with a notification behind it. Both name
// the position of their bytes, by which the reader has them in order.
//
// Invariant: what was sent and not given back is at most the other end's window, so neither queue nor ring is overrun.
//
// Owner: Node.streams, from Open until Close. All methods may be called from any goroutine.
type stream struct {
	node   *Node
	e      *endpoint.Endpoint
	id     uint64
	local  streamAddr
	remote streamAddr
	window uint64

	readBy, writeBy deadline
	// reading and writing are held by the one who reads or writes.
	reading, writing sync.Mutex

	mu sync.Mutex
	// Owner of the rest: mu.
	changed signal
	closed  bool
	failed  error // ends both directions
	out     sender
	in      receiver
	// opened: the other end is known; from then on target, to and typ do not change.
	opened bool
	target string
	to     *endpoint.Ref
	typ    *endpoint.Ref
}

var _ net.Conn = (*stream)(nil)

func newStream(n *Node, e *endpoint.Endpoint, id uint64) *stream {
	s := &stream{node: n, e: e, id: id, window: n.cfg.StreamWindow, readBy: newDeadline(), writeBy: newDeadline(),
		typ: endpoint.NewRef(streamType)}
	s.in = receiver{early: make(map[uint64]piece), fin: -1}
	s.out.cancel = make(chan struct{})
	return s
}

// join makes the stream's other end known. Called with mu held.
func (s *stream) join(id, window uint64) {
	s.opened, s.target, s.out.window = true, streamPrefix+strconv.FormatUint(id, 36), window
	s.to = endpoint.NewRefOnce(s.target)
	s.changed.broadcast()
}

// send sends a frame to the other end. It waits for nothing. mu is not held.
func (s *stream) send(f *frame) error {
	o := takeOutgoing()
	defer o.free()
	o.payload = f.append(o.payload[:0])
	o.Payload, o.Target, o.Type, o.System = o.payload, s.to, s.typ, true
	return s.e.TrySend(&o.Outgoing)
}

// tell sends a frame that only helps: where it cannot be sent the endpoint has ended, which is told otherwise.
func (s *stream) tell(f *frame) { _ = s.send(f) }

// Read implements net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.opError("read", err)
	}
	return n, err
}

// Write implements net.Conn.
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.write(b)
	if err != nil {
		err = s.opError("write", err)
	}
	return n, err
}

func (s *stream) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: streamNetwork, Source: s.local, Addr: s.remote, Err: err}
}

// CloseWrite ends what this end writes: the other one reads io.EOF behind it. Reading goes on.
func (s *stream) CloseWrite() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	err := s.writeError()
	pos := s.out.pos
	if err == nil {
		s.out.fin = true
	}
	s.mu.Unlock()
	if err != nil {
		return s.opError("close", err)
	}
	s.tell(&frame{kind: frameFin, pos: pos})
	return nil
}

// Close implements net.Conn. What was written before still arrives. Whoever writes or reads returns with net.ErrClosed.
func (s *stream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return s.opError("close", net.ErrClosed)
	}
	s.closed = true
	close(s.out.cancel)
	s.changed.broadcast()
	region := s.in.region
	s.mu.Unlock()
	if region != nil {
		_ = region.Revoke() // what it says was true before as well
	}
	s.node.streams.remove(s)
	if s.writing.TryLock() {
		s.part()
	} else if !s.node.track(func() { s.writing.Lock(); s.part() }) {
		return nil // the node has ended, and with it the peer's end
	}
	return nil
}

// part tells the other end. It is called once, with writing held.
func (s *stream) part() {
	defer s.writing.Unlock()
	s.mu.Lock()
	opened, over := s.opened, s.failed != nil
	end := &frame{kind: frameFin, pos: s.out.pos}
	if s.out.broken {
		end.kind = frameReset
	}
	s.mu.Unlock()
	if opened && !over {
		s.tell(end)
		s.tell(&frame{kind: frameClosed})
	}
}

// fail ends both directions at once; what has come can still be read.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
		s.changed.broadcast()
	}
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return s.local }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return s.remote }

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error { return s.setDeadline(&s.readBy, t) }

// SetWriteDeadline implements net.Conn. A deadline that passes while bytes are under way, and no rail answers for
// a second more, breaks the stream: nobody can say what of them has arrived.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.setDeadline(&s.writeBy, t) }

func (s *stream) setDeadline(d *deadline, t time.Time) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return s.opError("set", net.ErrClosed)
	}
	d.set(t)
	return nil
}

// await waits until the other end is known.
func (s *stream) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		opened, failed, changed := s.opened, s.failed, s.changed.wait()
		s.mu.Unlock()
		switch {
		case failed != nil:
			return failed
		case opened:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("no answer from the node: %w", ctx.Err())
		}
	}
}

// pause waits for a change, or until the deadline has passed. It is called with mu held, and gives it back meanwhile.
func (s *stream) pause(d *deadline) error {
	changed := s.changed.wait()
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-d.wait():
		return os.ErrDeadlineExceeded
	}
}

// frameIn takes a frame of the other end's. It waits for nothing.
func (s *stream) frameIn(f *frame) {
	if f.kind == frameWantRing {
		s.lendRing()
		return
	}
	s.mu.Lock()
	err := s.apply(f)
	s.changed.broadcast()
	told := s.opened && !s.closed
	s.mu.Unlock()
	if err != nil {
		s.fail(err)
		if told {
			s.tell(&frame{kind: frameReset})
		}
	}
}

// apply is frameIn with mu held; an error says what the peer did wrong.
func (s *stream) apply(f *frame) error {
	switch f.kind {
	case frameAccepted:
		if s.opened {
			return fmt.Errorf("%w: opened twice", ErrStreamProtocol)
		}
		s.join(f.id, f.n)
	case frameRefused:
		if !s.opened && s.failed == nil {
			s.failed = refusal(f.n)
		}
	case frameData:
		return s.in.arrive(f.pos, piece{data: append([]byte(nil), f.body...), size: uint64(len(f.body))}, s.window)
	case frameLanded:
		if f.id > uint64(len(s.in.ring)) || f.n > uint64(len(s.in.ring))-f.id {
			return fmt.Errorf("%w: %d bytes at %d of a ring of %d", ErrStreamProtocol, f.n, f.id, len(s.in.ring))
		}
		return s.in.arrive(f.pos, piece{data: s.in.ring[f.id : f.id+f.n], size: f.n}, s.window)
	case frameRing:
		return s.out.ringIn(f.body)
	case frameCredit:
		if f.n > s.out.sent {
			return fmt.Errorf("%w: %d bytes given back of %d", ErrStreamProtocol, f.n, s.out.sent)
		}
		s.out.freed = max(s.out.freed, f.n)
	case frameFin:
		return s.in.end(f.pos)
	case frameClosed:
		s.out.over = ErrStreamClosed
	case frameReset:
		if s.failed == nil {
			s.failed = ErrStreamReset
		}
	default:
		return fmt.Errorf("%w: a frame of kind %d", ErrStreamProtocol, f.kind)
	}
	return nil
}

// lendRing registers memory that the other end puts into. Where that fails large writes travel as messages.
func (s *stream) lendRing() {
	s.mu.Lock()
	if s.closed || !s.opened || s.in.region != nil {
		s.mu.Unlock()
		return
	}
	ring := make([]byte, s.window)
	region, err := s.node.Register(ring, rma.RemoteWrite)
	if err == nil {
		s.in.ring, s.in.region = ring, region
	}
	s.mu.Unlock()
	if err != nil {
		return
	}
	key, err := region.Key().MarshalBinary()
	if err == nil {
		s.tell(&frame{kind: frameRing, body: key})
	}
}
