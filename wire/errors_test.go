package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with changes bytes of a frame.
func with(b []byte, at int, bytes ...byte) []byte {
	b = append([]byte(nil), b...)
	copy(b[at:], bytes)
	return b
}

// sized makes a header of kind k with a body length that need not be true.
func sized(k Kind, body uint32) []byte {
	b, _ := appendHeader(nil, Header{Kind: k, Body: body})
	return b
}

// bad is a frame that must be refused, and a part of the reason that must be given.
type bad struct {
	name  string
	frame []byte
	want  string
}

// refuse checks the error of each, and that no two share a message.
func refuse(t *testing.T, tests []bad, parse func(b []byte) error) {
	t.Helper()
	seen := map[string]string{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := parse(tt.frame)
			require.ErrorContains(t, err, tt.want)
			require.ErrorIs(t, err, ErrMalformed)
			var typed *Error
			require.ErrorAs(t, err, &typed)
			assert.NotEmpty(t, typed.Reason)
			other, again := seen[err.Error()]
			assert.False(t, again, "the message of %q too: %v", other, err)
			seen[err.Error()] = tt.name
		})
	}
}

// parse is what reencode does, its error alone.
func parse(b []byte) error {
	_, _, _, err := reencode(b)
	return err
}

func TestHeaderErrors(t *testing.T) {
	beat := (&Beat{Seq: 1}).Append(nil)
	refuse(t, []bad{
		{"nothing", nil, "header of 0 bytes"},
		{"short", beat[:63], "header of 63 bytes where 64"},
		{"kind 0", make([]byte, 64), "unknown kind 0"},
		{"kind in a gap", with(beat, 0, 10), "unknown kind 10"},
		{"last kind", with(beat, 0, 255), "unknown kind 255"},
		{"flag of no kind", with(beat, 1, 0x80), "unknown flags 0x80"},
		{"flag of another kind", with(sized(KindBatch, 1), 1, 1), "unknown flags 0x1"},
		{"reserved byte 2", with(beat, 2, 1), "reserved bytes"},
		{"reserved byte 3", with(sized(KindCredit, 0), 3, 1), "reserved bytes"},
	}, parse)
}

func TestBodyLimitsOfEveryKind(t *testing.T) {
	limits := map[Kind][2]uint32{
		KindBatch: {1, 256 << 10}, KindChunk: {0, 4 << 20}, KindMessageChunk: {1, 4 << 20}, KindGetRequest: {0, 0},
		KindGetData: {0, 4 << 20}, KindGetDone: {0, 0}, KindNotify: {6, 36 << 10}, KindForget: {8, 8 * 1024},
		KindBeat: {0, 0}, KindAck: {0, 24 * 1024}, KindCredit: {0, 0}, KindRetired: {0, 24 * 1024},
		KindCancel: {0, 24 * 256}, KindVerdict: {0, 0}, KindGoodbye: {0, 24 * 256},
		KindPlaced: {0, 0}, KindMap: {0, 0}, KindMapped: {0, 0},
		KindChallenge: {0, 64 << 10}, KindHello: {0, 64 << 10}, KindAnswer: {0, 64 << 10}, KindConfirm: {0, 64 << 10},
	}
	for k := range kindEnd {
		if !k.Known() {
			continue
		}
		least, most := limits[k][0], limits[k][1]
		for _, n := range []uint32{least, most} {
			h, err := ParseHeader(sized(k, n))
			require.NoError(t, err, "%v of %d", k, n)
			assert.Equal(t, Header{Kind: k, Body: n}, h)
		}
		for _, n := range []uint32{most + 1, 1<<32 - 1} {
			_, err := ParseHeader(sized(k, n))
			require.ErrorIs(t, err, ErrMalformed, "%v of %d", k, n)
			require.ErrorContains(t, err, "over the limit")
		}
		if least > 0 {
			_, err := ParseHeader(sized(k, least-1))
			require.ErrorIs(t, err, ErrMalformed, "%v of %d", k, least-1)
			require.ErrorContains(t, err, "below the least")
		}
	}
}

