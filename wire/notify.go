package wire

// Notify asks for a message to an actor once all chunks of an operation have been applied. Its
// message is at home in no generation, so it refers to names, never to slots.
type Notify struct {
	Op      OpID
	Message Message
}

// Check tells whether a peer takes the frame. The error wraps ErrMalformed and names the limit.
func (f *Notify) Check() error {
	m := &f.Message
	if m.Target.Slot != 0 || m.Sender.Slot != 0 || m.Type.Slot != 0 {
		return unsendable(KindNotify, "it refers to a slot: use names")
	}
	if err := m.Check(); err != nil {
		return err
	}
	if m.Size() > MaxNotify {
		return unsendable(KindNotify, "a body of %d bytes, at most %d are possible: "+
			"shorten its headers or its message", m.Size(), MaxNotify)
	}
	return nil
}

// Append appends the frame.
func (f *Notify) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindNotify, Body: uint32(f.Message.Size())})
	le.PutUint64(head[8:], uint64(f.Op))
	return AppendMessage(b, &f.Message)
}

// ParseNotify reads the frame. The record aliases body.
func ParseNotify(h Header, head, body []byte) (OpID, Record, error) {
	if err := (frame{h, head, body}).check(KindNotify, 16); err != nil {
		return 0, Record{}, err
	}
	rec, n, err := NextRecord(body)
	switch {
	case err != nil:
		return 0, Record{}, malformed(KindNotify, "its message: %s", reason(err))
	case n == 0:
		return 0, Record{}, malformed(KindNotify, "its message ends after the body of %d bytes", len(body))
	case n != len(body):
		return 0, Record{}, malformed(KindNotify, "%d bytes after its message", len(body)-n)
	case rec.Tag != TagMessage:
		return 0, Record{}, malformed(KindNotify, "a record of tag %d in place of its message", rec.Tag)
	case rec.Target.Slot != 0 || rec.Sender.Slot != 0 || rec.Type.Slot != 0:
		return 0, Record{}, malformed(KindNotify, "its message refers to a slot")
	}
	return OpID(le.Uint64(head[8:])), rec, nil
}
