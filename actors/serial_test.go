package actors

import (
	"maps"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// header lets tests make protoactor's headers.
func header(m map[string]string) actor.ReadonlyMessageHeader {
	h, _, _ := actor.UnwrapEnvelope(&actor.MessageEnvelope{Header: m})
	return h
}

func TestHeadersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "headers")
		b := appendHeaders(nil, header(m))
		require.Equal(t, b, appendHeaders(nil, header(maps.Clone(m))), "the bytes depend on the map's order")
		got, err := parseHeaders(b)
		require.NoError(t, err)
		require.Len(t, got, len(m))
		for k, v := range m {
			require.Equal(t, v, got[k])
		}
		if len(b) > 0 {
			_, err = parseHeaders(b[:rapid.IntRange(1, len(b)).Draw(t, "cut")-1])
			_ = err // any answer but a panic
		}
	})
}

func TestBadHeadersAreRefused(t *testing.T) {
	for _, b := range [][]byte{{5}, {1, 'k'}, {1, 'k', 9, 'v'}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		_, err := parseHeaders(b)
		require.ErrorIs(t, err, ErrBadHeaders, "%v", b)
	}
}

func TestCodec(t *testing.T) {
	c := newCodec(new(Config))
	for range 2 { // looked up, then remembered
		b, err := proto.Marshal(text("hello"))
		require.NoError(t, err)
		m, err := c.decode("google.protobuf.StringValue", b, false)
		require.NoError(t, err)
		require.Equal(t, "hello", textOf(t, m))
		_, err = c.decode("no.such.Type", b, false)
		require.ErrorIs(t, err, ErrUnknownType)
		_, err = c.decode("", b, false)
		require.ErrorIs(t, err, ErrUnknownType)
		_, err = c.decode("google.protobuf.StringValue", []byte{0xff}, false)
		require.ErrorIs(t, err, ErrBadPayload)
	}
	_, remembered := c.types.get("no.such.Type")
	require.False(t, remembered, "peers could fill the memory with names that they make up")
}

func FuzzParseHeaders(f *testing.F) {
	f.Add(appendHeaders(nil, header(map[string]string{"a": "b", "": ""})))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseHeaders(b)
		if err != nil || len(m) == 0 {
			return
		}
		again, err := parseHeaders(appendHeaders(nil, header(m)))
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
