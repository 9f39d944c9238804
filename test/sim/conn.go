package main

import (
	"errors"
	"time"
)

var (
	errReset  = errors.New("sim: connection reset by peer")
	errClosed = errors.New("sim: connection closed here")
	errBroken = errors.New("sim: the transport has failed")
)

// conn is one connection: two sockets and a pipe each way.
type conn struct {
	path  *Path
	socks [2]*sock
}

// sock is one end of a connection.
type sock struct {
	conn *conn
	side int
	in   *pipe // what the other end writes
	out  *pipe // what we write
	err  error // why the connection is over, as far as this end knows
	// readable and writable are called once, when there is something to read or room to write, or an error.
	readable, writable func()
	qp                 *queuePair // on a path of cards that write into memory; else nil
	silent             bool       // a packet for this end, once closed, is answered by nothing: the reset is swallowed
}

// pipe is one direction of a connection: bounded, in order.
type pipe struct {
	w       *World
	dir     *direction
	to      *sock
	limit   int
	used    int // bytes written and not known to have been read
	flight  []packet
	arrived []packet
	moving  bool // the front of flight has an event of its own
	last    time.Duration
	stuck   time.Duration // nothing of it arrives before
	tear    bool          // the next write is to be cut off in its middle
}

// packet is bytes, a handshake's message, a part of a card's write, or the end.
type packet struct {
	at    time.Duration
	data  []byte
	slot  int // what it takes of the receiver's buffers where that is not its bytes
	write *writePart
	msg   any
	reset bool
}

// size is how many bytes go over the path.
func (k *packet) size() int {
	if k.write != nil {
		return k.write.n
	}
	return len(k.data)
}

func newConn(p *Path) *conn {
	c := &conn{path: p}
	limit := func() int { return p.w.number(p.w.opt.MinBuffer, p.w.opt.MaxBuffer) }
	for i := range c.socks {
		c.socks[i] = &sock{conn: c, side: i, silent: p.w.chance(p.w.opt.Swallow)}
	}
	for i, s := range c.socks {
		s.out = &pipe{w: p.w, dir: &p.dir[i], to: c.socks[1-i], limit: limit()}
		c.socks[1-i].in = s.out
	}
	if p.verbs {
		c.makeQueuePairs()
	}
	p.live = append(p.live, c)
	return c
}

// write takes as much as the socket has room for.
func (s *sock) write(bufs [][]byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	w := s.out.w
	room := s.out.limit - s.out.used
	if room > 1 && w.chance(w.opt.ShortWrites) {
		room = w.number(1, room)
	}
	var data []byte
	for _, b := range bufs {
		if room == 0 {
			break
		}
		k := min(len(b), room)
		data = append(data, b[:k]...)
		room -= k
	}
	if len(data) > 0 && !s.torn(data) {
		s.out.push(packet{data: data})
	}
	return len(data), nil
}

// send puts a handshake's message into the stream.
func (s *sock) send(msg any) {
	if s.err == nil {
		s.out.push(packet{msg: msg})
		s.out.w.record(s, msg)
		s.conn.path.w.joinStep(s.conn)
	}
}

// read fills the buffers from what has arrived; at most limit bytes.
func (s *sock) read(bufs [2][]byte, limit int) (int, error) {
	n, slots := 0, 0
	for _, b := range bufs {
		for len(b) > 0 && n < limit && len(s.in.arrived) > 0 {
			p := &s.in.arrived[0]
			if p.msg != nil || p.reset {
				break
			}
			k := min(len(b), len(p.data), limit-n)
			copy(b, p.data[:k])
			b, p.data, n = b[k:], p.data[k:], n+k
			if len(p.data) == 0 {
				slots += p.slot
				s.in.arrived = s.in.arrived[1:]
			}
		}
	}
	if n > 0 {
		if s.qp != nil {
			s.in.drained(slots)
		} else {
			s.in.drained(n)
		}
		return n, nil
	}
	return 0, s.err
}

// message takes a handshake's message off the stream; nil: none is there.
func (s *sock) message() any {
	if len(s.in.arrived) == 0 || s.in.arrived[0].msg == nil {
		return nil
	}
	m := s.in.arrived[0].msg
	s.in.arrived = s.in.arrived[1:]
	return m
}

