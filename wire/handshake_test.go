package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func TestHandshakesRoundTripAndLeaveTheRest(t *testing.T) {
	for _, k := range handshakeKinds {
		t.Run(k.String(), func(t *testing.T) {
			want := handshake(k)
			b, err := AppendHandshake([]byte("before"), k, want)
			require.NoError(t, err)
			require.Equal(t, "before", string(b[:6]))
			r := strings.NewReader(string(b[6:]) + "after")
			got := newHandshake(k)
			require.NoError(t, ReadHandshake(iotest.OneByteReader(r), k, got))
			assert.True(t, proto.Equal(want, got), "%v", got)
			rest, _ := io.ReadAll(r)
			assert.Equal(t, "after", string(rest))
		})
	}
}

func TestReadHandshakeReplacesWhatTheMessageHeld(t *testing.T) {
	b, err := AppendHandshake(nil, KindConfirm, &Confirm{})
	require.NoError(t, err)
	m := handshake(KindConfirm)
	require.NoError(t, ReadHandshake(bytes.NewReader(b), KindConfirm, m))
	assert.True(t, proto.Equal(&Confirm{}, m))
}

func TestHandshakeSurvivesNewerFields(t *testing.T) {
	body, err := proto.Marshal(handshake(KindAnswer))
	require.NoError(t, err)
	body = protowire.AppendTag(body, 1000, protowire.BytesType)
	body = protowire.AppendString(body, "from the future")
	m := &Answer{}
	require.NoError(t, decodeHandshake(KindAnswer, body, m))
	assert.True(t, proto.Equal(handshake(KindAnswer), m), "an unknown field is dropped")
}

// A stream that ends says where: before the frame, in its header, in its body.
func TestHandshakeStreamErrors(t *testing.T) {
	b, err := AppendHandshake(nil, KindHello, handshake(KindHello))
	require.NoError(t, err)
	broken := errors.New("cable")
	tests := []struct {
		name string
		r    io.Reader
		is   error
		want string
	}{
		{"at once", strings.NewReader(""), io.EOF, "waiting for the header of a Hello"},
		{"in the header", bytes.NewReader(b[:63]), io.ErrUnexpectedEOF, "waiting for the header of a Hello: unexpected EOF"},
		{"after the header", bytes.NewReader(b[:64]), io.ErrUnexpectedEOF, "bytes of a Hello"},
		{"in the body", bytes.NewReader(b[:len(b)-1]), io.ErrUnexpectedEOF, "bytes of a Hello"},
		{"header broken", iotest.ErrReader(broken), broken, "header of a Hello: cable"},
		{"body broken", io.MultiReader(bytes.NewReader(b[:70]), iotest.ErrReader(broken)), broken, "bytes of a Hello: cable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := ReadHandshake(tt.r, KindHello, &Hello{})
			require.ErrorIs(t, err, tt.is)
			assert.ErrorContains(t, err, tt.want)
			assert.NotErrorIs(t, err, ErrMalformed)
		})
	}
}

// bodyless fails the test when anything beyond the header is read: the length is judged first.
type bodyless struct {
	t    *testing.T
	head *bytes.Reader
}

func (r bodyless) Read(p []byte) (int, error) {
	if r.head.Len() == 0 {
		r.t.Error("read beyond a header that is to be refused")
	}
	return r.head.Read(p)
}

func TestHandshakeHeaderErrors(t *testing.T) {
	confirm := sized(KindConfirm, 10)
	refuse(t, []bad{
		{"too large", sized(KindConfirm, MaxHandshake+1), "a body of 65537 bytes"},
		{"enormous", sized(KindConfirm, 1<<32-1), "a body of 4294967295 bytes"},
		{"another step", sized(KindHello, 10), "the handshake's next frame is a Hello"},
		{"data", sized(KindChunk, 10), "the handshake's next frame is a Chunk"},
		{"no frame", []byte("GET / HTTP/1.1\r\nHost: somewhere\r\nUser-Agent: a curious one\r\n\r\n...."), "unknown kind 71"},
		{"flags", with(confirm, 1, 1), "unknown flags"},
		{"dirty header", with(confirm, 8, 1), "unused byte 8"},
		{"dirty end of header", with(confirm, 63, 1), "unused byte 63"},
	}, func(b []byte) error {
		return ReadHandshake(bodyless{t, bytes.NewReader(b[:HeaderSize])}, KindConfirm, &Confirm{})
	})
	err := ReadHandshake(bytes.NewReader((&Beat{}).Append(nil)), KindBeat, &Confirm{})
	assert.ErrorIs(t, err, ErrMalformed, "a beat is no handshake")
}