func TestUnusedBytesOfControlFramesAreZero(t *testing.T) {
	unused := map[Kind][]int{
		KindGetRequest: {56, 63}, KindGetDone: {17, 63}, KindNotify: {16, 63}, KindForget: {10, 63},
		KindBeat: {40, 63}, KindAck: {24, 63}, KindCredit: {16, 63}, KindRetired: {10, 15, 32, 63},
		KindCancel: {16, 63}, KindVerdict: {17, 63}, KindGoodbye: {9, 63},
		KindPlaced: {52, 63}, KindMap: {40, 63}, KindMapped: {17, 19, 40, 63},
	}
	seen := map[Kind]bool{}
	for _, b := range samples() {
		k := Kind(b[0])
		if seen[k] {
			continue
		}
		seen[k] = true
		for _, at := range unused[k] {
			err := parse(with(b, at, 1))
			require.ErrorIs(t, err, ErrMalformed, "%v byte %d", k, at)
			require.ErrorContains(t, err, "is not zero")
		}
	}
}

func TestFrameErrors(t *testing.T) {
	ack := (&Ack{Count: 2, Refusals: refusals(2)}).Append(nil)
	cancel := (&Cancel{Op: 1, Marks: marks(2)}).Append(nil)
	forget := (&Forget{Ops: []OpID{1, 2}}).Append(nil)
	refuse(t, []bad{
		{"chunk larger than its whole", (&Chunk{Total: 9, Size: 10}).Append(nil), "10 bytes at position 0 of a whole of 9"},
		{"chunk beyond its whole", (&Chunk{Position: 9, Total: 10, Size: 2}).Append(nil), "2 bytes at position 9"},
		{"chunk that wraps", (&Chunk{Position: 1<<64 - 1, Total: 10, Size: 2}).Append(nil), "position 18446744073709551615"},
		{"empty chunk", (&Chunk{Total: 10}).Append(nil), "empty piece of a whole of 10"},
		{"message chunk beyond its whole", (&MessageChunk{Position: 3, Total: 4, Size: 2}).Append(nil), "2 bytes at position 3"},
		{"message chunk that wraps", (&MessageChunk{Position: 1<<64 - 1, Total: 1<<64 - 1, Size: 1}).Append(nil), "1 bytes at"},
		{"get data beyond its whole", (&GetData{Position: 4, Total: 4, Size: 1}).Append(nil), "1 bytes at position 4"},
		{"empty get data", (&GetData{Total: 4}).Append(nil), "empty piece of a whole of 4"},
		{"get done with a strange code", (&GetDone{Code: 10}).Append(nil), "unknown code 10"},
		{"place beyond its whole", (&Placed{Position: 9, Total: 10, Size: 2}).Append(nil), "2 bytes at position 9"},
		{"empty place", (&Placed{}).Append(nil), "a place of 0 bytes"},
		{"place over the limit", (&Placed{Total: 1 << 40, Size: MaxChunk + 1}).Append(nil), "a place of 4194305 bytes"},
		{"mapped with a strange code", (&Mapped{Code: 10}).Append(nil), "unknown code 10"},
		{"refused and mapped", (&Mapped{Code: CodeRights, Key: 1}).Append(nil), "the answer Rights with a key"},
		{"mapped to nothing", (&Mapped{Key: 1}).Append(nil), "a region of 0 bytes"},
		{"mapped beyond all addresses", (&Mapped{Address: 1<<64 - 1, Length: 2}).Append(nil), "a region of 2 bytes"},
		{"verdict with a strange code", (&Verdict{Code: 255}).Append(nil), "unknown code 255"},
		{"batch of more than fits", with(batch(1, records()[2]), 8, 2), "2 messages in a body of 6 bytes"},
		{"forget of more than it has", with(forget, 8, 3), "3 operations in a body of 16"},
		{"forget of less than it has", with(forget, 8, 1), "1 operations in a body of 16"},
		{"refusals cut", append(sized(KindAck, 25), make([]byte, 25)...), "refusals of 25 bytes"},
		{"refusal that says OK", with(ack, 64+16, 0), "refusal 0 has the code OK"},
		{"refusal with a strange code", with(ack, 64+24+16, 10), "refusal 1 has the code Code(10)"},
		{"refusal of frame 0", with(ack, 64, 0), "refusal 0 is about frame 0"},
		{"refusal beyond the count", with(ack, 8, 1), "refusal 1 is about frame 2, outside the count of 1"},
		{"refusal with a dirty end", with(ack, 64+23, 1), "refusal 0 has unused bytes"},
		{"refusal with a dirty middle", with(ack, 64+24+17, 1), "refusal 1 has unused bytes"},
		{"marks cut", append(sized(KindCancel, 23), make([]byte, 23)...), "marks of 23 bytes"},
		{"goodbye's marks cut", append(sized(KindGoodbye, 1), 1), "marks of 1 bytes"},
		{"mark with a dirty end", with(cancel, 64+7, 1), "mark 0 has unused bytes"},
		{"mark with a dirty middle", with(cancel, 64+24+2, 1), "mark 1 has unused bytes"},
	}, parse)
}

