package actors

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

type order struct {
	ID    int
	Items []string
}

// gobs is a serializer of the user's own, which counts what goes through it.
type gobs struct{ encoded, decoded chan string }

func newGobs() *gobs { return &gobs{make(chan string, 100), make(chan string, 100)} }

func (*gobs) Name() string { return "gob" }

func (*gobs) TypeName(message any) string {
	switch message.(type) {
	case *point:
		return "point"
	case *wrapperspb.StringValue:
		return "text"
	}
	return ""
}

type point struct{ X, Y int }

func (g *gobs) Encode(message any) ([]byte, error) {
	var b bytes.Buffer
	p, ok := message.(*point)
	if !ok {
		p = &point{X: len(message.(*wrapperspb.StringValue).GetValue())}
	}
	if p.X < 0 {
		panic("a bug in a serializer")
	}
	if p.X == 404 {
		return nil, errors.New("not this one")
	}
	err := gob.NewEncoder(&b).Encode(p)
	g.encoded <- g.TypeName(message)
	return b.Bytes(), err
}

func (g *gobs) Decode(typeName string, payload []byte) (any, error) {
	p := new(point)
	err := gob.NewDecoder(bytes.NewReader(payload)).Decode(p)
	switch p.X {
	case 1:
		panic("a bug in a deserializer")
	case 2:
		return nil, nil
	case 3:
		return nil, errors.New("torn")
	}
	g.decoded <- typeName
	return p, err
}

// headed has a message go by a serializer.
func headed(serializer string, message any) *actor.MessageEnvelope {
	return &actor.MessageEnvelope{Header: map[string]string{SerializerHeader: serializer}, Message: message}
}

func TestMessagesGoByTheirSerializer(t *testing.T) {
	types := map[string]any{"order": &order{}, "plain order": order{}}
	own := func(g *gobs) func(*Config) {
		return func(c *Config) { c.JSONTypes, c.Serializers = types, []Serializer{g} }
	}
	there, here := newGobs(), newGobs()
	a, b := node(t, own(here)), node(t, own(there))
	_, got := b.inbox(t, "inbox")
	to := b.at("inbox")
	sent := func(message any) any {
		t.Helper()
		a.sys.Root.Send(to, message)
		return next(t, got, "the message").message
	}
	// By type.
	require.Equal(t, &order{1, []string{"a"}}, sent(&order{1, []string{"a"}}))
	require.Equal(t, order{2, nil}, sent(order{2, nil}))
	require.Equal(t, &point{4, 5}, sent(&point{4, 5}))
	require.Equal(t, "point", next(t, here.encoded, "gob's work"))
	require.Equal(t, "point", next(t, there.decoded, "gob's work"))
	require.Equal(t, []byte{}, append([]byte{}, sent([]byte{}).([]byte)...))
	require.Equal(t, &remote.JsonMessage{TypeName: "unknown.there", Json: `{"a":1}`},
		sent(&remote.JsonMessage{TypeName: "unknown.there", Json: `{"a":1}`}))
	// By header, which protobuf messages otherwise do not need.
	require.Equal(t, "as JSON", textOf(t, sent(headed(SerializerJSON, text("as JSON")))))
	require.Equal(t, "a wrapper's JSON", textOf(t,
		sent(&remote.JsonMessage{TypeName: "google.protobuf.StringValue", Json: `"a wrapper's JSON"`})))
	require.Equal(t, "plain", textOf(t, sent(headed(SerializerProtobuf, text("plain")))))
	require.Empty(t, there.decoded)
	require.Equal(t, &point{X: 5}, sent(headed("gob", text("12345"))))
	require.Equal(t, "text", next(t, there.decoded, "gob's work"))
	// By a sender middleware, which requests need: protoactor makes their envelope.
	b.echo(t, "echo")
	root := a.sys.Root.Copy().WithSenderMiddleware(SerializeWith("gob"))
	root.Request(to, text("123456"))
	require.Equal(t, &point{X: 6}, next(t, got, "the message").message)
	root.Send(to, headed(SerializerJSON, text("its own header wins")))
	require.Equal(t, "its own header wins", textOf(t, next(t, got, "the message").message))
}

