package wire

// Tag is the first byte of a record in a batch.
type Tag uint8

// The tags of records.
const (
	TagDefine      Tag = 1 // names a slot; not counted
	TagMessage     Tag = 2 // a message with its payload
	TagPlaceholder Tag = 3 // the place of a large message; its payload is MessageChunks
)

// Flags of message and placeholder records.
const (
	RecordSystem  uint8 = 1 // a message of the actor system
	RecordHeaders uint8 = 2 // headers are there
)

// Sizes in bytes that records never exceed.
const (
	maxRef = 1 + 2 + MaxName

	// MaxRecord bounds every record: a reader that can hold as much never has to wait for room.
	MaxRecord = 2 + 3*maxRef + 2 + MaxHeaders + 3 + MaxInline
	// MaxTotal bounds the size of a large message in a placeholder.
	MaxTotal = 1<<63 - 1

	// minMessage is the shortest message record: tag, flags, target slot, two absent refs, size.
	minMessage = 6
)

// RefView is a reference as it was read: a slot, or a name that aliases the input, or neither.
type RefView struct {
	Slot   uint16 // 1 to MaxSlot; 0: no slot
	Inline []byte // nil: no name
}

// None tells whether nobody is referred to.
func (r RefView) None() bool { return r.Slot == 0 && r.Inline == nil }

// Record is one record of a batch. Its slices alias the input.
type Record struct {
	Tag   Tag
	Flags uint8  // message, placeholder
	Slot  uint16 // define
	Name  []byte // define

	Target  RefView // message, placeholder; never none
	Sender  RefView
	Type    RefView
	Headers []byte // nil: none
	Payload []byte // message
	ID      OpID   // placeholder
	Total   uint64 // placeholder: bytes of the large message, 1 at least
}

// Counted tells whether the record is one of those that the batch's count includes.
func (r *Record) Counted() bool { return r.Tag != TagDefine }

// System tells whether it is a message of the actor system.
func (r *Record) System() bool { return r.Flags&RecordSystem != 0 }

// NextRecord reads the record at the start of b and gives its length n. While b ends inside the
// record n is 0 and err nil: call again with more bytes. b must not reach beyond the batch's body;
// where the body ends with n == 0 the batch is malformed. A length over its limit is an error as
// soon as it can be read, so a record that is waited for has at most MaxRecord bytes. The error
// wraps ErrMalformed.
func NextRecord(b []byte) (rec Record, n int, err error) {
	c := cursor{b: b}
	rec.Tag = Tag(c.byte())
	switch {
	case c.err != nil:
	case rec.Tag == TagDefine:
		rec.Slot = uint16(c.uvarint("the slot of a definition", 1, MaxSlot))
		rec.Name = c.name("the length of a definition's name")
	case rec.Tag == TagMessage:
		c.envelope(&rec)
		rec.Payload = c.bytes(c.uvarint("the payload's size", 0, MaxInline))
	case rec.Tag == TagPlaceholder:
		c.envelope(&rec)
		rec.ID = OpID(c.uint64())
		rec.Total = c.uvarint("the large message's size", 1, MaxTotal)
	default:
		c.err = malformed(KindBatch, "unknown record tag %d", rec.Tag)
	}
	switch c.err {
	case nil:
		return rec, c.at, nil
	case errShort: //nolint:errorlint // it is the cursor's own and is never wrapped
		return Record{}, 0, nil
	default:
		return Record{}, 0, c.err
	}
}

var (
	labelTarget = label{"the target's slot", "the target's length"}
	labelSender = label{"the sender's slot", "the sender's length"}
	labelType   = label{"the type's slot", "the type's length"}
)

// envelope reads what messages and placeholders share.
func (c *cursor) envelope(rec *Record) {
	rec.Flags = c.byte()
	if rec.Flags&^(RecordSystem|RecordHeaders) != 0 {
		c.fail("unknown record flags %#x", uint64(rec.Flags))
		return
	}
	rec.Target = c.ref(&labelTarget)
	if c.err == nil && rec.Target.None() {
		c.fail("a record of tag %d without a target", uint64(rec.Tag))
		return
	}
	rec.Sender = c.ref(&labelSender)
	rec.Type = c.ref(&labelType)
	if rec.Flags&RecordHeaders != 0 {
		rec.Headers = c.bytes(c.uvarint("the headers' length", 1, MaxHeaders))
	}
}
