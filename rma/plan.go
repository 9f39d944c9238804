package rma

import "railyard/wire"

// Scatter is where the next bytes of a stream go: at most two buffers, in order. When the first
// lies in a region, Acquire takes the region's lease (shared) for the time of one read call.
//
// Invariant: the bytes are touched only between Acquire (true) and Release.
type Scatter struct {
	// First is filled first; it may be empty. Then is filled when First is full; it may be empty.
	First, Then []byte
	// Region owns First; nil when First is not in a region.
	Region *Region
}

// Acquire takes the lease; it never waits. False: the region has been revoked; First must not be
// touched, and the caller reports 0 bytes so that the next plan discards what is left. Release
// follows only a true.
func (s *Scatter) Acquire() bool { return s.Region == nil || s.Region.Enter() }

// Release gives the lease back.
func (s *Scatter) Release() {
	if s.Region != nil {
		s.Region.Leave()
	}
}

// Gather is what a stream writes next: buffers in order. Those that lie in a region (the answer to
// a get) are leased for the time of one write call. Its maker fills it by Reset, Add and AddPinned;
// its user brackets the write call by Acquire and Release.
//
// On a one-sided generation it also has places: writes by the card. Who takes the first n bytes of
// the plan posts, before those bytes and in their order, every place whose At is below n, and no
// other. A place's source stays in use until the place is complete.
//
// Invariant: a pinned buffer that still lies in its region is touched only between Acquire and
// Release.
//
// Invariant: size is the sum of the buffers' lengths; Acquire changes no length.
type Gather struct {
	Bufs [][]byte
	// Pins name the buffers that lie in regions, in increasing order of Index.
	Pins []Pin
	// Places are in increasing order of At.
	Places []Place
	size   int
	// held: between Acquire and Release.
	held bool
}

// Pin says that Bufs[Index] is memory of Region.
type Pin struct {
	Index  int
	Region *Region
	// Padded is set by Acquire: the region was revoked, and zeros go instead of its bytes.
	Padded bool
}

// Place is a write of Source into the peer's memory at Address, by the remote key Key.
type Place struct {
	Source  []byte
	Address uint64
	Key     uint32
	// At is how many bytes of the plan are in front of the frame that counts this place.
	At int
}

// MaxPinned is the length of the longest pinned buffer, in bytes: no chunk is longer.
const MaxPinned = wire.MaxChunk

// zeros stand in for the bytes of a revoked region. Nobody ever writes to them: untouched, they
// take address space only.
var zeros [MaxPinned]byte

// Reset empties the plan for reuse; nothing that it held stays referenced. It must not be called
// between Acquire and Release.
func (g *Gather) Reset() {
	clear(g.Bufs)
	clear(g.Pins)
	clear(g.Places)
	*g = Gather{Bufs: g.Bufs[:0], Pins: g.Pins[:0], Places: g.Places[:0]}
}

// Add puts b last. An empty one is left out.
func (g *Gather) Add(b []byte) {
	if len(b) == 0 {
		return
	}
	g.Bufs = append(g.Bufs, b)
	g.size += len(b)
}

// AddPinned puts b, memory of region, last. It is at most MaxPinned long; a longer one is a bug,
// and panics.
func (g *Gather) AddPinned(b []byte, region *Region) {
	if len(b) > MaxPinned {
		panic("rma: a pinned buffer is longer than MaxPinned")
	}
	if len(b) == 0 {
		return
	}
	g.Pins = append(g.Pins, Pin{Index: len(g.Bufs), Region: region})
	g.Add(b)
}

// AddPlace has p posted with the bytes from p.At on. It takes no room in the stream.
func (g *Gather) AddPlace(p Place) { g.Places = append(g.Places, p) }

// Size is how many bytes the plan holds, places not counted.
func (g *Gather) Size() int { return g.size }

// Acquire takes the lease of each pin; it never waits. Where a region has been revoked, zeros take
// the place of its bytes for good, and the pin is marked Padded: the stream stays in step. Release
// must follow.
func (g *Gather) Acquire() {
	g.held = true
	for i := range g.Pins {
		pin := &g.Pins[i]
		if !pin.Padded && !pin.Region.Enter() {
			pin.Padded = true
			g.Bufs[pin.Index] = zeros[:len(g.Bufs[pin.Index])]
		}
	}
}

// Release gives back what Acquire took; without an Acquire it does nothing.
func (g *Gather) Release() {
	if !g.held {
		return
	}
	g.held = false
	for i := range g.Pins {
		if !g.Pins[i].Padded {
			g.Pins[i].Region.Leave()
		}
	}
}
