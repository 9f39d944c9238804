package wire

// markSize is the length of one encoded mark in bytes: {rail u16, 6 zero, generation u64, frame
// u64}.
const markSize = 24

// Mark names a point in the stream of one generation: after its counted frame number Frame.
type Mark struct {
	Rail       RailID
	Generation Generation
	Frame      uint64 // 0: before the first
}

func appendMarks(b []byte, marks []Mark) []byte {
	for i := range marks {
		m := &marks[i]
		b = le.AppendUint64(b, uint64(m.Rail))
		b = le.AppendUint64(b, uint64(m.Generation))
		b = le.AppendUint64(b, m.Frame)
	}
	return b
}

func parseMarks(k Kind, body []byte) ([]Mark, error) {
	if len(body)%markSize != 0 {
		return nil, malformed(k, "marks of %d bytes, not a multiple of %d", len(body), markSize)
	}
	n := len(body) / markSize
	switch {
	case n > MaxMarks:
		return nil, malformed(k, "%d marks, over the limit of %d", n, MaxMarks)
	case n == 0:
		return nil, nil
	}
	marks := make([]Mark, n)
	for i := range marks {
		b := body[i*markSize:]
		rail := le.Uint64(b)
		if rail > 1<<16-1 {
			return nil, malformed(k, "mark %d has unused bytes that are not zero", i)
		}
		marks[i] = Mark{
			Rail:       RailID(rail),
			Generation: Generation(le.Uint64(b[8:])),
			Frame:      le.Uint64(b[16:]),
		}
	}
	return marks, nil
}

// Cancel takes an operation back. It goes over any live lane.
type Cancel struct {
	Op OpID
	// Marks has, for each generation that carried the operation, its last frame: the tombstone
	// is kept until each of them is passed or fenced. At most MaxMarks.
	Marks []Mark
}

// Append appends the frame.
func (f *Cancel) Append(b []byte) []byte {
	h := Header{Kind: KindCancel, Body: uint32(markSize * len(f.Marks))}
	b, head := appendHeader(b, h)
	le.PutUint64(head[8:], uint64(f.Op))
	return appendMarks(b, f.Marks)
}

// ParseCancel reads the frame.
func ParseCancel(h Header, head, body []byte) (Cancel, error) {
	if err := (frame{h, head, body}).check(KindCancel, 16); err != nil {
		return Cancel{}, err
	}
	marks, err := parseMarks(KindCancel, body)
	if err != nil {
		return Cancel{}, err
	}
	return Cancel{Op: OpID(le.Uint64(head[8:])), Marks: marks}, nil
}

// GoodbyeReason says why a node leaves. A receiver takes an unknown one as it is.
type GoodbyeReason uint8

// GoodbyeShutdown is a shutdown in good order.
const GoodbyeShutdown GoodbyeReason = 0

// Goodbye ends the session.
type Goodbye struct {
	Reason GoodbyeReason
	// Marks has each lane's final count of applied frames; empty where everything was acknowledged.
	// At most MaxMarks.
	Marks []Mark
}

// Append appends the frame.
func (f *Goodbye) Append(b []byte) []byte {
	h := Header{Kind: KindGoodbye, Body: uint32(markSize * len(f.Marks))}
	b, head := appendHeader(b, h)
	head[8] = byte(f.Reason)
	return appendMarks(b, f.Marks)
}

// ParseGoodbye reads the frame.
func ParseGoodbye(h Header, head, body []byte) (Goodbye, error) {
	if err := (frame{h, head, body}).check(KindGoodbye, 9); err != nil {
		return Goodbye{}, err
	}
	marks, err := parseMarks(KindGoodbye, body)
	if err != nil {
		return Goodbye{}, err
	}
	return Goodbye{Reason: GoodbyeReason(head[8]), Marks: marks}, nil
}
