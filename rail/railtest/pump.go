package railtest

import (
	"runtime/debug"

	"railyard/rail"
	"railyard/rma"
)

// state is what a loop does after one bracket of the link.
type state uint8

const (
	more state = iota
	starved
	ended
)

// readLoop is the reader goroutine; it alone reports the stream's end.
func (c *Conn) readLoop() {
	defer c.joined.Done()
	err := c.readAll()
	c.mu.Lock()
	if c.cause != nil {
		err = c.cause
	}
	c.finish()
	killed := c.killed
	c.mu.Unlock()
	if !killed && err != nil {
		c.lost(err)
	}
}

// readAll reads until the stream ends. nil: the loop was told to stop.
func (c *Conn) readAll() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &rail.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	for !c.over.Load() {
		s, err := c.readOnce()
		switch s {
		case more:
		case starved:
			select {
			case <-c.in.readable:
			case <-c.stop:
			}
		case ended:
			return err
		}
	}
	return nil
}

// readOnce is one bracket Want, copy, Got.
func (c *Conn) readOnce() (state, error) {
	s := &c.scatter
	*s = rma.Scatter{}
	if err := c.link.Want(s); err != nil {
		return ended, err
	}
	room := len(s.First)+len(s.Then) > 0
	leased := room && s.Acquire()
	n := 0
	var failed error
	if leased {
		n, failed = c.take(s)
	}
	if err := c.link.Got(s, n); err != nil {
		return ended, err
	}
	switch {
	case !room:
		return ended, errNoRoom
	case failed != nil:
		return ended, c.dress("stream", failed)
	case leased && n == 0:
		return starved, nil
	default:
		return more, nil
	}
}

// take reads into a leased plan, and gives the lease back whatever happens.
func (c *Conn) take(s *rma.Scatter) (int, error) {
	defer s.Release()
	return c.in.take(s.First, s.Then)
}

// writeLoop is the writer goroutine.
func (c *Conn) writeLoop() {
	defer c.joined.Done()
	for {
		select {
		case <-c.stop:
			return
		case <-c.kick:
		}
		for c.writeAll() == starved {
			select {
			case <-c.stop:
				return
			case <-c.out.writable:
			}
		}
	}
}

// WriteNow writes in the caller's goroutine until the link has nothing more or the network is full.
func (c *Conn) WriteNow() {
	if c.writeAll() == starved {
		c.Kick()
	}
}

// writeAll writes until the token has been given back or the stream failed (ended), or there is no room (starved).
func (c *Conn) writeAll() state {
	c.writing.Lock()
	defer c.writing.Unlock()
	defer func() {
		if v := recover(); v != nil {
			c.gather.Release()
			c.failWrite(&rail.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	if c.link == nil {
		return ended
	}
	for !c.over.Load() {
		if !c.link.Fill(&c.gather) {
			return ended
		}
		if s := c.writeOnce(); s != more {
			return s
		}
	}
	return ended
}

// writeOnce is the rest of a bracket that Fill has opened.
func (c *Conn) writeOnce() state {
	g := &c.gather
	size := g.Size()
	g.Acquire()
	n, failed := c.out.put(g.Bufs...)
	g.Release()
	err := c.link.Wrote(g, n)
	g.Reset()
	switch {
	case err != nil:
		c.failWrite(err)
	case size == 0:
		c.failWrite(errNothingFilled)
	case failed != nil:
		// The reader finds the same end behind what has arrived, and reports it.
	case n < size:
		return starved
	default:
		return more
	}
	return ended
}

// failWrite ends the connection from the write half; the reader wakes and reports it.
func (c *Conn) failWrite(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = err
	}
	c.finish()
}
