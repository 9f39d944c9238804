package wire

// Verdict is the target's one answer to a Cancel: OK where the operation had completed, Canceled
// where nothing more of it will be applied.
type Verdict struct {
	Op   OpID
	Code Code
}

// Append appends the frame.
func (f *Verdict) Append(b []byte) []byte { return appendVerdict(b, KindVerdict, f.Op, f.Code) }

// ParseVerdict reads the frame.
func ParseVerdict(h Header, head []byte) (Verdict, error) {
	op, code, err := parseVerdict(h, head, KindVerdict)
	return Verdict{Op: op, Code: code}, err
}

// appendVerdict writes the layout that GetDone and Verdict share.
func appendVerdict(b []byte, k Kind, op OpID, code Code) []byte {
	b, head := appendHeader(b, Header{Kind: k})
	le.PutUint64(head[8:], uint64(op))
	head[16] = byte(code)
	return b
}

func parseVerdict(h Header, head []byte, k Kind) (OpID, Code, error) {
	if err := (frame{h, head, nil}).check(k, 17); err != nil {
		return 0, 0, err
	}
	code := Code(head[16])
	if !code.Known() {
		return 0, 0, malformed(k, "unknown code %d", head[16])
	}
	return OpID(le.Uint64(head[8:])), code, nil
}
