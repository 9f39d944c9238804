package wire

// Beat is a heartbeat and the answer to the peer's. It is uncounted and never resent.
type Beat struct {
	Seq  uint64
	Echo uint64 // the newest seq of the peer that this answers; 0: none
	Held uint64 // nanoseconds between hearing that seq and this answer
	Seen uint64 // the highest count of the peer's Acks that was processed on this generation
}

// Append appends the frame. It does not allocate where b has room.
func (f *Beat) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindBeat})
	le.PutUint64(head[8:], f.Seq)
	le.PutUint64(head[16:], f.Echo)
	le.PutUint64(head[24:], f.Held)
	le.PutUint64(head[32:], f.Seen)
	return b
}

// ParseBeat reads the frame. It does not allocate.
func ParseBeat(h Header, head []byte) (Beat, error) {
	if err := (frame{h, head, nil}).check(KindBeat, 40); err != nil {
		return Beat{}, err
	}
	return Beat{
		Seq:  le.Uint64(head[8:]),
		Echo: le.Uint64(head[16:]),
		Held: le.Uint64(head[24:]),
		Seen: le.Uint64(head[32:]),
	}, nil
}

// Credit raises what the receiver may send in messages. It is absolute: a repeated or late one
// changes nothing.
type Credit struct {
	Granted uint64 // total bytes of messages since the epoch began
}

// Append appends the frame.
func (f *Credit) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindCredit})
	le.PutUint64(head[8:], f.Granted)
	return b
}

// ParseCredit reads the frame.
func ParseCredit(h Header, head []byte) (Credit, error) {
	if err := (frame{h, head, nil}).check(KindCredit, 16); err != nil {
		return Credit{}, err
	}
	return Credit{Granted: le.Uint64(head[8:])}, nil
}
