package main

import (
	"encoding/binary"
	"errors"
	"time"

	"railyard/examples/replicator/replica"
)

// client works on random blocks through whoever it takes for the primary.
type client struct {
	w      *world
	index  int
	target int
	open   []*operation
	done   bool
}

// operation is one of a client's. Its history has an entry for each block.
type operation struct {
	c      *client
	op     uint64
	write  bool
	flush  bool
	off    uint64
	values []uint64
	parts  []*entry
	buffer []byte
	at     *node
	lost   bool
	over   bool
}

const inFlight = 3

func newClient(w *world, index int) *client { return &client{w: w, index: index} }

func (c *client) start() {
	c.w.after(c.w.upTo(20*time.Millisecond), func() {
		if c.w.calm {
			c.done = true
			return
		}
		if len(c.open) < inFlight {
			c.work()
		}
		c.start()
	})
}

func (c *client) work() {
	w := c.w
	blocks := w.extents * extent / block
	from := w.rnd.Uint64N(blocks)
	n := 1 + w.rnd.Uint64N(min(4, blocks-from))
	switch w.rnd.IntN(10) {
	case 0:
		c.ask(&operation{c: c, flush: true})
	case 1, 2, 3, 4:
		c.read(from, n)
	default:
		o := &operation{c: c, write: true, off: from * block}
		for i := range n {
			w.ops++
			o.values = append(o.values, w.ops)
			o.parts = append(o.parts, w.history(from+i).wrote(w.ops, w.now))
		}
		c.ask(o)
	}
}

func (c *client) read(from, n uint64) *operation {
	o := &operation{c: c, off: from * block, values: make([]uint64, n)}
	for i := range n {
		o.parts = append(o.parts, c.w.history(from+i).reads(c.w.now))
	}
	c.ask(o)
	return o
}

func (o *operation) data() []byte {
	var data []byte
	for _, v := range o.values {
		data = binary.LittleEndian.AppendUint64(data, v)
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return data
}

func (c *client) ask(o *operation) {
	w := c.w
	n := w.nodes[c.target]
	o.at = n
	w.ops++
	o.op = w.ops
	c.open = append(c.open, o)
	if n.member == nil {
		w.after(10*time.Millisecond, func() { o.answered(replica.ErrNotPrimary, nil) })
		return
	}
	n.asked[o.op] = o
	length := uint64(len(o.values)) * block
	n.awake(func(n *node) {
		switch {
		case o.flush:
			n.step(replica.Flush{Op: o.op})
		case o.write:
			n.step(replica.Write{Op: o.op, Offset: o.off, Length: length, Durable: w.chance(0.1), Data: o.data()})
		default:
			n.step(replica.Read{Op: o.op, Offset: o.off, Length: length})
		}
	})
}

func (c *client) withdraw() {
	if len(c.open) == 0 {
		return
	}
	o := c.open[c.w.rnd.IntN(len(c.open))]
	for _, n := range c.w.nodes {
		if n.member != nil && n.asked[o.op] != nil {
			n.awake(func(n *node) { n.step(replica.Withdraw{Ops: []uint64{o.op}}) })
		}
	}
}

// answered closes an operation: it was carried out, or never will be, or nobody knows.
func (o *operation) answered(err error, buffer []byte) {
	c, w := o.c, o.c.w
	if o.over {
		return
	}
	o.over = true
	for i, x := range c.open {
		if x == o {
			c.open = append(c.open[:i], c.open[i+1:]...)
			break
		}
	}
	switch {
	case err == nil:
		for i, p := range o.parts {
			if !o.write {
				at := i * block
				p.value = binary.LittleEndian.Uint64(buffer[at:])
				if again := binary.LittleEndian.Uint64(buffer[at+8:]); again != p.value {
					w.violate("block %d is torn: %d and %d", o.off/block+uint64(i), p.value, again)
				}
			}
			o.values[i], p.end, p.ended = p.value, w.now, true
		}
		if o.write {
			w.tally.Acked++
		} else if !o.flush {
			w.tally.Reads++
		}
	case errors.Is(err, replica.ErrNotPrimary), errors.Is(err, replica.ErrCanceled):
		if errors.Is(err, replica.ErrCanceled) {
			w.tally.Withdrawn++
		}
		for _, p := range o.parts {
			p.never = true
		}
		c.target = w.rnd.IntN(len(w.nodes))
	case errors.Is(err, replica.ErrDeposed):
		w.tally.Unknown++
		for _, p := range o.parts {
			p.never = !o.write
		}
		c.target = w.rnd.IntN(len(w.nodes))
	default:
		w.violate("an operation ends with %v", err)
	}
	if w.verbose {
		w.note("client %d at %s: write %v, blocks from %d: %v, %v", c.index, o.at.name, o.write, o.off/block, o.values, err)
	}
}
