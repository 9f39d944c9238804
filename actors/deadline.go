package actors

import (
	"sync"
	"time"
)

// deadline is one direction's of a stream.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	// passed is closed when the deadline has passed; a later deadline replaces it.
	passed chan struct{}
}

func newDeadline() deadline { return deadline{passed: make(chan struct{})} }

// set moves the deadline; the zero time: never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	passed := isClosed(d.passed)
	if passed {
		d.passed = make(chan struct{})
	}
	ch := d.passed
	if t.IsZero() {
		return
	}
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.passed == ch && !isClosed(ch) && !time.Now().Before(t) {
				close(ch)
			}
		})
		return
	}
	close(ch)
}

// wait gives what is closed when the deadline passes.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// signal wakes all who wait for a change. Owner: the lock of what changes.
type signal struct{ ch chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
