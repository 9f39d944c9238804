package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A reader that parses what has arrived sees each record once it is whole, and never a wrong one
// before.
func TestEveryPrefixOfARecordAsksForMore(t *testing.T) {
	for _, b := range records() {
		for end := range b {
			rec, n, err := NextRecord(b[:end])
			require.NoError(t, err, "%d of %d bytes", end, len(b))
			require.Zero(t, n, "%d of %d bytes", end, len(b))
			require.Equal(t, Record{}, rec)
		}
		followed := append(append([]byte(nil), b...), 0xff, 0xff)
		rec, n, err := NextRecord(followed)
		require.NoError(t, err)
		require.Equal(t, len(b), n, "what follows is not the record's")
		assert.Equal(t, b, appendRecord(nil, rec))
	}
}

func TestRecordFields(t *testing.T) {
	rec, _, err := NextRecord(AppendDefine(nil, 300, "printer"))
	require.NoError(t, err)
	assert.Equal(t, Record{Tag: TagDefine, Slot: 300, Name: []byte("printer")}, rec)
	assert.False(t, rec.Counted())

	rec, _, err = NextRecord(AppendMessage(nil, &Message{
		System: true, Target: Ref{Slot: 1}, Sender: Ref{Name: "me"}, Headers: []byte("h"), Payload: []byte("p"),
	}))
	require.NoError(t, err)
	assert.Equal(t, Record{
		Tag: TagMessage, Flags: RecordSystem | RecordHeaders, Target: RefView{Slot: 1},
		Sender: RefView{Inline: []byte("me")}, Headers: []byte("h"), Payload: []byte("p"),
	}, rec)
	assert.True(t, rec.Counted())
	assert.True(t, rec.System())
	assert.True(t, rec.Type.None())
	assert.False(t, rec.Sender.None())

	rec, _, err = NextRecord(AppendPlaceholder(nil, &Placeholder{Target: Ref{Slot: MaxSlot}, ID: 7, Total: 1 << 40}))
	require.NoError(t, err)
	assert.Equal(t, Record{Tag: TagPlaceholder, Target: RefView{Slot: MaxSlot}, ID: 7, Total: 1 << 40}, rec)
	assert.True(t, rec.Counted())
	assert.False(t, rec.System())
}

func TestRecordViewsCannotReachBeyondThemselves(t *testing.T) {
	b := AppendMessage(nil, &Message{Target: Ref{Name: "t"}, Headers: []byte("h"), Payload: []byte("p")})
	before := append([]byte(nil), b...)
	rec, _, err := NextRecord(b)
	require.NoError(t, err)
	_ = append(rec.Target.Inline, "xxxx"...)
	_ = append(rec.Headers, "xxxx"...)
	_ = append(rec.Payload, "xxxx"...)
	assert.Equal(t, before, b)
}

