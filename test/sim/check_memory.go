package main

import (
	"bytes"

	"railyard/rma"
)

// memoryCheck knows what every byte of one node's regions may be. Each open put has a slot of its own; whatever is not in
// a slot must be as the shadow says. When an operation is over its slot is written anew by the owner, so that even the
// right bytes, landing late, are seen.
//
// Invariant: outside of the slots of open puts, mem equals shadow.
type area struct {
	w       *World
	region  *rma.Region
	key     rma.Key
	mem     []byte
	shadow  []byte
	slots   []*slot
	writes  uint64 // versions of what the owner writes
	revoked bool
	doomed  bool // to be revoked soon: nothing new is put there
}

// slot is the part of a region that one operation uses.
type slot struct {
	area *area
	at   int
	n    int
	put  bool
	id   uint64
	lost bool // its operation ended with an unknown outcome: it may land until the revoke
	// final is what was there when the region was revoked under the operation; nil: it was not.
	final []byte
}

var areaIDs = uint64(1 << 40)

func newArea(w *World, table *rma.Table, size int, rights rma.Rights) *area {
	a := &area{w: w, mem: make([]byte, size), shadow: make([]byte, size)}
	region, err := table.Register(a.mem, rights)
	if err != nil {
		w.violate("a region of %d bytes is refused: %v", size, err)
	}
	a.region, a.key = region, region.Key()
	a.scribble(0, size)
	return a
}

// scribble is the owner's own write: new content, known to the shadow.
func (a *area) scribble(at, n int) {
	for n > 0 {
		a.writes++
		k := min(n, patternSize)
		p := pattern(areaIDs+a.key.Region()<<20+a.writes, k)
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

func (s *slot) mem() []byte    { return s.area.mem[s.at : s.at+s.n] }
func (s *slot) shadow() []byte { return s.area.shadow[s.at : s.at+s.n] }

// visible tells whether all of the put is at the target, or was when the region was revoked.
func (s *slot) visible() bool {
	have := s.mem()
	if s.final != nil {
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
	if !a.revoked {
		if !mixOf(s.mem(), s.shadow(), pattern(s.id, s.n)) {
			a.w.violate("%s left bytes at its target that are neither its own nor what was there", what)
		}
		a.scribble(s.at, s.n)
	}
	s.release()
}

// revoke takes the key back and reuses the memory at once.
func (a *area) revoke() {
	_ = a.region.Revoke()
	a.check("before its revoke")
	for _, s := range a.slots {
		if s.put {
			s.final = append([]byte{}, s.mem()...)
		} else {
			s.final = append([]byte{}, s.shadow()...)
		}
	}
	a.revoked = true
	a.scribble(0, len(a.mem))
}

// check compares everything with what it must be.
func (a *area) check(when string) {
	if a.revoked {
		if !bytes.Equal(a.mem, a.shadow) {
			a.w.violate("a region was written to after it had been revoked (%s)", when)
		}
		return
	}
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
	for _, s := range a.slots {
		if s.put && !mixOf(s.mem(), s.shadow(), pattern(s.id, s.n)) {
			a.w.violate("region %d has bytes from %d to %d that are neither the put's nor what was there (%s)",
				a.key.Region(), s.at, s.at+s.n, when)
		}
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
