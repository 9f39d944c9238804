package load

import (
	"bytes"
	"hash/crc32"
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum of everything that the load checks.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// guardByte is what memory holds that nobody may write. Puts carry random bytes.
const guardByte = 0xC9

// guardPage makes painting and looking fast.
var guardPage = bytes.Repeat([]byte{guardByte}, 64<<10)

// Finding is what the target makes of news about a put.
type Finding uint8

// The findings.
const (
	Good    Finding = iota
	Corrupt         // the bytes are not those that were sent, or the range is nonsense
	Again           // the target had been told already
	Undead          // a put was both canceled and completed
)

// Ground is one slot of the target's memory, in one life.
//
// Invariant: every byte outside of the puts under way is guardByte. Owner: the target actor.
type Ground struct {
	memory []byte
	landed map[uint64]struct{}
	taken  map[uint64]struct{} // puts that their initiator took back
}

// NewGround paints memory and watches over it.
func NewGround(memory []byte) *Ground {
	g := &Ground{memory: memory}
	g.Begin()
	return g
}

// Begin starts a life.
func (g *Ground) Begin() {
	g.landed, g.taken = map[uint64]struct{}{}, map[uint64]struct{}{}
	paint(g.memory)
}

// Landed checks the bytes of a put that has completed, and paints over them.
func (g *Ground) Landed(put, offset, length uint64, sum uint32) Finding {
	if _, ok := g.landed[put]; ok {
		return Again
	}
	if _, ok := g.taken[put]; ok {
		return Undead
	}
	g.landed[put] = struct{}{}
	b, ok := g.part(offset, length)
	if !ok || Sum(b) != sum {
		return Corrupt
	}
	paint(b)
	return Good
}

// TookBack paints over what a canceled put may have written.
func (g *Ground) TookBack(put, offset, length uint64) Finding {
	if _, ok := g.landed[put]; ok {
		return Undead
	}
	g.taken[put] = struct{}{}
	b, ok := g.part(offset, length)
	if !ok {
		return Corrupt
	}
	paint(b)
	return Good
}

// Sweep looks for bytes that are not the guard's, gives the number of places, and paints over them.
func (g *Ground) Sweep() int {
	places := 0
	for rest := g.memory; len(rest) > 0; {
		page := rest[:min(len(rest), len(guardPage))]
		rest = rest[len(page):]
		if bytes.Equal(page, guardPage[:len(page)]) {
			continue
		}
		places += wounds(page)
		paint(page)
	}
	return places
}

// wounds counts the runs of bytes that are not the guard's. A few guard bytes between two do not part them: random
// bytes hold some by chance.
func wounds(page []byte) int {
	const apart = 16
	runs, clean := 0, apart
	for _, b := range page {
		if b == guardByte {
			clean++
			continue
		}
		if clean >= apart {
			runs++
		}
		clean = 0
	}
	return runs
}

func (g *Ground) part(offset, length uint64) ([]byte, bool) {
	size := uint64(len(g.memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return g.memory[offset : offset+length], true
}

func paint(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, guardPage):]
	}
}