// varint is the shortest form of v.
func varint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// join puts a record together from its parts.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestRecordErrors(t *testing.T) {
	msg := []byte{2, 0, 2, 0, 0}  // a message to slot 1 from nobody of no type
	hold := []byte{3, 0, 2, 0, 0} // a placeholder likewise
	id := make([]byte, 8)
	refuse(t, []bad{
		{"tag 0", []byte{0}, "unknown record tag 0"},
		{"tag 4", []byte{4, 0, 0}, "unknown record tag 4"},
		{"flags", []byte{2, 4}, "unknown record flags 0x4"},
		{"all flags", []byte{3, 255}, "unknown record flags 0xff"},
		{"message to nobody", []byte{2, 0, 0}, "a record of tag 2 without a target"},
		{"placeholder for nobody", []byte{3, 1, 0}, "a record of tag 3 without a target"},
		{"slot 0", []byte{1, 0}, "the slot of a definition of 0, below the least of 1"},
		{"slot too high", join([]byte{1}, varint(MaxSlot+1)), "the slot of a definition of 65536, over"},
		{"slot without end", []byte{1, 0xff, 0xff, 0x80}, "the slot of a definition over the limit of 65535"},
		{"slot in a long form", []byte{1, 0x81, 0}, "the slot of a definition not in the shortest"},
		{"no name", []byte{1, 1, 0}, "the length of a definition's name of 0"},
		{"name too long", join([]byte{1, 1}, varint(MaxName+1)), "the length of a definition's name of 1025"},
		{"name without end", []byte{1, 1, 0xff, 0xff}, "the length of a definition's name over"},
		{"target too high", join([]byte{2, 0}, varint(MaxSlot+2)), "the target's slot of 65537"},
		{"target without end", []byte{2, 0, 0x80, 0x80, 0x80}, "the target's slot over"},
		{"target without a name", []byte{2, 0, 1, 0}, "the target's length of 0"},
		{"target too long", join([]byte{2, 0, 1}, varint(MaxName+1)), "the target's length of 1025"},
		{"sender too high", join([]byte{2, 0, 2}, varint(MaxSlot+2)), "the sender's slot of 65537"},
		{"sender too long", join([]byte{2, 0, 2, 1}, varint(MaxName+1)), "the sender's length of 1025"},
		{"type too high", join([]byte{2, 0, 2, 0}, varint(MaxSlot+2)), "the type's slot of 65537"},
		{"type too long", join([]byte{2, 0, 2, 0, 1}, varint(MaxName+1)), "the type's length of 1025"},
		{"no headers", []byte{2, 2, 2, 0, 0, 0}, "the headers' length of 0"},
		{"headers too long", join([]byte{2, 2, 2, 0, 0}, varint(MaxHeaders+1)), "the headers' length of 8193"},
		{"headers without end", []byte{2, 2, 2, 0, 0, 0xff, 0xff}, "the headers' length over"},
		{"payload too long", join(msg, varint(MaxInline+1)), "the payload's size of 32769"},
		{"payload without end", join(msg, []byte{0xff, 0xff, 0xff}), "the payload's size over"},
		{"payload in a long form", join(msg, []byte{0x80, 0x80, 0}), "the payload's size not in the shortest"},
		{"large message of nothing", join(hold, id, varint(0)), "the large message's size of 0"},
		{"large message without end", join(hold, id, bytes.Repeat([]byte{0xff}, 9)), "the large message's size over"},
	}, nextError)
	assert.ErrorContains(t, nextError(join(hold, id, varint(1<<63))), "over the limit of 9223372036854775807")
	largest := join(hold, id, varint(MaxTotal))
	assert.NoError(t, nextError(largest))
}

// nextError parses one record, its error alone.
func nextError(b []byte) error {
	_, _, err := NextRecord(b)
	return err
}

// With a record that asks for more no reader has to hold more than MaxRecord.
func TestNoRecordIsWaitedForBeyondItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := rapid.SliceOfN(rapid.Byte(), 0, 24).Draw(t, "head")
		if len(head) > 0 {
			head[0] = head[0]%3 + 1
		}
		if len(head) > 1 {
			head[1] &= 3
		}
		fill := rapid.Byte().Draw(t, "fill")
		b := slices.Concat(head, bytes.Repeat([]byte{fill}, MaxRecord-len(head)))
		_, n, err := NextRecord(b)
		if err == nil && n == 0 {
			t.Fatalf("more than %d bytes asked for after %x and %x for ever", MaxRecord, head, fill)
		}
	})
}

func TestMessagesRoundTrip(t *testing.T) {
	name := rapid.StringOfN(rapid.Rune(), 1, 64, MaxName)
	ref := rapid.OneOf(
		rapid.Map(rapid.Uint16Min(1), func(s uint16) Ref { return Ref{Slot: s} }),
		rapid.Map(name, func(s string) Ref { return Ref{Name: s} }),
	)
	optional := rapid.OneOf(rapid.Just(Ref{}), ref)
	rapid.Check(t, func(t *rapid.T) {
		m := Message{
			System:  rapid.Bool().Draw(t, "system"),
			Target:  ref.Draw(t, "target"),
			Sender:  optional.Draw(t, "sender"),
			Type:    optional.Draw(t, "type"),
			Headers: rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "headers"),
			Payload: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"),
		}
		require.NoError(t, m.Check())
		b := AppendMessage(nil, &m)
		rec, n, err := NextRecord(b)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		got := messageOf(rec)
		if len(m.Headers) == 0 {
			m.Headers = nil
		}
		assert.True(t, bytes.Equal(m.Payload, got.Payload))
		m.Payload, got.Payload = nil, nil
		assert.Equal(t, m, got)
	})
}

func TestABatchEndsWithItsLastRecord(t *testing.T) {
	whole := batch(1, records()[3])
	require.NoError(t, parse(whole))
	cut := append([]byte(nil), whole[:len(whole)-1]...)
	PatchBatch(cut, len(cut)-HeaderSize, 1)
	assert.ErrorIs(t, parse(cut), ErrMalformed)
	assert.False(t, strings.Contains(parse(cut).Error(), "over"))
}
