package wire

// GetRequest asks for bytes of the receiver's region.
type GetRequest struct {
	Op     OpID
	Token  Token
	Region uint64
	Offset uint64 // absolute in the region
	Length uint64 // bytes
}

// Append appends the frame.
func (f *GetRequest) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindGetRequest})
	le.PutUint64(head[8:], uint64(f.Op))
	copy(head[16:32], f.Token[:])
	le.PutUint64(head[32:], f.Region)
	le.PutUint64(head[40:], f.Offset)
	le.PutUint64(head[48:], f.Length)
	return b
}

// ParseGetRequest reads the frame. Bounds and rights are the region table's to check.
func ParseGetRequest(h Header, head []byte) (GetRequest, error) {
	if err := (frame{h, head, nil}).check(KindGetRequest, 56); err != nil {
		return GetRequest{}, err
	}
	return GetRequest{
		Op:     OpID(le.Uint64(head[8:])),
		Token:  Token(head[16:32]),
		Region: le.Uint64(head[32:]),
		Offset: le.Uint64(head[40:]),
		Length: le.Uint64(head[48:]),
	}, nil
}

// GetData is a piece of the answer to a get. Its payload of Size bytes follows the header.
type GetData struct {
	Op       OpID
	Position uint64 // of this piece in the answer
	Total    uint64 // bytes of the whole answer
	Size     uint32 // bytes of this piece, at most MaxChunk; 0 only if Total is 0
	Final    bool   // this frame is itself the verdict OK
}

// Append appends the header. It does not allocate where b has room.
func (f *GetData) Append(b []byte) []byte {
	h := Header{Kind: KindGetData, Body: f.Size}
	if f.Final {
		h.Flags = FlagFinal
	}
	b, head := appendHeader(b, h)
	le.PutUint64(head[8:], uint64(f.Op))
	le.PutUint64(head[16:], f.Position)
	le.PutUint64(head[24:], f.Total)
	return b
}

// ParseGetData reads the header of a piece of an answer; the piece lies inside the whole. It does
// not allocate.
func ParseGetData(h Header, head []byte) (GetData, error) {
	if err := hot(h, head, KindGetData); err != nil {
		return GetData{}, err
	}
	f := GetData{
		Op:       OpID(le.Uint64(head[8:])),
		Position: le.Uint64(head[16:]),
		Total:    le.Uint64(head[24:]),
		Size:     h.Body,
		Final:    h.Flags&FlagFinal != 0,
	}
	return f, within(KindGetData, f.Position, f.Size, f.Total)
}

// GetDone is the verdict on a get: only now are the bytes the initiator's.
type GetDone struct {
	Op   OpID
	Code Code
}

// Append appends the frame.
func (f *GetDone) Append(b []byte) []byte { return appendVerdict(b, KindGetDone, f.Op, f.Code) }

// ParseGetDone reads the frame.
func ParseGetDone(h Header, head []byte) (GetDone, error) {
	op, code, err := parseVerdict(h, head, KindGetDone)
	return GetDone{Op: op, Code: code}, err
}
