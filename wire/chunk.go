package wire

// Chunk is a piece of a put. Its payload of Size bytes follows the header and is not looked at
// here.
type Chunk struct {
	Op       OpID
	Token    Token
	Region   uint64
	Base     uint64 // of the whole operation in the region
	Total    uint64 // bytes of the whole operation
	Position uint64 // of this piece in the operation
	Size     uint32 // bytes of this piece, at most MaxChunk; 0 only if Total is 0
	Notify   bool   // the target counts this operation's bytes
}

// Append appends the header. It does not allocate where b has room.
func (f *Chunk) Append(b []byte) []byte {
	h := Header{Kind: KindChunk, Body: f.Size}
	if f.Notify {
		h.Flags = FlagNotify
	}
	b, head := appendHeader(b, h)
	le.PutUint64(head[8:], uint64(f.Op))
	copy(head[16:32], f.Token[:])
	le.PutUint64(head[32:], f.Region)
	le.PutUint64(head[40:], f.Base)
	le.PutUint64(head[48:], f.Total)
	le.PutUint64(head[56:], f.Position)
	return b
}

// ParseChunk reads a put's header. That the operation lies inside the region is not checked here:
// it is the operation that is refused for it, not the connection. It does not allocate.
func ParseChunk(h Header, head []byte) (Chunk, error) {
	if err := hot(h, head, KindChunk); err != nil {
		return Chunk{}, err
	}
	f := Chunk{
		Op:       OpID(le.Uint64(head[8:])),
		Token:    Token(head[16:32]),
		Region:   le.Uint64(head[32:]),
		Base:     le.Uint64(head[40:]),
		Total:    le.Uint64(head[48:]),
		Position: le.Uint64(head[56:]),
		Size:     h.Body,
		Notify:   h.Flags&FlagNotify != 0,
	}
	return f, within(KindChunk, f.Position, f.Size, f.Total)
}

// MessageChunk is a piece of a large message, whose placeholder travels apart. Its payload of Size
// bytes follows the header.
type MessageChunk struct {
	ID       OpID
	Position uint64 // of this piece in the message
	Total    uint64 // bytes of the whole message
	Size     uint32 // bytes of this piece, 1 to MaxChunk
}

// Append appends the header. It does not allocate where b has room.
func (f *MessageChunk) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindMessageChunk, Body: f.Size})
	le.PutUint64(head[8:], uint64(f.ID))
	le.PutUint64(head[16:], f.Position)
	le.PutUint64(head[24:], f.Total)
	return b
}

// ParseMessageChunk reads the header of a piece of a message; the piece lies inside the whole. It
// does not allocate.
func ParseMessageChunk(h Header, head []byte) (MessageChunk, error) {
	if err := hot(h, head, KindMessageChunk); err != nil {
		return MessageChunk{}, err
	}
	f := MessageChunk{
		ID:       OpID(le.Uint64(head[8:])),
		Position: le.Uint64(head[16:]),
		Total:    le.Uint64(head[24:]),
		Size:     h.Body,
	}
	return f, within(KindMessageChunk, f.Position, f.Size, f.Total)
}