func TestHandshakeBodyErrors(t *testing.T) {
	many := bytes.Repeat([]byte{0x0a, 0}, maxParts+1)
	refuse(t, []bad{
		{"no field", []byte{0xff}, "no valid field at byte 0"},
		{"a field cut", []byte{0x0a, 0, 0x0a, 5, 1}, "no valid field at byte 2"},
		{"too many fields", many, "more than 576 fields"},
		{"a field of another type", []byte{0x12, 3, 0x08, 0x80, 0x80}, "does not decode"},
		{"mac", []byte{0x0a, 1, 7}, "its mac has 1 bytes where none or 32"},
	}, func(b []byte) error { return decodeHandshake(KindConfirm, b, &Confirm{}) })
	assert.NoError(t, decodeHandshake(KindConfirm, many[2:], &Confirm{}))
}

func TestHandshakeFieldLimits(t *testing.T) {
	long := strings.Repeat("n", MaxName+1)
	hello := func(change func(*Hello)) proto.Message {
		m := handshake(KindHello).(*Hello)
		change(m)
		return m
	}
	answer := func(change func(*Answer)) proto.Message {
		m := handshake(KindAnswer).(*Answer)
		change(m)
		return m
	}
	challenge := func(change func(*Challenge)) proto.Message {
		m := handshake(KindChallenge).(*Challenge)
		change(m)
		return m
	}
	short := make([]byte, 15)
	tests := []struct {
		kind Kind
		m    proto.Message
		want string
	}{
		{KindChallenge, challenge(func(m *Challenge) { m.Nonce = short }), "its nonce has 15 bytes where 32"},
		{KindChallenge, challenge(func(m *Challenge) { m.Incarnation = nil }), "its incarnation has 0 bytes where 16"},
		{KindChallenge, challenge(func(m *Challenge) { m.Node = long }), "its node has 1025"},
		{KindChallenge, challenge(func(m *Challenge) { m.Name = long }), "its name has 1025"},
		{KindHello, hello(func(m *Hello) { m.Incarnation = short }), "its incarnation"},
		{KindHello, hello(func(m *Hello) { m.Challenge = short }), "its challenge"},
		{KindHello, hello(func(m *Hello) { m.Nonce = nil }), "its nonce"},
		{KindHello, hello(func(m *Hello) { m.Session = nil }), "its session"},
		{KindHello, hello(func(m *Hello) { m.TargetIncarnation = short }), "its target_incarnation has 15 bytes where none or 16"},
		{KindHello, hello(func(m *Hello) { m.Mac = short }), "its mac"},
		{KindHello, hello(func(m *Hello) { m.Token = make([]byte, MaxToken+1) }), "its token has 65"},
		{KindHello, hello(func(m *Hello) { m.Rail = 1 << 16 }), "its rail is 65536"},
		{KindHello, hello(func(m *Hello) { m.Node = long }), "its node"},
		{KindHello, hello(func(m *Hello) { m.Name = long }), "its name"},
		{KindHello, hello(func(m *Hello) { m.Target = long }), "its target has"},
		{KindHello, hello(func(m *Hello) { m.Local = long }), "its local"},
		{KindHello, hello(func(m *Hello) { m.Remote = long }), "its remote"},
		{KindHello, hello(func(m *Hello) { m.Devices = make([]*Device, MaxDevices+1) }), "257 devices"},
		{KindHello, hello(func(m *Hello) { m.Devices[1].Kind = long }), "device's kind"},
		{KindHello, hello(func(m *Hello) { m.Devices[1].Address = long }), "device's address"},
		{KindHello, hello(func(m *Hello) { m.Devices[0].Name = long }), "device's name"},
		{KindHello, hello(func(m *Hello) { m.Fenced = make([]*Fenced, MaxFenced+1) }), "257 fenced generations"},
		{KindHello, hello(func(m *Hello) { m.Fenced[1].Rail = 1 << 16 }), "a fenced generation's rail is 65536"},
		{KindHello, hello(func(m *Hello) { m.Fenced[0].Count = 1 }), "refusal 1 is about frame 2, outside the count of 1"},
		{KindHello, hello(func(m *Hello) { m.Node = "\xff" }), "does not encode"},
		{KindAnswer, answer(func(m *Answer) { m.Nonce = nil }), "its nonce"},
		{KindAnswer, answer(func(m *Answer) { m.Incarnation = nil }), "its incarnation"},
		{KindAnswer, answer(func(m *Answer) { m.Session = nil }), "its session"},
		{KindAnswer, answer(func(m *Answer) { m.Code, m.Session = RefusalCode_BUSY, short }), "its session has 15 bytes where none or 16"},
		{KindAnswer, answer(func(m *Answer) { m.Mac = short }), "its mac"},
		{KindAnswer, answer(func(m *Answer) { m.Reason = long }), "its reason"},
		{KindAnswer, answer(func(m *Answer) { m.Node = long }), "its node"},
		{KindAnswer, answer(func(m *Answer) { m.Name = long }), "its name"},
		{KindAnswer, answer(func(m *Answer) { m.Devices = make([]*Device, MaxDevices+1) }), "257 devices"},
		{KindAnswer, answer(func(m *Answer) { m.Fenced = make([]*Fenced, MaxFenced+1) }), "257 fenced generations"},
		{KindConfirm, &Confirm{Mac: short}, "its mac"},
		{KindConfirm, &Confirm{Fenced: []*Fenced{{Refusals: short}}}, "refusals of 15 bytes"},
		{KindConfirm, &Challenge{}, "a message of kind Challenge in it"},
		{KindBeat, &Confirm{}, "a message of kind Confirm in it"},
		{KindConfirm, &Device{}, "*wire.Device is no handshake message"},
		{KindConfirm, &Confirm{Fenced: []*Fenced{
			{Count: 1024, Refusals: refusals(1024)}, {Count: 1024, Refusals: refusals(1024)}, {Count: 1024, Refusals: refusals(1024)},
		}}, "at most 65536 are possible"},
	}
	for _, tt := range tests {
		b, err := AppendHandshake([]byte("kept"), tt.kind, tt.m)
		require.ErrorContains(t, err, tt.want, "%v", tt.kind)
		require.ErrorIs(t, err, ErrMalformed)
		assert.Equal(t, "kept", string(b), "nothing is appended in case of an error")
		if body, err := proto.Marshal(tt.m); err == nil && tt.kind.Handshake() && len(body) < MaxHandshake {
			assert.Error(t, decodeHandshake(tt.kind, body, proto.Clone(tt.m)), "what is not sent is not taken: %s", tt.want)
		}
	}
}

