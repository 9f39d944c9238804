package wire

// Map asks for the remote key of a region, for writes by a card on the generation that carries the question.
type Map struct {
	Ask    uint64 // numbers the question in its generation, from 1
	Region uint64
	Token  Token
}

// Append appends the frame.
func (f *Map) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindMap})
	le.PutUint64(head[8:], f.Ask)
	copy(head[16:32], f.Token[:])
	le.PutUint64(head[32:], f.Region)
	return b
}

// ParseMap reads the frame.
func ParseMap(h Header, head []byte) (Map, error) {
	if err := (frame{h, head, nil}).check(KindMap, 40); err != nil {
		return Map{}, err
	}
	return Map{Ask: le.Uint64(head[8:]), Token: Token(head[16:32]), Region: le.Uint64(head[32:])}, nil
}

// Mapped answers a Map. With CodeOK the region lies at Address for a card that presents Key, on this generation alone. With
// CodeLimit or CodeInternal it has no key, and its puts go by chunks; with any other code the claim is refused.
type Mapped struct {
	Ask     uint64
	Code    Code
	Key     uint32
	Address uint64
	Length  uint64 // bytes of the region; 0 unless Code is OK
}

// Append appends the frame.
func (f *Mapped) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindMapped})
	le.PutUint64(head[8:], f.Ask)
	head[16] = byte(f.Code)
	le.PutUint32(head[20:], f.Key)
	le.PutUint64(head[24:], f.Address)
	le.PutUint64(head[32:], f.Length)
	return b
}

// ParseMapped reads the frame. A region that it opens ends within the 64 bits of addresses.
func ParseMapped(h Header, head []byte) (Mapped, error) {
	if err := (frame{h, head, nil}).check(KindMapped, 40); err != nil {
		return Mapped{}, err
	}
	if err := zeros(KindMapped, head, 17, 20); err != nil {
		return Mapped{}, err
	}
	f := Mapped{Ask: le.Uint64(head[8:]), Code: Code(head[16]), Key: le.Uint32(head[20:]), Address: le.Uint64(head[24:]),
		Length: le.Uint64(head[32:])}
	switch {
	case !f.Code.Known():
		return f, malformed(KindMapped, "unknown code %d", head[16])
	case f.Code != CodeOK && (f.Key != 0 || f.Address != 0 || f.Length != 0):
		return f, malformed(KindMapped, "the answer %v with a key", f.Code)
	case f.Code == CodeOK && (f.Length == 0 || f.Address+f.Length < f.Address):
		return f, malformed(KindMapped, "a region of %d bytes at %#x", f.Length, f.Address)
	}
	return f, nil
}
