package main

import (
	"errors"
	"time"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
)

// carrier is the transport of one generation at one end: a socket, a writer and a reader, each of which opens one
// bracket at a time and lets the world go on inside it.
type carrier struct {
	r      *railEnd
	e      *End
	gen    *session.Generation
	sock   *sock
	dead   bool     // killed or lost: its loops begin nothing new
	gone   bool     // its queue pair is destroyed, and the session knows
	spent  []uint32 // keys that must not be given again while it lives
	mailAt time.Duration

	out     rma.Gather
	writing bool // the writer's loop has the token
	sc      rma.Scatter

	pulse   *rail.Health
	health  healthCheck
	suspect bool
}

func carrierOf(g *session.Generation) *carrier { return g.User.(*carrier) }

// mail runs fn in the order in which it was asked for, as an actor's mailbox does. A transport that is gone drops it.
func (c *carrier) mail(tag string, fn func()) {
	at := max(c.e.w.now+c.e.node.turn(), c.mailAt)
	c.mailAt = at
	c.e.node.after(at-c.e.w.now, tag, func() {
		if !c.dead {
			fn()
		}
	})
}

// wake hands the write token to the writer.
func (c *carrier) wake(inline bool) {
	if c.dead {
		return
	}
	if c.writing {
		c.e.w.violate("%s gave the write token of rail %d away twice", c.e, c.r.id)
	}
	c.writing = true
	if inline {
		c.fill()
		return
	}
	c.e.node.soon("writer", c.fill)
}

// fill opens the write bracket.
func (c *carrier) fill() {
	if c.dead {
		return
	}
	more := c.gen.Fill(c.e.now(), &c.out)
	if !more {
		c.writing = false
		c.e.pump()
		return
	}
	c.e.pump()
	c.e.plannedPlaces(c.out.Places)
	if c.out.Size() == 0 {
		c.e.w.violate("%s plans to write nothing on rail %d", c.e, c.r.id)
	}
	c.e.node.soon("write", c.write)
}

// write is the socket call: it happens at one instant somewhere inside the bracket.
func (c *carrier) write() {
	if c.gen.IsQuiet() {
		c.e.w.violate("%s: rail %d generation %d is quiet inside a write bracket", c.e, c.r.id, c.gen.ID)
	}
	c.out.Acquire()
	for _, b := range c.out.Bufs {
		if len(b) >= 32 && isAll(b, poison) {
			c.e.w.violate("%s writes %d bytes of a source that was given back, on rail %d", c.e, len(b), c.r.id)
		}
	}
	var n int
	var err error
	if c.sock.qp != nil {
		n, err = c.sock.qp.post(&c.out)
	} else {
		n, err = c.sock.write(c.out.Bufs)
	}
	c.out.Release()
	c.e.node.soon("wrote", func() { c.wrote(n, err) })
}

// wrote closes the bracket.
func (c *carrier) wrote(n int, err error) {
	c.e.w.Count.Bytes += uint64(n)
	refused := c.gen.Wrote(c.e.now(), &c.out, n)
	c.e.pump()
	switch {
	case c.dead:
	case refused != nil:
		c.e.w.violate("%s: Wrote on rail %d: %v", c.e, c.r.id, refused)
	case err != nil:
		c.lost(err)
	case n == 0:
		c.sock.writable = func() { c.e.node.soon("room", c.fill) }
		if c.sock.err != nil || !c.sock.out.full() {
			c.sock.wake(&c.sock.writable)
		}
	default:
		c.e.node.soon("write-on", c.fill)
	}
}

// want opens the read bracket.
func (c *carrier) want() {
	if c.dead {
		return
	}
	err := c.gen.Want(c.e.now(), &c.sc)
	c.e.pump()
	if err != nil {
		c.lost(err)
		return
	}
	c.e.node.soon("read", c.read)
}

// read is the socket call.
func (c *carrier) read() {
	if c.gen.IsQuiet() {
		c.e.w.violate("%s: rail %d generation %d is quiet inside a read bracket", c.e, c.r.id, c.gen.ID)
	}
	w := c.e.w
	limit := 1 << 30
	if w.chance(0.2) {
		limit = w.number(1, 5000)
	}
	n, err, again := 0, error(nil), false
	if c.sc.Acquire() {
		n, err = c.sock.read([2][]byte{c.sc.First, c.sc.Then}, limit)
		c.sc.Release()
	} else {
		again = true
	}
	c.e.node.soon("got", func() { c.got(n, err, again) })
}

// got closes the read bracket, after the deliveries if there are some.
func (c *carrier) got(n int, cause error, again bool) {
	if n > 0 {
		c.r.heard = c.e.now()
	}
	ds, err := c.gen.Got(c.e.now(), &c.sc, n)
	c.e.pump()
	c.deliver(ds, err, func() {
		switch {
		case c.dead:
		case cause != nil:
			c.lost(cause)
		case n == 0 && !again:
			c.sock.readable = func() { c.e.node.soon("poll", c.want) }
			if c.sock.hasData() {
				c.sock.wake(&c.sock.readable)
			}
		default:
			c.e.node.soon("read-on", c.want)
		}
	})
}

// deliver hands messages over, some at once, some later, and goes on when there are no more.
func (c *carrier) deliver(ds []session.Delivery, err error, then func()) {
	if err != nil {
		c.e.w.violate("%s: what came on rail %d is refused: %v", c.e, c.r.id, err)
	}
	if len(ds) == 0 {
		then()
		return
	}
	c.e.node.soon("deliver", func() {
		if c.gen.IsQuiet() {
			c.e.w.violate("%s: a delivery of rail %d generation %d, which is quiet", c.e, c.r.id, c.gen.ID)
		}
		first := ds[:c.e.w.number(0, len(ds))]
		for i := range first {
			c.e.app.delivered(&first[i])
		}
		rest := ds[len(first):]
		c.e.node.soon("delivered", func() {
			for i := range rest {
				c.e.app.delivered(&rest[i])
			}
			ds, err := c.gen.Delivered(c.e.now())
			c.e.pump()
			c.deliver(ds, err, then)
		})
	})
}

// lost tells the session that the connection is over.
func (c *carrier) lost(err error) {
	if c.dead {
		return
	}
	c.end(err)
	c.settleQueue()
	c.e.s.Lost(c.e.now(), c.gen, err)
	c.e.pump()
}

// kill ends the connection because the session has fenced its generation.
func (c *carrier) kill(cause error) {
	c.e.w.Count.Kills++
	c.witnessed(cause)
	if c.dead {
		return
	}
	c.end(cause)
}

func (c *carrier) end(cause error) {
	c.dead = true
	c.e.note("rail %d generation %d ends: %v", c.r.id, c.gen.ID, shortly(cause))
	if c.sock.qp != nil {
		c.drain()
	} else {
		c.sock.close(c.e.w.chance(c.e.w.opt.Zombies))
	}
	if c.r.carrier == c {
		c.r.carrier = nil
	}
	c.r.look()
}

// shortly gives an error's text for the story.
func shortly(err error) string {
	switch {
	case err == nil:
		return "no cause"
	case errors.Is(err, errReset):
		return "reset"
	}
	return err.Error()
}
