package load

import "railyard/rma"

// Place is where a put goes.
type Place struct {
	Slot   uint32
	Life   uint64
	Key    rma.Key
	Offset uint64
}

// Layout is the initiator's map of the target's slots: where the next put goes, and which slot has come to its end.
//
// Invariant: at most one slot is being filled; open counts a life's puts whose end the target does not know yet.
type Layout struct {
	size  uint64 // bytes of each slot that puts may use
	slots []lot
	fill  int // the slot being filled; -1: none
}

// lot is one slot.
type lot struct {
	key  rma.Key
	life uint64
	used uint64
	open int
	use  use
}

// use is what a slot is good for.
type use uint8

const (
	absent  use = iota // not introduced, full and being watched, or revoked
	free               // nothing in it
	filling            // takes puts
	closing            // takes none any more
)

// NewLayout makes a map of so many slots of so many bytes, none of them known yet.
func NewLayout(slots int, size uint64) *Layout {
	return &Layout{size: size, slots: make([]lot, slots), fill: -1}
}

// Introduce makes a slot usable, for its next life. False: there is no such slot, or the news is old.
func (l *Layout) Introduce(slot uint32, life uint64, key rma.Key) bool {
	if int(slot) >= len(l.slots) || life <= l.slots[slot].life {
		return false
	}
	l.slots[slot] = lot{key: key, life: life, use: free}
	return true
}

// Take finds a place for a put of so many bytes. full is a slot that can be handed back; ok is false where every
// slot is being watched: try again later.
func (l *Layout) Take(size uint64) (place Place, full *Place, ok bool) {
	if l.fill >= 0 && l.size-l.slots[l.fill].used < size {
		s := &l.slots[l.fill]
		s.use = closing
		full = l.full(uint32(l.fill))
		l.fill = -1
	}
	for i := range l.slots {
		if l.fill < 0 && l.slots[i].use == free {
			l.fill = i
			l.slots[i].use = filling
		}
	}
	if l.fill < 0 || size > l.size {
		return Place{}, full, false
	}
	s := &l.slots[l.fill]
	place = Place{uint32(l.fill), s.life, s.key, s.used}
	// 64 bytes apart: a put's edges are no part of its neighbor.
	s.used = min((s.used+size+63)&^63, l.size)
	s.open++
	return place, full, true
}

// Settle says that the target knows the end of a put. The result is a slot that can be handed back, or nil.
func (l *Layout) Settle(slot uint32, life uint64) *Place {
	if int(slot) >= len(l.slots) || l.slots[slot].life != life {
		return nil
	}
	l.slots[slot].open--
	return l.full(slot)
}

// full tells whether a closing slot has come to rest.
func (l *Layout) full(slot uint32) *Place {
	s := &l.slots[slot]
	if s.use != closing || s.open > 0 {
		return nil
	}
	s.use = absent
	return &Place{Slot: slot, Life: s.life}
}

// Abandon gives up a life whose key is being revoked. False: that life is over already.
func (l *Layout) Abandon(slot uint32, life uint64) bool {
	s := &l.slots[slot]
	if s.life != life || s.use == absent {
		return false
	}
	s.use = absent
	if l.fill == int(slot) {
		l.fill = -1
	}
	return true
}

// Known gives the key of the n-th slot that has one, counted round: a place that may be written beside the puts.
func (l *Layout) Known(n int) (rma.Key, bool) {
	for i := range l.slots {
		if s := &l.slots[(n+i)%len(l.slots)]; s.life > 0 {
			return s.key, true
		}
	}
	return rma.Key{}, false
}