func TestNotifyErrors(t *testing.T) {
	frame := func(body []byte) []byte { return append(sized(KindNotify, uint32(len(body))), body...) }
	whole := AppendMessage(nil, &Message{Target: Ref{Name: "target"}})
	named := func(sender, typ Ref) []byte {
		return frame(AppendMessage(nil, &Message{Target: Ref{Name: "t"}, Sender: sender, Type: typ}))
	}
	refuse(t, []bad{
		{"cut", frame(whole[:len(whole)-1]), "ends after the body of"},
		{"more behind", frame(append(whole, 0, 0)), "2 bytes after its message"},
		{"a definition", frame(AppendDefine(nil, 1, "printer")), "a record of tag 1"},
		{"a placeholder", frame(AppendPlaceholder(nil, &Placeholder{Target: Ref{Name: "t"}, Total: 1})), "a record of tag 3"},
		{"no record", frame([]byte{9, 0, 0, 0, 0, 0}), "its message: unknown record tag 9"},
		{"a slot", frame(AppendMessage(nil, &Message{Target: Ref{Slot: 1}})), "refers to a slot"},
	}, parse)
	for _, b := range [][]byte{named(Ref{Slot: 1}, Ref{}), named(Ref{}, Ref{Slot: 1})} {
		assert.ErrorContains(t, parse(b), "refers to a slot")
	}
}

// The parsers are safe to call with what does not belong together.
func TestParsersRefuseTheWrongFrame(t *testing.T) {
	beat := (&Beat{}).Append(nil)
	ack := (&Ack{Count: 1, Refusals: refusals(1)}).Append(nil)
	h, err := ParseHeader(ack)
	require.NoError(t, err)
	parse := func(b []byte) error {
		_, err := ParseAck(h, b[:min(len(b), HeaderSize)], b[min(len(b), HeaderSize):])
		return err
	}
	refuse(t, []bad{
		{"less header", ack[:10], "only 10 bytes of header"},
		{"less body", ack[:70], "6 bytes of body at hand where the header says 24"},
		{"more body", append(append([]byte(nil), ack...), 1), "25 bytes of body"},
	}, parse)
	_, err = ParseBeat(h, beat)
	assert.ErrorContains(t, err, "malformed Beat frame: a frame of kind Ack")
	_, err = ParseChunk(h, ack)
	assert.ErrorContains(t, err, "malformed Chunk frame: a frame of kind Ack")
	_, err = ParseChunk(Header{Kind: KindChunk}, ack[:63])
	assert.ErrorContains(t, err, "63 bytes of header at hand")
	for name, f := range map[string]func() error{
		"MessageChunk": func() error { _, err := ParseMessageChunk(h, ack); return err },
		"GetData":      func() error { _, err := ParseGetData(h, ack); return err },
		"Batch":        func() error { _, err := ParseBatch(h, ack); return err },
		"GetRequest":   func() error { _, err := ParseGetRequest(h, ack); return err },
		"GetDone":      func() error { _, err := ParseGetDone(h, ack); return err },
		"Notify":       func() error { _, _, err := ParseNotify(h, ack, nil); return err },
		"Forget":       func() error { _, err := ParseForget(h, ack, nil); return err },
		"Credit":       func() error { _, err := ParseCredit(h, ack); return err },
		"Placed":       func() error { _, err := ParsePlaced(h, ack); return err },
		"Map":          func() error { _, err := ParseMap(h, ack); return err },
		"Mapped":       func() error { _, err := ParseMapped(h, ack); return err },
		"Retired":      func() error { _, err := ParseRetired(h, ack, nil); return err },
		"Cancel":       func() error { _, err := ParseCancel(h, ack, nil); return err },
		"Verdict":      func() error { _, err := ParseVerdict(h, ack); return err },
		"Goodbye":      func() error { _, err := ParseGoodbye(h, ack, nil); return err },
	} {
		assert.ErrorContains(t, f(), "malformed "+name+" frame: a frame of kind Ack")
	}
}

