package wire

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bytes of every frame, written by hand: the protocol may not change by a change of code on
// both sides of a round trip. Underscores and blanks are for the eye; "*N" fills with zeros up to
// offset N.
func TestLayoutOfEveryKind(t *testing.T) {
	const tok = "0102030405060708 090a0b0c0d0e0f10"
	u64 := func(b string) string { return b + strings.Repeat("00", 8-len(b)/2) }
	refusal := u64("03") + u64("07") + "01" + strings.Repeat("00", 7)
	mark := u64("0201") + u64("05") + u64("09")
	tests := []struct {
		name  string
		frame []byte
		want  []string
	}{
		{"Batch", batch(1, AppendMessage(nil, &Message{Target: Ref{Slot: 1}, Payload: []byte{0xff}})),
			[]string{"0100 0000 07000000", "0100", "*64", "02 00 02 00 00 01 ff"}},
		{"Chunk", (&Chunk{
			Op: 2, Token: token, Region: 3, Base: 4, Total: 0x105, Position: 0x100, Size: 5, Notify: true,
		}).Append(nil),
			[]string{"0201 0000 05000000", u64("02"), tok, u64("03"), u64("04"), u64("0501"), u64("0001")}},
		{"MessageChunk", (&MessageChunk{ID: 2, Position: 3, Total: 9, Size: 6}).Append(nil),
			[]string{"0300 0000 06000000", u64("02"), u64("03"), u64("09"), "*64"}},
		{"GetRequest", (&GetRequest{Op: 2, Token: token, Region: 3, Offset: 4, Length: 5}).Append(nil),
			[]string{"0400 0000 00000000", u64("02"), tok, u64("03"), u64("04"), u64("05"), "*64"}},
		{"GetData", (&GetData{Op: 2, Position: 3, Total: 9, Size: 6, Final: true}).Append(nil),
			[]string{"0501 0000 06000000", u64("02"), u64("03"), u64("09"), "*64"}},
		{"GetDone", (&GetDone{Op: 2, Code: CodeRevoked}).Append(nil),
			[]string{"0600 0000 00000000", u64("02"), "01", "*64"}},
		{"Notify", (&Notify{Op: 2, Message: Message{Target: Ref{Name: "a"}}}).Append(nil),
			[]string{"0700 0000 08000000", u64("02"), "*64", "02 00 010161 00 00 00"}},
		{"Forget", (&Forget{Ops: []OpID{3, 4}}).Append(nil),
			[]string{"0800 0000 10000000", "0200", "*64", u64("03"), u64("04")}},
		{"Beat", (&Beat{Seq: 2, Echo: 3, Held: 4, Seen: 5}).Append(nil),
			[]string{"1000 0000 00000000", u64("02"), u64("03"), u64("04"), u64("05"), "*64"}},
		{"Ack", (&Ack{Count: 4, Seen: 5, Refusals: Refusals(nil).Add(Refusal{3, 7, CodeRevoked})}).Append(nil),
			[]string{"1100 0000 18000000", u64("04"), u64("05"), "*64", refusal}},
		{"Credit", (&Credit{Granted: 2}).Append(nil),
			[]string{"1200 0000 00000000", u64("02"), "*64"}},
		{"Retired", (&Retired{
			Rail: 0x102, Generation: 5, Count: 4, HaveYours: true, Rejected: true, Done: true,
			Refusals: Refusals(nil).Add(Refusal{3, 7, CodeRevoked}),
		}).Append(nil),
			[]string{"1307 0000 18000000", u64("0201"), u64("05"), u64("04"), "*64", refusal}},
		{"Cancel", (&Cancel{Op: 2, Marks: []Mark{{0x102, 5, 9}}}).Append(nil),
			[]string{"1400 0000 18000000", u64("02"), "*64", mark}},
		{"Verdict", (&Verdict{Op: 2, Code: CodeCanceled}).Append(nil),
			[]string{"1500 0000 00000000", u64("02"), "05", "*64"}},
		{"Goodbye", (&Goodbye{Reason: 7, Marks: []Mark{{0x102, 5, 9}}}).Append(nil),
			[]string{"1600 0000 18000000", "07", "*64", mark}},
		{"Placed", (&Placed{Op: 2, Region: 3, Base: 4, Total: 0x105, Position: 0x100, Size: 5, Notify: true}).Append(nil),
			[]string{"0901 0000 00000000", u64("02"), u64("03"), u64("04"), u64("0501"), u64("0001"), "05", "*64"}},
		{"Map", (&Map{Ask: 2, Region: 3, Token: token}).Append(nil),
			[]string{"1700 0000 00000000", u64("02"), tok, u64("03"), "*64"}},
		{"Mapped", (&Mapped{Ask: 2, Code: CodeOK, Key: 0x304, Address: 0x105, Length: 6}).Append(nil),
			[]string{"1800 0000 00000000", u64("02"), "00 000000 04030000", u64("0501"), u64("06"), "*64"}},
	}
	seen := map[Kind]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, layout64(t, tt.want), hex.EncodeToString(tt.frame))
			h, err := ParseHeader(tt.frame)
			require.NoError(t, err)
			assert.Equal(t, tt.name, h.Kind.String())
			seen[h.Kind] = true
		})
	}
	for k := range kindEnd {
		if k.Known() && !k.Handshake() {
			assert.True(t, seen[k], "no layout for %v", k)
		}
	}
}

