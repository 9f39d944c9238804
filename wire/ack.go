package wire

// Ack reports how far the receiver of counted frames has got in one generation. It is absolute: a
// newer one replaces all older ones.
//
// Invariant: Refusals has every refused frame up to Count that the peer is not known to have heard
// of.
type Ack struct {
	Count    uint64 // counted frames of this generation applied in order
	Seen     uint64 // the highest count of the peer's Acks that was processed on this generation
	Refusals Refusals
}

// Append appends the frame. It does not allocate where b has room.
func (f *Ack) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindAck, Body: uint32(len(f.Refusals))})
	le.PutUint64(head[8:], f.Count)
	le.PutUint64(head[16:], f.Seen)
	return append(b, f.Refusals...)
}

// ParseAck reads the frame. Its Refusals alias body. It does not allocate.
func ParseAck(h Header, head, body []byte) (Ack, error) {
	if err := (frame{h, head, body}).check(KindAck, 24); err != nil {
		return Ack{}, err
	}
	f := Ack{Count: le.Uint64(head[8:]), Seen: le.Uint64(head[16:])}
	var err error
	f.Refusals, err = parseRefusals(KindAck, body, f.Count)
	return f, err
}
