package main

import (
	"errors"
	"fmt"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
)

// A path of cards that write into registered memory. Each end of a connection has a queue pair: sends arrive in the peer's
// posted buffers, as packets of a stream, and writes go straight into the peer's memory, both in the order in which they were
// posted. The cards do that by themselves: while the processes at both ends are frozen, slow, or believe the connection over. Only
// destroying a queue pair ends it, and only at its own end: what is on its way from the other one is then refused on arrival.

// The cards' own times and sizes.
const (
	writePacket   = 4 << 10
	slotSize      = 4 << 10
	notReadyDelay = 2 * time.Millisecond
	retryLimit    = 250 * time.Millisecond
)

var (
	errRetries = errors.New("sim: the card gave up: no acknowledgement after the last retry")
	errAccess  = fmt.Errorf("sim: the peer's card refused: %w", rma.ErrAccess)
	errAsync   = errors.New("sim: a write of the peer's was refused, the queue pair is in the error state")
)

// queuePair is one end of a connection on a verbs path.
//
// Invariant: after destroy nothing of it reads a source, and nothing that arrives is applied.
type queuePair struct {
	w         *World
	s         *sock
	end       *End     // whose registrations its card looks up; nil: the connection is not attached here
	owner     *carrier // nil: the connection is not attached here
	destroyed bool
	broken    error // it is in the error state, and why
	open      []*write
	complete  int // writes that have left open and are not reported
	lastAck   time.Duration
	polling   bool
	reported  bool // the process knows that it is broken
	posted    int  // receive buffers that the process has posted
}

// write is a place under way. Its source is read when a packet of it lands, which is as late as a retransmission can be, unless
// the queue pair that sends it is gone by then: what is in the network has been read.
type write struct {
	q       *queuePair
	at      time.Duration
	key     uint32
	address uint64
	source  []byte
	read    bool // source is a copy: the packets are in the network
	done    bool
	failed  error
}

// writePart is one packet of it.
type writePart struct {
	*write
	from, n int
	last    bool
}

func (c *conn) makeQueuePairs() {
	w := c.path.w
	for _, s := range c.socks {
		slots := w.number(4, 64)
		s.qp = &queuePair{w: w, s: s, posted: slots}
	}
	for i, s := range c.socks { // some senders believe in more buffers than there are
		slots := c.socks[1-i].qp.posted
		if w.chance(0.3) {
			slots *= 2
		}
		s.out.limit = slots * slotSize
	}
}

// post hands a plan's places and sends to the card, as far as there is room; the number of its bytes that were taken.
func (q *queuePair) post(plan *rma.Gather) (int, error) {
	s := q.s
	switch {
	case s.err != nil:
		return 0, s.err
	case q.broken != nil:
		return 0, q.broken
	}
	room := max(s.out.limit-s.out.used, 0) / slotSize * slotSize
	if room > 1 && q.w.chance(q.w.opt.ShortWrites) {
		room = q.w.number(1, room)
	}
	n := min(plan.Size(), room)
	for i := range plan.Places {
		if plan.Places[i].At < n {
			q.postWrite(&plan.Places[i])
		}
	}
	left := n
	for _, b := range plan.Bufs {
		b = b[:min(len(b), left)]
		left -= len(b)
		for len(b) > 0 {
			k := min(len(b), slotSize)
			s.out.push(packet{data: append([]byte(nil), b[:k]...), slot: slotSize})
			b = b[k:]
		}
	}
	return n, nil
}

func (q *queuePair) postWrite(p *rma.Place) {
	q.w.Count.Places++
	q.w.Count.Bytes += uint64(len(p.Source))
	w := &write{q: q, at: q.w.now, key: p.Key, address: p.Address, source: p.Source}
	q.open = append(q.open, w)
	for from := 0; from < len(p.Source); from += writePacket {
		n := min(writePacket, len(p.Source)-from)
		q.s.out.push(packet{write: &writePart{write: w, from: from, n: n, last: from+n == len(p.Source)}})
	}
	q.watch(w)
}