// Lists are also parsed out of handshakes, where no header has bounded them.
func TestListLimits(t *testing.T) {
	r, err := ParseRefusals(refusals(MaxRefusals), MaxRefusals)
	require.NoError(t, err)
	assert.Equal(t, MaxRefusals, r.Len())
	_, err = ParseRefusals(refusals(MaxRefusals+1), MaxRefusals+1)
	assert.ErrorContains(t, err, "1025 refusals, over the limit of 1024")
	r, err = ParseRefusals(nil, 0)
	require.NoError(t, err)
	assert.Zero(t, r.Len())
	_, err = parseMarks(KindCancel, make([]byte, markSize*(MaxMarks+1)))
	assert.ErrorContains(t, err, "257 marks, over the limit of 256")
	many := Forget{Ops: make([]OpID, MaxForget+1)}
	_, err = ParseHeader(many.Append(nil))
	assert.ErrorContains(t, err, "over the limit")
}

func TestChecksOfWhatIsSent(t *testing.T) {
	long := strings.Repeat("n", MaxName+1)
	ok := Message{Target: Ref{Name: long[1:]}, Headers: make([]byte, MaxHeaders), Payload: make([]byte, MaxInline)}
	require.NoError(t, ok.Check())
	require.NoError(t, (&Message{Target: Ref{Slot: 1, Name: long}}).Check(), "the slot goes, not the name")
	require.NoError(t, (&Placeholder{Target: Ref{Slot: 1}, Total: MaxTotal}).Check())
	require.NoError(t, (&Notify{Message: Message{Target: Ref{Name: "a"}, Payload: make([]byte, MaxInline)}}).Check())
	seen := map[string]bool{}
	for want, err := range map[string]error{
		"a message to nobody":   (&Message{}).Check(),
		"32769 bytes inline":    (&Message{Target: Ref{Slot: 1}, Payload: make([]byte, MaxInline+1)}).Check(),
		"headers of 8193 bytes": (&Message{Target: Ref{Slot: 1}, Headers: make([]byte, MaxHeaders+1)}).Check(),
		"a name of 1025 bytes":  (&Message{Target: Ref{Slot: 1}, Type: Ref{Name: long}}).Check(),
		"message of 0 bytes":    (&Placeholder{Target: Ref{Slot: 1}}).Check(),
		"9223372036854775808":   (&Placeholder{Target: Ref{Slot: 1}, Total: MaxTotal + 1}).Check(),
		"use names":             (&Notify{Message: Message{Target: Ref{Slot: 1}}}).Check(),
		"a body of ":            (&Notify{Message: ok}).Check(),
	} {
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, ErrMalformed)
		assert.False(t, seen[err.Error()])
		seen[err.Error()] = true
	}
	bad := Notify{Message: Message{}}
	assert.ErrorContains(t, bad.Check(), "to nobody")
	assert.Error(t, (&Placeholder{Total: 1}).Check())
}

func TestErrorNamesItsKindWhereKnown(t *testing.T) {
	assert.Contains(t, (&Error{Kind: KindAck, Reason: "r"}).Error(), "malformed Ack frame: r")
	assert.Equal(t, "wire: cannot send a Hello frame: r", (&Error{Kind: KindHello, Reason: "r", Own: true}).Error())
	assert.Equal(t, "wire: cannot send: r", (&Error{Reason: "r", Own: true}).Error())
	assert.Equal(t, "cable", reason(errors.New("cable")))
	assert.Contains(t, (&Error{Reason: "r"}).Error(), "malformed frame: r")
	assert.False(t, errors.Is(&Error{}, errShort))
}
