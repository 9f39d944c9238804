package wire

import "encoding/binary"

// Batch is the header of a run of records; NextRecord reads those.
type Batch struct {
	Count uint16 // messages and placeholders in the body
	Size  uint32 // bytes of the body, 1 to MaxBatchBody
}

// AppendBatchHeader appends the header of an empty batch, to be completed by PatchBatch when its
// records are there.
func AppendBatchHeader(b []byte) []byte {
	b, _ = appendHeader(b, Header{Kind: KindBatch})
	return b
}

// PatchBatch completes the batch header at the start of b: body bytes of records follow it, count
// of them messages and placeholders. A batch without records is refused by the peer.
func PatchBatch(b []byte, body int, count int) {
	le.PutUint32(b[4:], uint32(body))
	le.PutUint16(b[8:], uint16(count))
}

// ParseBatch reads a batch's header. A batch may have definitions alone, and then a count of 0. It
// does not allocate.
func ParseBatch(h Header, head []byte) (Batch, error) {
	if err := hot(h, head, KindBatch); err != nil {
		return Batch{}, err
	}
	f := Batch{Count: le.Uint16(head[8:]), Size: h.Body}
	if uint32(f.Count)*minMessage > f.Size {
		return Batch{}, malformed(KindBatch, "%d messages in a body of %d bytes", f.Count, f.Size)
	}
	return f, nil
}

// Ref names an actor or a type in a record: by slot, by name, or not at all (its zero value). With
// both, the slot goes.
type Ref struct {
	Slot uint16
	Name string // at most MaxName bytes
}

// Message is a message record.
type Message struct {
	System  bool
	Target  Ref // never none
	Sender  Ref
	Type    Ref
	Headers []byte // at most MaxHeaders
	Payload []byte // at most MaxInline
}

// Placeholder is the record that keeps a large message's place in order.
type Placeholder struct {
	System  bool
	Target  Ref // never none
	Sender  Ref
	Type    Ref
	Headers []byte // at most MaxHeaders
	ID      OpID   // of its MessageChunks
	Total   uint64 // bytes of the message, 1 to MaxTotal
}

// Check tells whether a peer takes the message. The error wraps ErrMalformed and names the limit.
func (m *Message) Check() error {
	if len(m.Payload) > MaxInline {
		return unsendable(0, "a message of %d bytes inline, at most %d may be: "+
			"send it as a large message", len(m.Payload), MaxInline)
	}
	return checkEnvelope(m.Target, m.Sender, m.Type, m.Headers)
}

// Check tells whether a peer takes the placeholder. The error wraps ErrMalformed and names the
// limit.
func (p *Placeholder) Check() error {
	if p.Total == 0 || p.Total > MaxTotal {
		return unsendable(0, "a large message of %d bytes, 1 to %d are possible", p.Total, uint64(MaxTotal))
	}
	return checkEnvelope(p.Target, p.Sender, p.Type, p.Headers)
}

func checkEnvelope(target, sender, typ Ref, headers []byte) error {
	if target == (Ref{}) {
		return unsendable(0, "a message to nobody: give it a target")
	}
	for _, r := range [...]Ref{target, sender, typ} {
		if r.Slot == 0 && len(r.Name) > MaxName {
			return unsendable(0, "a name of %d bytes, at most %d are possible: shorten it",
				len(r.Name), MaxName)
		}
	}
	if len(headers) > MaxHeaders {
		return unsendable(0, "message headers of %d bytes, at most %d are possible: shorten them",
			len(headers), MaxHeaders)
	}
	return nil
}

// Size is the number of bytes that AppendMessage appends.
func (m *Message) Size() int {
	return envelopeSize(m.Target, m.Sender, m.Type, m.Headers) +
		uvarintSize(uint64(len(m.Payload))) + len(m.Payload)
}

// Size is the number of bytes that AppendPlaceholder appends.
func (p *Placeholder) Size() int {
	return envelopeSize(p.Target, p.Sender, p.Type, p.Headers) + 8 + uvarintSize(p.Total)
}

// DefineSize is the number of bytes that AppendDefine appends.
func DefineSize(slot uint16, name string) int {
	return 1 + uvarintSize(uint64(slot)) + uvarintSize(uint64(len(name))) + len(name)
}

// AppendDefine appends a definition: slot, 1 at least, stands for name from here on.
func AppendDefine(b []byte, slot uint16, name string) []byte {
	b = append(b, byte(TagDefine))
	b = binary.AppendUvarint(b, uint64(slot))
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

// AppendMessage appends a message record. It does not allocate where b has room.
func AppendMessage(b []byte, m *Message) []byte {
	return append(AppendMessageHead(b, m, len(m.Payload)), m.Payload...)
}

// AppendMessageHead appends all of a message record but its payload, of which size bytes must be
// appended next: for who serializes straight into the batch. m.Payload is not looked at.
func AppendMessageHead(b []byte, m *Message, size int) []byte {
	b = append(b, byte(TagMessage), recordFlags(m.System, m.Headers))
	b = appendEnvelope(b, m.Target, m.Sender, m.Type)
	b = appendHeaders(b, m.Headers)
	return binary.AppendUvarint(b, uint64(size))
}

// AppendPlaceholder appends a placeholder record. It does not allocate where b has room.
func AppendPlaceholder(b []byte, p *Placeholder) []byte {
	b = append(b, byte(TagPlaceholder), recordFlags(p.System, p.Headers))
	b = appendEnvelope(b, p.Target, p.Sender, p.Type)
	b = appendHeaders(b, p.Headers)
	b = le.AppendUint64(b, uint64(p.ID))
	return binary.AppendUvarint(b, p.Total)
}

func recordFlags(system bool, headers []byte) (flags byte) {
	if system {
		flags = RecordSystem
	}
	if len(headers) > 0 {
		flags |= RecordHeaders
	}
	return flags
}

func appendEnvelope(b []byte, target, sender, typ Ref) []byte {
	return appendRef(appendRef(appendRef(b, target), sender), typ)
}

func appendHeaders(b, headers []byte) []byte {
	if len(headers) == 0 {
		return b
	}
	return append(binary.AppendUvarint(b, uint64(len(headers))), headers...)
}

func appendRef(b []byte, r Ref) []byte {
	switch {
	case r.Slot != 0:
		return binary.AppendUvarint(b, uint64(r.Slot)+1)
	case r.Name != "":
		b = append(b, 1)
		b = binary.AppendUvarint(b, uint64(len(r.Name)))
		return append(b, r.Name...)
	default:
		return append(b, 0)
	}
}

func envelopeSize(target, sender, typ Ref, headers []byte) int {
	n := 2 + refSize(target) + refSize(sender) + refSize(typ)
	if len(headers) > 0 {
		n += uvarintSize(uint64(len(headers))) + len(headers)
	}
	return n
}

func refSize(r Ref) int {
	switch {
	case r.Slot != 0:
		return uvarintSize(uint64(r.Slot) + 1)
	case r.Name != "":
		return 1 + uvarintSize(uint64(len(r.Name))) + len(r.Name)
	default:
		return 1
	}
}