// watch gives up a write whose acknowledgement does not come.
func (q *queuePair) watch(w *write) {
	q.w.After(retryLimit, "retries", func() {
		if w.done || q.destroyed || q.broken != nil {
			return
		}
		peer := q.s.conn.socks[1-q.s.side].qp
		since, silent := q.s.conn.path.silentSince()
		if peer.destroyed || peer.broken != nil || (silent && q.w.now-max(since, w.at) >= retryLimit) {
			q.w.Count.Retries++
			q.fail(errRetries)
			return
		}
		q.watch(w)
	})
}

// arrive is the peer's card: it checks each packet against what is registered at this moment, and asks nobody.
func (q *queuePair) arrive(p *writePart) {
	if q.destroyed || q.broken != nil {
		q.w.Count.CardRefusals++
		return
	}
	data := p.source[p.from : p.from+p.n]
	if !p.read && len(data) >= 32 && isAll(data, poison) {
		q.w.violate("a card of %s reads %d bytes of a source that was given back, on path %s", p.q.end, len(data), q.s.conn.path.name)
	}
	if q.end == nil || !q.end.cards.write(p.key, p.address+uint64(p.from), data) {
		q.w.Count.AccessErrors++
		q.fail(errAsync)
		p.q.answer(p.write, errAccess)
		return
	}
	if p.last {
		p.q.answer(p.write, nil)
	}
}

// answer is the peer card's acknowledgement of a write, or its refusal, on its way back. Answers come in order.
func (q *queuePair) answer(w *write, err error) {
	back := &q.s.conn.path.dir[1-q.s.side]
	q.lastAck = max(q.lastAck, back.arrival(64))
	q.w.After(q.lastAck-q.w.now, "card-answer", func() {
		back.whenOpen(func() { q.answered(w, err) })
	})
}

func (q *queuePair) answered(w *write, err error) {
	if q.destroyed || q.broken != nil {
		return
	}
	if err != nil {
		w.failed = err
		q.fail(err)
		return
	}
	w.done = true
	for len(q.open) > 0 && q.open[0].done {
		q.open = q.open[1:]
		q.complete++
	}
	q.notify()
}

// fail puts the queue pair into the error state: the card sends and applies nothing more. The process hears of it in its time.
func (q *queuePair) fail(err error) {
	if q.destroyed || q.broken != nil {
		return
	}
	q.broken = err
	q.leaveNetwork()
	q.notify()
}

// destroy ends the queue pair at this end alone.
func (q *queuePair) destroy() {
	if !q.destroyed {
		q.destroyed = true
		q.leaveNetwork()
	}
}

// leaveNetwork: what the card has sent already goes on by itself, and may take its time; the rest stays.
func (q *queuePair) leaveNetwork() {
	if !q.w.chance(q.w.opt.Zombies) {
		q.s.out.flight = nil
	}
	for _, w := range q.open {
		w.source, w.read = append([]byte(nil), w.source...), true
	}
}

// notify has the process look at its completions, soon or late.
func (q *queuePair) notify() {
	if q.owner == nil || q.polling {
		return
	}
	q.polling = true
	c := q.owner
	wait := c.e.node.turn()
	if q.w.chance(0.1) {
		wait += q.w.between(0, 20*time.Millisecond)
	}
	c.e.node.after(wait, "completions", func() {
		q.polling = false
		if q.broken != nil && !c.dead {
			c.lost(q.broken)
			return
		}
		c.settleQueue()
	})
}

// notReady tells whether the packet in front is a send for which its receiver has no buffer posted.
func (p *pipe) notReady() bool {
	q := p.to.qp
	return q != nil && len(p.flight) > 0 && p.flight[0].data != nil && p.to.err == nil && len(p.arrived) >= q.posted
}

// settleQueue tells the session what became of the places, as far as the completions say.
func (c *carrier) settleQueue() {
	q := c.sock.qp
	if q == nil || c.gone {
		return
	}
	k := q.complete
	q.complete = 0
	var err error
	if q.broken != nil && len(q.open) > 0 && !q.reported {
		q.reported = true
		cause := q.broken
		if q.open[0].failed == nil {
			cause = fmt.Errorf("flushed: %w", errRetries)
		}
		c.e.denied(q.open[0], cause)
		err = c.gen.PlaceFailed(c.e.now(), k, cause)
	} else {
		err = c.gen.Placed(c.e.now(), k)
	}
	if err != nil {
		c.e.w.violate("%s: completions on rail %d: %v", c.e, c.r.id, err)
	}
	c.e.pump()
}

