package script

import (
	"errors"
	"fmt"
	"time"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

var errReset = errors.New("connection reset")

// cable is one rail's path: bytes in both directions pass it, unless it is cut.
type cable struct {
	cut  [2]bool // by direction: 0 from a
	rate int     // bytes a second; 0: no limit
	left [2]int  // of this millisecond
}

// refill gives the next millisecond its bytes.
func (c *cable) refill() {
	for i := range c.left {
		c.left[i] = c.rate / 1000
	}
}

// pipe is one direction of one connection: what the kernels hold of it.
type pipe struct {
	bytes []byte
	room  int
}

// link is one end of one connection, that is of one generation: a writer and a reader, each moved by hand.
type link struct {
	e       *end
	rail    wire.RailID
	gen     *session.Generation
	in, out *pipe
	dead    bool // nothing is written or read here any more; what the pipes hold may still reach the other end

	token   bool
	gather  rma.Gather
	writing bool
	scatter rma.Scatter
	reading bool

	pulse  *rail.Health
	lookAt time.Duration
	busy   bool
}

func linkOf(g *session.Generation) *link { return g.User.(*link) }

func (l *link) String() string { return fmt.Sprintf("rail %d gen %d", l.rail, l.gen.ID) }

// way is the direction in which the link writes.
func (l *link) way() int {
	if l.e == l.e.w.a {
		return 0
	}
	return 1
}

// fill opens the write bracket. False: there is nothing to write.
func (l *link) fill() bool {
	if l.dead || !l.token || l.writing {
		return false
	}
	l.writing = l.gen.Fill(l.e.w.now, &l.gather)
	if !l.writing {
		l.token = false
	}
	l.e.pump()
	return l.writing
}

// wrote closes the bracket after a socket call that took at most limit bytes; 0: it took none.
func (l *link) wrote(limit int) int {
	limit = min(limit, l.out.room-len(l.out.bytes))
	n := 0
	l.gather.Acquire()
	for _, b := range l.gather.Bufs {
		take := min(len(b), limit-n)
		l.out.bytes = append(l.out.bytes, b[:take]...)
		n += take
	}
	l.gather.Release()
	l.writing = false
	err := l.gen.Wrote(l.e.w.now, &l.gather, n)
	l.e.pump()
	if err != nil {
		l.lost(err)
	}
	return n
}

// write is one whole write call.
func (l *link) write(limit int) int {
	if len(l.out.bytes) >= l.out.room || !l.fill() {
		return 0
	}
	return l.wrote(limit)
}

// want opens the read bracket. False: the connection is over.
func (l *link) want() bool {
	if l.dead || l.reading {
		return false
	}
	err := l.gen.Want(l.e.w.now, &l.scatter)
	l.e.pump()
	if err != nil {
		l.lost(err)
		return false
	}
	l.reading = true
	return true
}

// readable is how many bytes lie before the reader.
func (l *link) readable() int {
	c, way := l.e.w.rail(l.rail), 1-l.way()
	n := len(l.in.bytes)
	switch {
	case c.cut[way]:
		return 0
	case c.rate > 0 && l.e.w.timed:
		return min(n, c.left[way])
	}
	return n
}

// got closes the bracket after a socket call that gave at most limit bytes, and delivers what has come.
func (l *link) got(limit int) int {
	w := l.e.w
	n := 0
	if l.scatter.Acquire() {
		for _, dst := range [][]byte{l.scatter.First, l.scatter.Then} {
			k := copy(dst, l.in.bytes[:min(len(l.in.bytes), limit-n)])
			l.in.bytes = l.in.bytes[k:]
			n += k
		}
		l.scatter.Release()
	}
	w.rail(l.rail).left[1-l.way()] -= n
	l.reading = false
	ds, err := l.gen.Got(w.now, &l.scatter, n)
	l.e.pump()
	for len(ds) > 0 {
		for i := range ds {
			l.e.deliver(&ds[i])
		}
		ds, err = l.gen.Delivered(w.now)
		l.e.pump()
	}
	if err != nil {
		l.e.say("what came on %s is refused: %v", l, err)
		l.lost(err)
	}
	return n
}

// read is one whole read call.
func (l *link) read(limit int) int {
	limit = min(limit, l.readable())
	if limit == 0 || !l.want() {
		return 0
	}
	return l.got(limit)
}

// lost tells the session that the connection is over.
func (l *link) lost(err error) {
	l.dead = true
	l.e.s.Lost(l.e.w.now, l.gen, err)
	l.e.pump()
}

// link gives the newest link of a rail.
func (e *end) link(id int) *link {
	if id >= len(e.links) || e.links[id] == nil {
		e.w.breach("%s has no connection on rail %d", e.name, id)
	}
	return e.links[id]
}

// all gives every link, old ones first: what a dead one's pipe holds may still be read by the other end.
func (e *end) all() []*link {
	list := append([]*link(nil), e.old...)
	for _, l := range e.links {
		if l != nil {
			list = append(list, l)
		}
	}
	return list
}

// most is more than any socket call takes.
const most = 1 << 30

// step lets each connection do one write call and one read call; it tells whether anything moved.
func (w *world) step() bool {
	written := w.writes()
	return w.reads() || written
}

func (w *world) writes() bool { return w.each(func(l *link) int { return l.write(most) }) }

func (w *world) reads() bool { return w.each(func(l *link) int { return l.read(most) }) }

// each tells whether the calls moved anything.
func (w *world) each(call func(l *link) int) bool {
	moved := 0
	for _, e := range w.ends() {
		for _, l := range e.all() {
			moved += call(l)
		}
	}
	return moved > 0
}

// settle steps until nothing moves any more.
func (w *world) settle() {
	for range 100_000 {
		if !w.step() {
			return
		}
	}
	w.breach("it never comes to rest")
}