// Raw bytes that are too large for a batch are neither copied when they are sent nor when they come.
func TestRawBytesAreNotCopied(t *testing.T) {
	a, b := node(t), node(t)
	p := a.peer(b.Address()).process("x")
	large := make([]byte, wire.MaxInline+1)
	o := takeOutgoing()
	require.NoError(t, p.prepare(o, letterOf(large)))
	require.True(t, unsafe.SliceData(large) == unsafe.SliceData(o.Payload), "the sender has copied")
	message, err := b.codec.decode(o.Type.S, o.Payload, true)
	o.free()
	require.NoError(t, err)
	require.True(t, unsafe.SliceData(large) == unsafe.SliceData(message.([]byte)), "the receiver has copied")
	message, err = b.codec.decode("raw:bytes", large, false)
	require.NoError(t, err)
	require.False(t, unsafe.SliceData(large) == unsafe.SliceData(message.([]byte)), "what is not ours was kept")

	_, got := b.inbox(t, "inbox")
	for _, size := range []int{0, 1, 1000, wire.MaxInline, wire.MaxInline + 1, 1 << 20} {
		data := bytes.Repeat([]byte{byte(size), 7}, size)[:size]
		require.NoError(t, a.Send(testContext(t), b.at("inbox"), data))
		require.True(t, bytes.Equal(data, next(t, got, "the bytes").message.([]byte)), "%d", size)
	}
}

// What cannot be written costs that message, at the sender.
func TestWhatSerializersCannotWrite(t *testing.T) {
	a, b := node(t, func(c *Config) { c.Serializers = []Serializer{newGobs()} }), node(t)
	for name, c := range map[string]struct {
		message any
		cause   error
		says    string
	}{
		"no such serializer": {headed("pigeon", text("x")), ErrUnknownSerializer, "pigeon"},
		"not its type":       {headed("gob", wrapperspb.Bool(true)), ErrNotProtobuf, "gob"},
		"raw of a struct":    {headed(SerializerRaw, &order{}), ErrNotProtobuf, "raw"},
		"json of a struct":   {&order{}, ErrNotProtobuf, "order"},
		"it fails":           {&point{X: 404}, nil, "not this one"},
		"it panics":          {&point{X: -1}, nil, "a bug in a serializer"},
		"a broken batch":     {&cluster.DeliverBatchRequest{}, nil, "DeliverBatchRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			err := a.Send(testContext(t), b.at("inbox"), c.message)
			require.Error(t, err)
			require.Contains(t, err.Error(), c.says)
			if c.cause != nil {
				require.ErrorIs(t, err, c.cause)
			}
		})
	}
}

