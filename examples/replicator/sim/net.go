package main

import (
	"slices"
	"time"

	"railyard/examples/replicator/replica"
)

// link is the connection of two nodes. Messages arrive in order, once, unless it breaks.
type link struct {
	generation uint64
	up         bool
	free       [2]time.Duration // when the next message of each direction can arrive at the earliest
}

// region is staging memory. Owner of each byte: the item that its stream's writer gave it to.
type region struct {
	memory  []byte
	owner   []uint64
	revoked bool
}

func (w *world) link(a, b int) *link { return w.links[[2]int{min(a, b), max(a, b)}] }

func (w *world) index(n replica.Name) int { return slices.Index(w.names, n) }

// send carries a message, unless the link is broken by then.
func (w *world) send(from, to int, msg replica.Message) {
	l := w.link(from, to)
	if !l.up {
		return
	}
	way := 0
	if from > to {
		way = 1
	}
	at := max(w.now+w.upTo(w.slowNet), l.free[way])
	l.free[way] = at
	generation := l.generation
	w.after(at-w.now, func() {
		if l.up && l.generation == generation {
			w.nodes[to].awake(func(n *node) { n.step(replica.Delivered{From: w.names[from], Message: msg}) })
		}
	})
}

// connect lets two nodes speak again; each hears of it by itself.
func (w *world) connect(a, b int) {
	l := w.link(a, b)
	if l.up || w.nodes[a].member == nil || w.nodes[b].member == nil {
		return
	}
	l.up = true
	l.generation++
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		w.nodes[pair[0]].awake(func(n *node) { n.step(replica.Up{Peer: w.names[pair[1]]}) })
	}
}

func (w *world) cutLink(a, b int) {
	l := w.link(a, b)
	if !l.up {
		return
	}
	l.up = false
	l.generation++
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		generation := l.generation
		w.after(w.upTo(50*time.Millisecond), func() {
			if l.generation == generation {
				w.nodes[pair[0]].awake(func(n *node) { n.step(replica.Down{Peer: w.names[pair[1]]}) })
			}
		})
	}
	w.after(w.upTo(time.Second), func() { w.connect(a, b) })
}

// flight is a put under way.
type flight struct {
	from     *node
	to       int
	put      replica.Put
	canceled bool
	over     bool
	left     int
}

// landAt is how long a piece of a put takes: some are very late.
func (w *world) landAt() time.Duration {
	if w.chance(w.lateness) {
		w.tally.Late++
		return w.upTo(time.Second)
	}
	return w.upTo(w.slowNet)
}

// put lands in two pieces, in any order, whatever becomes of the link meanwhile; a broken link only loses the news of it.
func (w *world) put(from *node, p replica.Put) {
	f := &flight{from: from, to: w.index(p.To), put: p, left: 2}
	stream := replica.Stream{Peer: from.name, Epoch: p.Item.Epoch, Number: p.Item.Stream}
	if r := w.nodes[f.to].regions[stream]; r != nil {
		for i := range p.Data {
			r.owner[int(p.Item.Staged)+i] = p.Item.Number
		}
	}
	from.flights = append(from.flights, f)
	if !w.link(from.index, f.to).up && w.chance(0.5) {
		f.finish(false)
		return
	}
	half := len(p.Data) / 2
	for _, part := range [][2]int{{0, half}, {half, len(p.Data)}} {
		w.after(w.landAt(), func() { w.nodes[f.to].awake(func(n *node) { f.land(n, stream, part[0], part[1]) }) })
	}
}

func (f *flight) land(n *node, stream replica.Stream, from, to int) {
	w := n.w
	r := n.regions[stream]
	if r == nil || r.revoked || f.canceled {
		if r != nil && r.revoked {
			w.tally.Revoked++
		}
		f.finish(false)
		return
	}
	for i := from; i < to; i++ {
		at := int(f.put.Item.Staged) + i
		if r.owner[at] != f.put.Item.Number {
			w.violate("%s: a byte of item %d of %v landed where item %d is", n.name, f.put.Item.Number, stream, r.owner[at])
		}
		r.memory[at] = f.put.Data[i]
	}
	if f.left--; f.left > 0 {
		return
	}
	l := w.link(f.from.index, f.to)
	generation := l.generation
	w.after(w.upTo(w.slowNet), func() {
		if l.up && l.generation == generation {
			n.awake(func(n *node) { n.step(replica.Delivered{From: f.from.name, Message: f.put.Item}) })
		}
	})
	w.after(w.upTo(2*w.slowNet), func() {
		if n.member == nil {
			f.finish(false)
			return
		}
		n.awake(func(*node) {
			f.again(r)
			f.finish(l.up && l.generation == generation)
		})
	})
}

// again writes the first half once more, as a piece that was cut off may be, before the writer is told.
func (f *flight) again(r *region) {
	if r.revoked || f.canceled {
		return
	}
	for i := range len(f.put.Data) / 2 {
		at := int(f.put.Item.Staged) + i
		if r.owner[at] != f.put.Item.Number {
			f.from.w.violate("item %d is written again where item %d is", f.put.Item.Number, r.owner[at])
		}
		r.memory[at] = f.put.Data[i]
	}
}

// finish tells the writer.
func (f *flight) finish(well bool) {
	if f.over {
		return
	}
	f.over = true
	w, life := f.from.w, f.from.life
	w.after(w.upTo(w.slowNet), func() {
		f.from.flights = slices.DeleteFunc(f.from.flights, func(o *flight) bool { return o == f })
		if f.from.life == life {
			f.from.awake(func(n *node) {
				n.step(replica.PutDone{Stream: replica.Stream{Peer: f.put.To, Epoch: f.put.Item.Epoch, Number: f.put.Item.Stream},
					Item: f.put.Item.Number, Well: well})
			})
		}
	})
}