func TestARefusalNeedsNoSession(t *testing.T) {
	m := &Answer{Code: RefusalCode_UNAUTHENTIC, Reason: "no", Nonce: make([]byte, NonceSize)}
	b, err := AppendHandshake(nil, KindAnswer, m)
	require.NoError(t, err)
	got := &Answer{}
	require.NoError(t, ReadHandshake(bytes.NewReader(b), KindAnswer, got))
	assert.True(t, proto.Equal(m, got))
}

func TestFencedGenerationsTravelInHandshakes(t *testing.T) {
	want := []Retired{
		{Rail: 1<<16 - 1, Generation: 1<<64 - 1, Count: 2, HaveYours: true, Rejected: true, Refusals: refusals(2)},
		{Rail: 1, Generation: 2, Done: true},
	}
	b, err := AppendHandshake(nil, KindConfirm, &Confirm{Fenced: FencedOf(want)})
	require.NoError(t, err)
	var m Confirm
	require.NoError(t, ReadHandshake(bytes.NewReader(b), KindConfirm, &m))
	got, err := RetiredOf(m.GetFenced())
	require.NoError(t, err)
	assert.Equal(t, want, got)

	none, err := RetiredOf(FencedOf(nil))
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = RetiredOf([]*Fenced{{Rail: 1 << 16}})
	assert.ErrorIs(t, err, ErrMalformed)
}

func TestNumbersOfRefusalCodes(t *testing.T) {
	for i, name := range []string{
		"OK", "BUSY", "STALE_GENERATION", "WRONG_NODE", "UNAUTHENTIC", "VERSION", "LIMIT", "SHUTTING_DOWN",
		"OLD_SESSION_ALIVE", "UNKNOWN_SESSION",
	} {
		assert.Equal(t, name, RefusalCode(i).String())
	}
}
