package main

import (
	"bytes"

	"railyard/rma"
)

// area is memory of one node that it registers for a peer, and what every byte of it may be. Each open put has a slot of
// its own; whatever is not in a slot must be as the shadow says. When an operation is over its slot is written anew by the
// owner, so that even the right bytes, landing late, are seen. A revoke keeps the memory and registers it again: whoever
// still writes by the old key hits what is in use by the new one.
//
// Invariant: outside of the slots of open puts, mem equals shadow.
type area struct {
	w      *World
	node   *Node
	table  *rma.Table
	rights rma.Rights
	region *rma.Region
	key    rma.Key
	old    rma.Key // the last one that was revoked; zero: none was
	mem    []byte
	shadow []byte
	slots  []*slot
	writes uint64 // versions of what the owner writes
	doomed bool   // to be revoked soon: nothing new is put there
}

// slot is the part of a region that one operation uses.
type slot struct {
	area *area
	at   int
	n    int
	put  bool
	id   uint64
	// revoked: the key was taken back under the operation; final is what was there then.
	revoked bool
	final   []byte
}

func newArea(n *Node, rights rma.Rights, size int) *area {
	a := &area{w: n.w, node: n, table: n.regions, rights: rights, mem: make([]byte, size), shadow: make([]byte, size)}
	a.register()
	a.scribble(0, size)
	return a
}

func (a *area) register() {
	region, err := a.table.Register(a.mem, a.rights)
	if err != nil {
		a.w.violate("a region of %d bytes is refused: %v", len(a.mem), err)
	}
	a.region, a.key = region, region.Key()
}

// scribble is the owner's own write: new content, known to the shadow.
func (a *area) scribble(at, n int) {
	for n > 0 {
		a.writes++
		k := min(n, patternSize)
		p := pattern(1<<63|a.key.Region()<<32|a.writes, k)
		copy(a.mem[at:at+k], p)
		copy(a.shadow[at:at+k], p)
		at, n = at+k, n-k
	}
}

// reserve finds a slot of n bytes that overlaps with nobody's. Gets may share. Nil: no room.
func (a *area) reserve(n int, put bool, id uint64) *slot {
	for range 20 {
		at := a.w.number(0, len(a.mem)-n)
		if a.free(at, n, put) {
			s := &slot{area: a, at: at, n: n, put: put, id: id}
			a.slots = append(a.slots, s)
			return s
		}
	}
	return nil
}

func (a *area) free(at, n int, put bool) bool {
	for _, s := range a.slots {
		if (put || s.put) && at < s.at+s.n && s.at < at+n {
			return false
		}
	}
	return true
}

func (s *slot) release() {
	a := s.area
	for i, have := range a.slots {
		if have == s {
			a.slots = append(a.slots[:i], a.slots[i+1:]...)
			return
		}
	}
}

func (s *slot) mem() []byte { return s.area.mem[s.at : s.at+s.n] }

// before is what was there before the operation, and outside of the reach of puts.
func (s *slot) before() []byte {
	if s.revoked && !s.put {
		return s.final
	}
	return s.area.shadow[s.at : s.at+s.n]
}

// visible tells whether all of the put is at the target, or was when the region was revoked.
func (s *slot) visible() bool {
	have := s.mem()
	if s.revoked {
		have = s.final
	}
	return bytes.Equal(have, pattern(s.id, s.n))
}

// over ends the slot of a put: what is there is checked, and then nothing may change it any more.
func (s *slot) over(what string, complete bool) {
	a := s.area
	if complete && !s.visible() {
		a.w.violate("%s completed, but not all of its bytes are visible", what)
	}
	if s.revoked {
		return
	}
	s.mixed(what + " at its end")
	a.scribble(s.at, s.n)
	s.release()
}

// mixed: in the slot of an open put every byte is the put's or what was there before.
func (s *slot) mixed(what string) {
	if !mixOf(s.mem(), s.before(), pattern(s.id, s.n)) {
		s.area.w.violate("%s: region %d has bytes from %d to %d that are neither the put's nor what was there",
			what, s.area.key.Region(), s.at, s.at+s.n)
	}
}

// revoke takes the key back and uses the memory for something else at once.
func (a *area) revoke() {
	_ = a.region.Revoke()
	slots := a.slots
	a.slots = nil
	for _, s := range slots {
		s.final = append([]byte{}, s.mem()...)
		if s.put {
			s.mixed("before a revoke")
		}
	}
	for _, s := range slots {
		s.revoked = true
		a.scribble(s.at, s.n)
	}
	a.old, a.doomed = a.key, false
	a.register()
}

// check compares everything with what it must be.
func (a *area) check(when string) {
	at := 0
	for at < len(a.mem) { // the stretches between the slots of puts
		end, next := len(a.mem), len(a.mem)
		for _, s := range a.slots {
			if s.put && s.n > 0 && s.at+s.n > at && s.at < end {
				end, next = max(s.at, at), s.at+s.n
			}
		}
		if !bytes.Equal(a.mem[at:end], a.shadow[at:end]) {
			a.w.violate("region %d was written to between %d and %d, where no open put has a slot (%s)",
				a.key.Region(), at, end, when)
		}
		at = next
	}
}

// buffers are destinations of gets that are over: nobody may write to them.
type graveBuffer struct {
	b    []byte
	what string
}

// look sees whether a buffer that was given back has been written to.
func (w *World) look(g graveBuffer) {
	if !isAll(g.b, poison) {
		w.violate("the buffer of %s was written to after its end", g.what)
	}
}
