package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoundTripOfEverySample(t *testing.T) {
	for _, b := range samples() {
		out, h, _, err := reencode(b)
		require.NoError(t, err, "%v", h.Kind)
		assert.Equal(t, b, out, "%v", h.Kind)
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	room := make([]byte, 3, 4096)
	copy(room, "abc")
	for i := range room[3:4096] {
		room[3:4096][i] = 0xee // what an earlier use of the buffer left behind
	}
	f := Ack{Count: 3, Seen: 2, Refusals: refusals(2)}
	b := f.Append(room)
	assert.Equal(t, "abc", string(b[:3]))
	assert.Equal(t, f.Append(nil), b[3:], "the header's unused bytes must not show old ones")
}

func TestParsedFieldsAreTheOnesEncoded(t *testing.T) {
	chunk := Chunk{Op: 1, Token: token, Region: 2, Base: 3, Total: 15, Position: 11, Size: 4, Notify: true}
	b := chunk.Append(nil)
	h, err := ParseHeader(b)
	require.NoError(t, err)
	got, err := ParseChunk(h, b)
	require.NoError(t, err)
	assert.Equal(t, chunk, got)

	retired := Retired{Rail: 7, Generation: 8, Count: 9, HaveYours: true, Rejected: true, Refusals: refusals(9)}
	b = retired.Append(nil)
	h, err = ParseHeader(b)
	require.NoError(t, err)
	r, err := ParseRetired(h, b, b[HeaderSize:])
	require.NoError(t, err)
	assert.Equal(t, retired, r)
	assert.Equal(t, Refusal{Frame: 9, Op: 8, Code: CodeRevoked}, r.Refusals.At(8))

	cancel := Cancel{Op: 3, Marks: marks(3)}
	b = cancel.Append(nil)
	h, err = ParseHeader(b)
	require.NoError(t, err)
	c, err := ParseCancel(h, b, b[HeaderSize:])
	require.NoError(t, err)
	assert.Equal(t, cancel, c)
}

func TestUnusedBytesOfBulkHeadersAreIgnored(t *testing.T) {
	for _, b := range [][]byte{

		(&MessageChunk{ID: 1, Total: 4, Size: 4}).Append(nil),
		(&GetData{Op: 1, Total: 4, Size: 4}).Append(nil),
	} {
		b[HeaderSize-1] = 1
		_, h, _, err := reencode(b)
		assert.NoError(t, err, "%v", h.Kind)
	}
}

func TestMessageSizes(t *testing.T) {
	for _, m := range []Message{
		{Target: Ref{Slot: 1}},
		{Target: Ref{Slot: 127}, Sender: Ref{Slot: 16383}, Type: Ref{Name: "type"}, Payload: make([]byte, 128)},
		*fullMessage(),
	} {
		assert.Len(t, AppendMessage(nil, &m), m.Size())
		p := Placeholder{Target: m.Target, Sender: m.Sender, Type: m.Type, Headers: m.Headers, Total: MaxTotal}
		assert.Len(t, AppendPlaceholder(nil, &p), p.Size())
	}
	assert.Equal(t, MaxRecord, fullMessage().Size(), "MaxRecord is the largest record, no more")
	for _, slot := range []uint16{1, 127, 128, 16384, MaxSlot} {
		name := string(make([]byte, slot%MaxName+1))
		assert.Len(t, AppendDefine(nil, slot, name), DefineSize(slot, name))
	}
}

func TestMessageHeadLeavesRoomForThePayload(t *testing.T) {
	m := Message{Target: Ref{Slot: 5}, Headers: []byte("h"), Payload: []byte("payload")}
	b := AppendMessageHead(nil, &m, len(m.Payload))
	assert.Equal(t, AppendMessage(nil, &m), append(b, m.Payload...))
}
