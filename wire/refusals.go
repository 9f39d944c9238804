package wire

// RefusalSize is the length of one encoded refusal in bytes: {frame u64, op u64, code u8, 7 zero}.
const RefusalSize = 24

// Refusal says that a counted frame was taken off the stream but not applied.
type Refusal struct {
	Frame uint64 // its number in its generation; the first is 1
	Op    OpID   // its operation or large message; 0 for other frames
	Code  Code   // never OK
}

// Refusals is a list in its encoded form, so that a frame that carries it neither copies nor
// allocates. Only ParseRefusals and Add make valid ones; nil is the empty list.
type Refusals []byte

// Add appends one. The caller keeps the list within MaxRefusals.
func (r Refusals) Add(x Refusal) Refusals {
	at := len(r)
	r = append(r, make([]byte, RefusalSize)...)
	le.PutUint64(r[at:], x.Frame)
	le.PutUint64(r[at+8:], uint64(x.Op))
	r[at+16] = byte(x.Code)
	return r
}

// Len is the number of refusals.
func (r Refusals) Len() int { return len(r) / RefusalSize }

// At gives the refusal with index i, 0 to Len()-1.
func (r Refusals) At(i int) Refusal {
	b := r[i*RefusalSize : (i+1)*RefusalSize]
	return Refusal{
		Frame: le.Uint64(b),
		Op:    OpID(le.Uint64(b[8:])),
		Code:  Code(b[16]),
	}
}

// ParseRefusals checks a list that travels with a count: each of them is about a frame that the
// count covers. The result aliases b. It does not allocate.
func ParseRefusals(b []byte, count uint64) (Refusals, error) { return parseRefusals(0, b, count) }

func parseRefusals(k Kind, b []byte, count uint64) (Refusals, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b)%RefusalSize != 0 {
		return nil, malformed(k, "refusals of %d bytes, not a multiple of %d", len(b), RefusalSize)
	}
	r := Refusals(b)
	if r.Len() > MaxRefusals {
		return nil, malformed(k, "%d refusals, over the limit of %d", r.Len(), MaxRefusals)
	}
	for i := range r.Len() {
		x := r.At(i)
		switch {
		case x.Code == CodeOK || !x.Code.Known():
			return nil, malformed(k, "refusal %d has the code %v", i, x.Code)
		case x.Frame == 0 || x.Frame > count:
			return nil, malformed(k, "refusal %d is about frame %d, outside the count of %d",
				i, x.Frame, count)
		case le.Uint64(r[i*RefusalSize+16:])>>8 != 0:
			return nil, malformed(k, "refusal %d has unused bytes that are not zero", i)
		}
	}
	return r, nil
}
