package main

import (
	"bytes"
	"slices"

	"railyard/examples/replicator/replica"
)

// content is what a store has, in memory or on the disk.
type content struct {
	image []byte
	dirt  []uint64 // newest record, by extent
	log   []replica.Record
	last  replica.Position
	state replica.State
}

func (c *content) clone() content {
	return content{bytes.Clone(c.image), slices.Clone(c.dirt), slices.Clone(c.log), c.last, c.state}
}

// change is one effect on a store, with its data.
type change struct {
	ticket uint64
	record *replica.Record
	fill   []byte
	extent uint64
	at     uint64
	state  *replica.State
}

func (c *content) apply(g change, kept int) {
	switch {
	case g.record != nil:
		h := g.record.Header
		if h.Zero {
			clear(c.image[h.Offset : h.Offset+h.Length])
		} else {
			copy(c.image[h.Offset:], g.record.Data)
		}
		if h.Length > 0 {
			for e := h.Offset / extent; e <= (h.Offset+h.Length-1)/extent; e++ {
				c.dirt[e] = max(c.dirt[e], h.Sequence)
			}
		}
		c.log = append(c.log, *g.record)
		c.log = c.log[max(0, len(c.log)-kept):]
		c.last = replica.Position{Epoch: h.Epoch, Sequence: h.Sequence}
	case g.fill != nil:
		copy(c.image[g.extent*extent:], g.fill)
		c.dirt[g.extent] = max(c.dirt[g.extent], g.at)
	case g.state != nil:
		if g.state.Base != c.state.Base {
			c.log, c.last = nil, g.state.Base
		}
		c.state = *g.state
	}
}

// store is a member's disk. Owner: its node, through all incarnations.
type store struct {
	content          // as reads see it
	disk    content  // what a loss of power leaves
	pending []change // carried out, not on the disk
	queue   []func() // store effects, in their order
	busy    bool
	syncing bool
	carried uint64
	synced  uint64
}

func newStore(extents uint64) *store {
	c := content{image: make([]byte, extents*extent), dirt: make([]uint64, extents)}
	c.state.Whole = true
	return &store{content: c, disk: c.clone()}
}

func (s *store) change(g change, kept int) {
	s.apply(g, kept)
	s.pending = append(s.pending, g)
	s.carried = g.ticket
}

// sync has everything so far on the disk.
func (s *store) sync(kept int) {
	for _, g := range s.pending {
		s.disk.apply(g, kept)
	}
	s.pending = nil
	s.synced = s.carried
}

// crash ends an incarnation: with power lost, of what is not on the disk only a part is left, the last of it perhaps torn.
func (s *store) crash(w *world, power bool) {
	s.queue, s.busy, s.syncing, s.carried, s.synced = nil, false, false, 0, 0
	if !power {
		s.sync(w.kept)
		s.synced = 0
		return
	}
	left := w.rnd.IntN(len(s.pending) + 1)
	for i, g := range s.pending {
		if i < left {
			s.disk.apply(g, w.kept)
			continue
		}
		if g.fill != nil && w.chance(0.5) { // the image is written in place, in no order
			copy(s.disk.image[g.extent*extent:], g.fill[:extent/2])
		}
	}
	s.pending = nil
	s.content = s.disk.clone()
}

// wipe is a new, empty disk.
func (s *store) wipe(extents uint64) {
	*s = *newStore(extents)
	s.state.Whole, s.disk.state.Whole = false, false
}

func (s *store) find(sequence uint64) (replica.Record, bool) {
	if len(s.log) == 0 || sequence < s.log[0].Header.Sequence || sequence > s.last.Sequence {
		return replica.Record{}, false
	}
	return s.log[sequence-s.log[0].Header.Sequence], true
}