// hasData tells whether a read would give something.
func (s *sock) hasData() bool { return s.err != nil || len(s.in.arrived) > 0 }

// full tells whether a writer would be woken: a third of the buffer has to be free for that, or it would write byte by byte.
func (p *pipe) full() bool { return p.used > p.limit-p.limit/3 }

// push sends a packet behind all others.
func (p *pipe) push(k packet) {
	p.used += max(len(k.data), k.slot)
	p.last = max(p.last, p.dir.arrival(k.size()+64))
	k.at = p.last
	p.flight = append(p.flight, k)
	p.move()
}

// move lets the front packet arrive in its time.
func (p *pipe) move() {
	if p.moving || len(p.flight) == 0 {
		return
	}
	p.moving = true
	var arrive func()
	arrive = func() {
		p.dir.whenOpen(func() {
			if p.notReady() {
				p.w.After(notReadyDelay, "receiver-not-ready", arrive)
				return
			}
			p.moving = false
			if p.stuck > p.w.now {
				p.move()
				return
			}
			if len(p.flight) == 0 {
				return
			}
			k := p.flight[0]
			p.flight = p.flight[1:]
			p.land(k)
			p.move()
		})
	}
	p.w.After(max(p.flight[0].at, p.stuck)-p.w.now, "packet", arrive)
}

// land is a packet's arrival.
func (p *pipe) land(k packet) {
	s := p.to
	switch {
	case k.write != nil:
		s.qp.arrive(k.write)
		return
	case s.qp != nil && s.qp.broken != nil && !k.reset:
		return
	}
	if k.reset {
		s.fail(errReset)
		return
	}
	if s.err != nil { // nobody is there any more: the kernel answers with a reset, which may be lost
		if errors.Is(s.err, errClosed) && !s.silent {
			s.out.push(packet{reset: true})
		}
		return
	}
	p.arrived = append(p.arrived, k)
	s.wake(&s.readable)
}

// drained gives room back to the writer, once it can hear of it.
func (p *pipe) drained(n int) {
	back := &p.to.conn.path.dir[p.to.side]
	back.whenOpen(func() {
		p.used -= n
		if !p.full() {
			from := p.to.conn.socks[1-p.to.side]
			from.wake(&from.writable)
		}
	})
}

func (s *sock) wake(fn *func()) {
	if f := *fn; f != nil {
		*fn = nil
		f()
	}
}

// fail ends the connection as this end sees it. What had arrived can still be read.
func (s *sock) fail(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	s.wake(&s.readable)
	s.wake(&s.writable)
}

// close ends the connection from this end. Zombie: what the kernel holds still goes out, as after a close without linger
// that met a black hole, or from a card that was stalled; else it is thrown away.
func (s *sock) close(zombie bool) {
	if errors.Is(s.err, errClosed) {
		return
	}
	if s.qp != nil {
		s.qp.destroy()
	}
	was := s.err
	s.err = nil
	s.fail(errClosed)
	if was != nil {
		return
	}
	if !zombie {
		s.out.flight = nil
	}
	if !s.silent || !zombie {
		s.out.push(packet{reset: true})
	}
	s.conn.forget()
}

// vanish ends the socket because its host is gone: nothing more comes from there, not even a reset.
func (s *sock) vanish() {
	if s.qp != nil {
		s.qp.destroy()
	}
	s.silent = true
	s.out.flight = nil
	s.err = errClosed
	s.readable, s.writable = nil, nil
	s.conn.forget()
}

// cut is a reset from the network: each end hears of it, or only one.
func (c *conn) cut(sides [2]bool) {
	for i, s := range c.socks {
		if sides[i] {
			s.out.flight = nil
			s.in.flight = nil
			if s.qp != nil {
				s.qp.fail(errReset)
			}
			s.fail(errReset)
		}
	}
	c.forget()
}

// forget takes the connection off its path's list when both ends know that it is over.
func (c *conn) forget() {
	if c.socks[0].err == nil || c.socks[1].err == nil {
		return
	}
	for i, have := range c.path.live {
		if have == c {
			c.path.live = append(c.path.live[:i], c.path.live[i+1:]...)
			return
		}
	}
}
