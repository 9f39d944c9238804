package wire

// Retired says that the sender has fenced a generation and how far it had got in it. It is state,
// resent on every live lane until it is answered by the same frame in the other direction.
//
// Invariant: Refusals has every refused frame up to Count that the peer is not known to have heard
// of.
type Retired struct {
	Rail       RailID
	Generation Generation
	Count      uint64 // counted frames of this generation applied, for good
	HaveYours  bool   // no answer needed: the receiver's count is known
	Done       bool   // the sender has forgotten the generation or never had it: never answered
	Rejected   bool   // the frame after Count was malformed and went down with the generation
	Refusals   Refusals
}

// Append appends the frame.
func (f *Retired) Append(b []byte) []byte {
	h := Header{Kind: KindRetired, Body: uint32(len(f.Refusals))}
	if f.HaveYours {
		h.Flags |= FlagHaveYours
	}
	if f.Done {
		h.Flags |= FlagDone
	}
	if f.Rejected {
		h.Flags |= FlagRejected
	}
	b, head := appendHeader(b, h)
	le.PutUint16(head[8:], uint16(f.Rail))
	le.PutUint64(head[16:], uint64(f.Generation))
	le.PutUint64(head[24:], f.Count)
	return append(b, f.Refusals...)
}

// ParseRetired reads the frame. Its Refusals alias body.
func ParseRetired(h Header, head, body []byte) (Retired, error) {
	if err := (frame{h, head, body}).check(KindRetired, 32); err != nil {
		return Retired{}, err
	}
	if err := zeros(KindRetired, head, 10, 16); err != nil {
		return Retired{}, err
	}
	f := Retired{
		Rail:       RailID(le.Uint16(head[8:])),
		Generation: Generation(le.Uint64(head[16:])),
		Count:      le.Uint64(head[24:]),
		HaveYours:  h.Flags&FlagHaveYours != 0,
		Done:       h.Flags&FlagDone != 0,
		Rejected:   h.Flags&FlagRejected != 0,
	}
	var err error
	f.Refusals, err = parseRefusals(KindRetired, body, f.Count)
	return f, err
}