// What cannot be read costs that message, is told at both ends, and to its sender.
func TestWhatSerializersCannotRead(t *testing.T) {
	own := func(c *Config) { c.Serializers = []Serializer{newGobs()} }
	a := node(t, own, func(c *Config) { c.JSONTypes = map[string]any{"order": order{}} })
	b, bare := node(t, own, func(c *Config) { c.JSONTypes = map[string]any{"order": []string{}} }), node(t)
	for name, c := range map[string]struct {
		to      testNode
		message any
		cause   error
		says    string
	}{
		"no such serializer":  {bare, &point{X: 9}, ErrUnknownType, "gob"},
		"no such proto type":  {b, foreign(t, "nowhere", "Unknown", nil), ErrUnknownType, "nowhere.Unknown"},
		"it panics":           {b, &point{X: 1}, ErrBadPayload, "a bug in a deserializer"},
		"it makes nothing":    {b, &point{X: 2}, ErrBadPayload, "made nothing"},
		"it fails":            {b, &point{X: 3}, ErrBadPayload, "torn"},
		"other JSON":          {b, order{ID: 1}, ErrBadPayload, "order"},
		"no JSON":             {b, &remote.JsonMessage{TypeName: "x", Json: "{"}, ErrBadPayload, "JSON"},
		"no JSON of its type": {b, &remote.JsonMessage{TypeName: "google.protobuf.BoolValue", Json: "7"}, ErrBadPayload, "BoolValue"},
		"a batch of unknown types": {b, &cluster.PubSubBatchTransport{TypeNames: []string{"no.such"},
			Envelopes: []*cluster.PubSubEnvelope{{}}}, ErrBadPayload, "PubSubBatchTransport"},
		"a batch that points nowhere": {b, &cluster.PubSubBatchTransport{Envelopes: []*cluster.PubSubEnvelope{{TypeId: 7}}},
			ErrBadPayload, "PubSubBatchTransport"},
	} {
		t.Run(name, func(t *testing.T) {
			here := events[*MessageUndelivered](t, a.sys)
			dead := events[*actor.DeadLetterEvent](t, c.to.sys)
			facts := c.to.Events().Subscribe(testContext(t))
			future := a.sys.Root.RequestFuture(c.to.at("inbox"), c.message, patience)
			require.ErrorIs(t, future.Wait(), actor.ErrDeadLetter, "the sender learns at once")
			u := next(t, here, "the sender's node learns why")
			var refused *RefusedError
			require.ErrorAs(t, u.Cause, &refused)
			require.ErrorIs(t, u.Cause, c.cause)
			require.Contains(t, u.Cause.Error(), c.says)
			require.Equal(t, c.to.Address(), refused.Peer)
			require.Equal(t, "inbox", u.Target.Id)
			require.IsType(t, &Undecoded{}, u.Message)
			require.IsType(t, &Undecoded{}, next(t, dead, "the receiver's dead letter").Message)
			for {
				if f := next(t, facts, "the receiver's event"); f.Kind == rail.MessageRefused {
					require.ErrorIs(t, f.Cause, c.cause)
					break
				}
			}
			_, err := a.sys.Root.RequestFuture(c.to.at("nobody"), text("x"), patience).Result()
			require.ErrorIs(t, err, actor.ErrDeadLetter, "the rail lives")
		})
	}
}

// Messages of protoactor's cluster travel as what they serialize to, and are themselves again.
func TestRootSerializable(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	a.sys.Root.Send(b.at("inbox"), &cluster.PubSubBatch{Envelopes: []proto.Message{text("one"), wrapperspb.Bool(true)}})
	batch := next(t, got, "the batch").message.(*cluster.PubSubBatch)
	require.Len(t, batch.Envelopes, 2)
	require.Equal(t, "one", textOf(t, batch.Envelopes[0]))
}

func TestNotices(t *testing.T) {
	r := notice{target: "t", typeName: "n", size: 1 << 40, kind: 3, reason: "why"}
	b := r.append(nil)
	again, err := parseNotice(b)
	require.NoError(t, err)
	require.Equal(t, r, again)
	for i := range b {
		_, err := parseNotice(b[:i])
		require.ErrorIs(t, err, errBadNotice, "%d", i)
	}
	// A peer that makes them up harms nobody.
	a, z := node(t), node(t)
	undelivered := events[*MessageUndelivered](t, z.sys)
	connected(t, a, z)
	for _, payload := range [][]byte{nil, {0xff}, notice{target: "t", kind: 99, size: 1 << 63}.made()} {
		require.NoError(t, a.Send(testContext(t), z.at(noticeTarget), payload))
	}
	u := next(t, undelivered, "the made up one")
	require.Equal(t, a.Address(), u.Target.Address)
	require.NotErrorIs(t, u.Cause, ErrUnknownType)
	require.NotErrorIs(t, u.Cause, rma.ErrOutcomeUnknown)
}

func (r notice) made() []byte { return r.append(nil) }
