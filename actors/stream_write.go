package actors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"railyard/rma"
)

// sender is what this end writes.
//
// Owner: stream.mu; pos and ringAt also stream.writing. Invariant: sent - freed <= window.
type sender struct {
	window uint64 // the other end's
	pos    uint64
	sent   uint64 // of the window, in total
	freed  uint64
	fin    bool
	over   error // the other end reads no more
	broken bool  // bytes in the middle were taken back
	asked  bool  // for a ring
	ring   rma.Key
	ringAt uint64
	cancel chan struct{} // closed by Close
}

const (
	// bulkFrom is the smallest write that is put into the other end's memory.
	bulkFrom = 64 << 10
	// maxPuts is how many puts of one write are under way.
	maxPuts = 8
	// streamGrace is how long a put may still take when its write's deadline has passed.
	streamGrace = time.Second
)

// ringIn: the other end has memory to put into.
func (o *sender) ringIn(key []byte) error {
	var k rma.Key
	if err := k.UnmarshalBinary(key); err != nil || !o.asked || !o.ring.IsZero() || k.Len() == 0 {
		return fmt.Errorf("%w: a ring that nobody asked for", ErrStreamProtocol)
	}
	o.ring = k
	return nil
}

// writeError is why nothing can be written. Called with mu held.
func (s *stream) writeError() error {
	switch o := &s.out; {
	case s.closed, o.fin:
		return net.ErrClosed
	case s.failed != nil:
		return s.failed
	case o.over != nil:
		return o.over
	case o.broken:
		return ErrStreamBroken
	default:
		return nil
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if len(b) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return 0, s.writeError()
	}
	for n < len(b) && err == nil {
		var k int
		if len(b)-n >= bulkFrom && s.hasRing() {
			k, err = s.writeBulk(b[n:])
		} else {
			k, err = s.writeData(b[n:])
		}
		n += k
	}
	return n, err
}

// hasRing asks the other end for one at the first time.
func (s *stream) hasRing() bool {
	s.mu.Lock()
	has, ask := !s.out.ring.IsZero(), !s.out.asked
	s.out.asked = true
	s.mu.Unlock()
	if ask {
		s.tell(&frame{kind: frameWantRing})
	}
	return has
}

// reserve waits for room, and takes it for want bytes or fewer.
func (s *stream) reserve(want int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := s.writeError(); err != nil {
			return 0, err
		}
		if isClosed(s.writeBy.wait()) {
			return 0, os.ErrDeadlineExceeded
		}
		o := &s.out
		if free := o.window - (o.sent - o.freed); free > streamOverhead {
			n := min(uint64(want), free-streamOverhead)
			o.sent += n + streamOverhead
			return int(n), nil
		}
		if err := s.pause(&s.writeBy); err != nil {
			return 0, err
		}
	}
}

// advance gives the position of the next n bytes.
func (s *stream) advance(n int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	pos := s.out.pos
	s.out.pos += uint64(n)
	return pos
}

// writeData sends the first bytes as a message.
func (s *stream) writeData(b []byte) (int, error) {
	n, err := s.reserve(min(len(b), maxData))
	if err != nil {
		return 0, err
	}
	if err := s.send(&frame{kind: frameData, pos: s.advance(n), body: b[:n]}); err != nil {
		s.breakOff()
		return 0, err
	}
	return n, nil
}

// breakOff: what has been numbered will not all arrive.
func (s *stream) breakOff() {
	s.mu.Lock()
	s.out.broken = true
	s.mu.Unlock()
}

// writeBulk puts b into the other end's ring, piece by piece, and waits until all of it is there: only then is b its owner's
// again.
func (s *stream) writeBulk(b []byte) (n int, err error) {
	var under []*rma.Op
	wait := func(keep int, why error) error {
		for len(under) > keep {
			op := under[0]
			under = under[1:]
			e := s.finishPut(op)
			if e != nil {
				if why == nil {
					why = e
				}
				s.breakOff()
			} else if s.intact() {
				n += len(op.Data())
			}
		}
		return why
	}
	for len(b) > 0 && err == nil {
		var k int
		if k, err = s.reserve(s.pieceOf(len(b))); err != nil {
			break
		}
		under = append(under, s.put(b[:k]))
		b = b[k:]
		err = wait(maxPuts-1, nil)
	}
	err = wait(0, err) // which counts
	return n, err
}

// pieceOf is how much one put takes: not beyond the ring's end.
func (s *stream) pieceOf(n int) int {
	size := s.out.ring.Len()
	return int(min(uint64(n), size/4, size-s.out.ringAt))
}

func (s *stream) put(b []byte) *rma.Op {
	key, at := s.out.ring, s.out.ringAt
	s.out.ringAt = (at + uint64(len(b))) % key.Len()
	landed := &frame{kind: frameLanded, pos: s.advance(len(b)), id: at, n: uint64(len(b))}
	return s.e.StartPut(key, at, b, rma.Notify(streamPID(s.target), landed))
}

func (s *stream) intact() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.out.broken
}

// finishPut waits for a put. It takes it back when the stream is closed, or a while after the deadline.
func (s *stream) finishPut(op *rma.Op) error {
	err := s.outcome(op)
	if errors.Is(err, rma.ErrRevoked) || errors.Is(err, rma.ErrUnknownRegion) {
		return ErrStreamClosed
	}
	return err
}

func (s *stream) outcome(op *rma.Op) error {
	late := s.writeBy.wait()
	for {
		select {
		case <-op.Done():
			return op.Err()
		case <-s.out.cancel:
			return s.takeBack(op, net.ErrClosed)
		case <-late:
		}
		t := time.NewTimer(streamGrace)
		select {
		case <-op.Done():
		case <-s.out.cancel:
		case <-t.C:
			t.Stop()
			return s.takeBack(op, os.ErrDeadlineExceeded)
		}
		t.Stop()
		late = nil
	}
}

func (s *stream) takeBack(op *rma.Op, why error) error {
	ctx, done := context.WithTimeout(context.Background(), s.node.cfg.CancelWait)
	defer done()
	_ = op.Cancel(ctx) // what became of it is in op
	<-op.Done()
	if op.Err() == nil {
		return nil
	}
	return why
}

// streamPID names the other end for rma.Notify.
type streamPID string

// GetAddress implements rma.PID; the notification goes with the put.
func (streamPID) GetAddress() string { return "" }

// GetId implements rma.PID.
func (p streamPID) GetId() string { return string(p) }
