package actors

import (
	"fmt"
	"io"
	"net"
	"os"

	"railyard/rma"
)

// receiver is what has come and is not read.
//
// Owner: stream.mu. Invariant: got - given never exceeds the window, which bounds queue and early.
type receiver struct {
	queue  []piece // in order, the first at the position that is read next
	early  map[uint64]piece
	next   uint64 // the position behind the queue
	fin    int64  // where the stream ends; -1: not known
	got    uint64 // of the window, in total
	read   uint64
	given  uint64
	ring   []byte
	region *rma.Region
}

// piece is a part of the stream; size is its length as it came.
type piece struct {
	data []byte
	size uint64
}

func (p piece) cost() uint64 { return p.size + streamOverhead }

// arrive puts a piece where it belongs.
func (r *receiver) arrive(pos uint64, p piece, window uint64) error {
	r.got += p.cost()
	_, twice := r.early[pos]
	end := pos + p.size
	switch {
	case r.got-r.given > window:
		return fmt.Errorf("%w: %d bytes are under way, over the window of %d", ErrStreamProtocol, r.got-r.given, window)
	case pos < r.next || twice || p.size == 0 || end < pos || (r.fin >= 0 && end > uint64(r.fin)):
		return fmt.Errorf("%w: %d bytes at %d", ErrStreamProtocol, p.size, pos)
	case pos > r.next:
		r.early[pos] = p
		return nil
	}
	for ok := true; ok; {
		r.push(p)
		if p, ok = r.early[r.next]; ok {
			delete(r.early, r.next)
		}
	}
	return nil
}

func (r *receiver) push(p piece) {
	r.queue = append(r.queue, p)
	r.next += p.size
}

// end: the other end writes no more.
func (r *receiver) end(pos uint64) error {
	if r.fin >= 0 || pos < r.next || pos > 1<<62 {
		return fmt.Errorf("%w: an end at %d", ErrStreamProtocol, pos)
	}
	r.fin = int64(pos)
	return nil
}

// read waits for bytes, an end, or the deadline.
func (s *stream) read(b []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		r := &s.in
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case isClosed(s.readBy.wait()):
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(r.queue) > 0:
			return s.take(b), nil
		case r.fin >= 0 && r.next == uint64(r.fin):
			return 0, io.EOF
		case s.failed != nil:
			return 0, s.failed
		}
		if err := s.pause(&s.readBy); err != nil {
			return 0, err
		}
	}
}

// take copies what is there, and gives its room back. It is called with both locks held, and copies without mu: nobody
// else takes pieces.
func (s *stream) take(b []byte) int {
	r := &s.in
	n := 0
	for n < len(b) && len(r.queue) > 0 {
		p := r.queue[0]
		s.mu.Unlock()
		k := copy(b[n:], p.data)
		s.mu.Lock()
		n += k
		if p.data = p.data[k:]; len(p.data) > 0 {
			r.queue[0] = p
			break
		}
		r.read += p.cost()
		r.queue[0] = piece{}
		r.queue = r.queue[1:]
	}
	if len(r.queue) == 0 {
		r.queue = nil
	}
	if r.read-r.given >= s.window/4 && s.opened {
		r.given = r.read
		credit := frame{kind: frameCredit, n: r.given}
		s.mu.Unlock()
		s.tell(&credit)
		s.mu.Lock()
	}
	return n
}
