package nbd

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errFenced ends a connection that a newer one has replaced.
var errFenced = errors.New("nbd: a newer connection has written to this export")

// hub is where the connections of one export meet: who may write, and which write has to wait for which.
//
// Owner: the server. Nothing is called while mu is held.
//
// Invariant: of two spans that overlap, the one that was entered first has been left before enter returns for the other.
type hub struct {
	export Export

	mu     sync.Mutex
	conns  map[uint64]*conn // Owner: mu; by generation
	writer uint64           // Owner: mu; the generation of the newest connection that has written; only where writes are not shared
	spans  []*span          // Owner: mu; those entered and not left: at most Requests for each connection
}

// span is a range that a write has, or waits for.
type span struct {
	from, to int64
	left     chan struct{} // Owner: hub.mu; made by the first that waits for it, closed when it is left
}

func (h *hub) join(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[c.generation] = c
}

func (h *hub) part(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c.generation)
}

// enter waits until no earlier write overlaps [from, to). It fails where the connection was replaced, and where ctx ends first: then the
// write was never let in.
func (h *hub) enter(ctx context.Context, c *conn, from, to int64) (*span, error) {
	older, err := h.claim(c)
	if err != nil {
		return nil, err
	}
	for _, o := range older {
		o.kill(errFenced)
	}
	s := &span{from: from, to: to}
	for _, left := range h.line(s) {
		select {
		case <-left:
		case <-ctx.Done():
			h.leave(s)
			return nil, context.Cause(ctx)
		}
	}
	if err := h.allowed(c); err != nil { // it may have been replaced while it waited
		h.leave(s)
		return nil, err
	}
	return s, nil
}

// claim makes the connection the one that writes, and gives those that have to end for it.
func (h *hub) claim(c *conn) ([]*conn, error) {
	if h.export.MultiConn {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.generation < h.writer {
		return nil, errFenced
	}
	c.wrote = true
	if c.generation == h.writer {
		return nil, nil
	}
	h.writer = c.generation
	var older []*conn
	for _, o := range h.conns {
		if o.wrote && o != c {
			older = append(older, o)
		}
	}
	return older, nil
}

func (h *hub) allowed(c *conn) error {
	if h.export.MultiConn {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.generation < h.writer {
		return errFenced
	}
	return nil
}

// line puts a span behind those that are there, and gives what it has to wait for.
func (h *hub) line(s *span) (wait []chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.spans {
		if o.from < s.to && s.from < o.to {
			if o.left == nil {
				o.left = make(chan struct{})
			}
			wait = append(wait, o.left)
		}
	}
	h.spans = append(h.spans, s)
	return wait
}

func (h *hub) leave(s *span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.spans, s)
	last := len(h.spans) - 1
	h.spans[i], h.spans[last] = h.spans[last], nil
	h.spans = h.spans[:last]
	if s.left != nil {
		close(s.left)
	}
}
