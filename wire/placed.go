package wire

// Placed is a piece of a put whose bytes went another way: a write straight into the region, posted before this frame in
// the same ordered queue. Who reads the frame finds the bytes in place.
//
// It names no token: the region is one that Map has opened on the same generation.
type Placed struct {
	Op       OpID
	Region   uint64
	Base     uint64 // of the whole operation in the region
	Total    uint64 // bytes of the whole operation
	Position uint64 // of this piece in the operation
	Size     uint32 // bytes of this piece, from 1 to MaxChunk
	Notify   bool   // the target counts this operation's bytes
}

// Append appends the frame. It does not allocate where b has room.
func (f *Placed) Append(b []byte) []byte {
	h := Header{Kind: KindPlaced}
	if f.Notify {
		h.Flags = FlagNotify
	}
	b, head := appendHeader(b, h)
	le.PutUint64(head[8:], uint64(f.Op))
	le.PutUint64(head[16:], f.Region)
	le.PutUint64(head[24:], f.Base)
	le.PutUint64(head[32:], f.Total)
	le.PutUint64(head[40:], f.Position)
	le.PutUint32(head[48:], f.Size)
	return b
}

// ParsePlaced reads the frame. That the operation lies inside the region is not checked here: it is the operation that is
// refused for it, not the connection. It does not allocate.
func ParsePlaced(h Header, head []byte) (Placed, error) {
	if err := (frame{h, head, nil}).check(KindPlaced, 52); err != nil {
		return Placed{}, err
	}
	f := Placed{
		Op:       OpID(le.Uint64(head[8:])),
		Region:   le.Uint64(head[16:]),
		Base:     le.Uint64(head[24:]),
		Total:    le.Uint64(head[32:]),
		Position: le.Uint64(head[40:]),
		Size:     le.Uint32(head[48:]),
		Notify:   h.Flags&FlagNotify != 0,
	}
	if f.Size == 0 || f.Size > MaxChunk {
		return f, malformed(KindPlaced, "a place of %d bytes; from 1 to %d are possible", f.Size, MaxChunk)
	}
	return f, within(KindPlaced, f.Position, f.Size, f.Total)
}