// layout64 joins the parts of a layout into hex.
func layout64(t *testing.T, parts []string) string {
	t.Helper()
	var out string
	for _, p := range parts {
		if p == "*64" {
			require.LessOrEqual(t, len(out), 2*HeaderSize)
			out += strings.Repeat("00", HeaderSize-len(out)/2)
			continue
		}
		out += strings.ReplaceAll(p, " ", "")
	}
	return out
}

func TestLayoutOfRecords(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"define", AppendDefine(nil, 300, "ab"), "01 ac02 02 6162"},
		{"message with everything", AppendMessage(nil, &Message{
			System: true, Target: Ref{Slot: 1}, Sender: Ref{Name: "s"}, Type: Ref{Slot: MaxSlot},
			Headers: []byte{9}, Payload: []byte{8, 7},
		}), "02 03 02 010173 808004 0109 02 0807"},
		{"slot before name", AppendMessage(nil, &Message{Target: Ref{Slot: 2, Name: "x"}}), "02 00 03 00 00 00"},
		{"placeholder", AppendPlaceholder(nil, &Placeholder{Target: Ref{Slot: 1}, ID: 5, Total: 200}),
			"03 00 02 00 00 0500000000000000 c801"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, strings.ReplaceAll(tt.want, " ", ""), hex.EncodeToString(tt.got))
		})
	}
}

func TestNumbersOfKinds(t *testing.T) {
	want := map[Kind]string{
		1: "Batch", 2: "Chunk", 3: "MessageChunk", 4: "GetRequest", 5: "GetData",
		6: "GetDone", 7: "Notify", 8: "Forget", 9: "Placed",
		16: "Beat", 17: "Ack", 18: "Credit", 19: "Retired", 20: "Cancel", 21: "Verdict", 22: "Goodbye",
		23: "Map", 24: "Mapped",
		32: "Challenge", 33: "Hello", 34: "Answer", 35: "Confirm",
	}
	for i := range 256 {
		k := Kind(i)
		name, known := want[k]
		assert.Equal(t, known, k.Known(), "kind %d", i)
		assert.Equal(t, known && i < 16, k.Counted(), "kind %d", i)
		assert.Equal(t, known && i >= 32, k.Handshake(), "kind %d", i)
		if known {
			assert.Equal(t, name, k.String())
		} else {
			assert.Equal(t, "Kind", k.String()[:4])
		}
	}
}

func TestNumbersOfCodes(t *testing.T) {
	want := []string{
		"OK", "Revoked", "Bounds", "Rights", "UnknownRegion", "Canceled", "TooLarge", "Malformed", "Limit", "Internal",
	}
	for i, name := range want {
		assert.Equal(t, name, Code(i).String())
		assert.True(t, Code(i).Known())
	}
	assert.False(t, Code(len(want)).Known())
	assert.Equal(t, "Code(10)", Code(len(want)).String())
}