// drain destroys the queue pair of a generation that is over, when the process comes to it.
func (c *carrier) drain() {
	c.e.node.soon("destroy", func() {
		c.settleQueue()
		c.sock.close(c.e.w.chance(c.e.w.opt.Zombies))
		c.e.node.soon("drained", func() {
			c.gone = true
			c.gen.Drained(c.e.now())
			for _, key := range c.spent {
				c.e.cards.deregister(key)
			}
			c.spent = nil
			c.e.pump()
		})
	})
}

// register makes one of our regions known to the cards of a generation.
func (e *End) register(g *session.Generation, region *rma.Region) {
	for again := true; again; {
		reg := session.Registration{Region: region}
		reg.Mapping, reg.Err = region.Map(func(buf []byte) (func(), error) {
			if e.w.chance(0.02) {
				return nil, errCardFull
			}
			reg.Address, reg.Key = e.cards.register(buf, region.Key().Region())
			e.w.Count.Maps++
			return func() { e.cards.deregister(reg.Key) }, nil
		})
		if again = g.Mapped(e.now(), reg); again {
			reg.Mapping.Release()
			c := carrierOf(g)
			_, key := e.cards.register(make([]byte, 1), 0)
			c.spent = append(c.spent, key)
		} else if reg.Mapping != nil && !g.Fenced() {
			e.cards.tell(reg.Key)
		}
	}
	e.pump()
}

var errCardFull = errors.New("sim: the card has no room for a registration")

// cards is what the cards of one end have registered for its peer: one protection domain.
type cards struct {
	w     *World
	regs  map[uint32]registration
	gone  map[uint32]registration // the last of each key that was told and taken back
	free  []uint32                // keys that were taken back: the newest is the likeliest to be given again
	next  uint32
	bases map[*byte]uint64
}

type registration struct {
	base   uint64
	mem    []byte
	region uint64 // 0: the card's own memory
	told   bool   // the peer may have heard of the key
}

func newCards(w *World) *cards {
	return &cards{w: w, regs: make(map[uint32]registration), gone: make(map[uint32]registration), bases: make(map[*byte]uint64)}
}

// register gives memory a key. The same memory has the same address each time, as in a process.
func (c *cards) register(mem []byte, region uint64) (address uint64, key uint32) {
	base, known := c.bases[&mem[0]]
	if !known {
		base = uint64(len(c.bases)+1) << 32
		c.bases[&mem[0]] = base // and never forgotten: no address is given twice
	}
	if n := len(c.free); n > 0 && c.w.chance(0.5) {
		key, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.next++
		key = c.next
	}
	c.regs[key] = registration{base: base, mem: mem, region: region}
	return base, key
}

// tell notes that the peer is told the key.
func (c *cards) tell(key uint32) {
	if r, there := c.regs[key]; there {
		r.told = true
		c.regs[key] = r
	}
}

func (c *cards) deregister(key uint32) {
	r, there := c.regs[key]
	if !there {
		c.w.violate("a registration was taken back twice")
	}
	if r.told {
		c.gone[key] = r
	}
	delete(c.regs, key)
	c.free = append(c.free, key)
}

// find gives the registration that a key stands for, or stood for last, as far as the peer may know.
func (c *cards) find(key uint32) (r registration, alive bool) {
	if r, alive = c.regs[key]; !alive || !r.told {
		return c.gone[key], false
	}
	return r, true
}

// write is the card's. False: nothing of the packet is applied.
func (c *cards) write(key uint32, address uint64, data []byte) bool {
	r, there := c.regs[key]
	if !there || address < r.base || address-r.base > uint64(len(r.mem)) || uint64(len(data)) > uint64(len(r.mem))-(address-r.base) {
		return false
	}
	copy(r.mem[address-r.base:], data)
	return true
}
