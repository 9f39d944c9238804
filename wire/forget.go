package wire

// Forget tells the target that the initiator has heard the outcome of these operations: what it
// keeps about them can go.
type Forget struct {
	Ops []OpID // 1 to MaxForget
}

// Append appends the frame.
func (f *Forget) Append(b []byte) []byte {
	b, head := appendHeader(b, Header{Kind: KindForget, Body: uint32(8 * len(f.Ops))})
	le.PutUint16(head[8:], uint16(len(f.Ops)))
	for _, op := range f.Ops {
		b = le.AppendUint64(b, uint64(op))
	}
	return b
}

// ParseForget reads the frame. The header has bounded its list.
func ParseForget(h Header, head, body []byte) (Forget, error) {
	if err := (frame{h, head, body}).check(KindForget, 10); err != nil {
		return Forget{}, err
	}
	n := int(le.Uint16(head[8:]))
	if 8*n != len(body) {
		return Forget{}, malformed(KindForget, "%d operations in a body of %d bytes", n, len(body))
	}
	ops := make([]OpID, n)
	for i := range ops {
		ops[i] = OpID(le.Uint64(body[8*i:]))
	}
	return Forget{Ops: ops}, nil
}
