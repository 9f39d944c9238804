package actors

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
	"railyard/rma"
)

// foreign makes a message of a type that this program has not registered: pkg.name, with one field
// of bytes.
func foreign(t testing.TB, pkg, name string, value []byte) proto.Message {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String(pkg + "/" + name + ".proto"), Package: proto.String(pkg), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String(name),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("value"), Number: proto.Int32(1),
				Type:  descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum(),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}},
	}, nil)
	require.NoError(t, err)
	d := file.Messages().Get(0)
	m := dynamicpb.NewMessage(d)
	m.Set(d.Fields().Get(0), protoreflect.ValueOfBytes(value))
	return m
}

func TestDeadLettersForUnknownNames(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	dead := events[*actor.DeadLetterEvent](t, b.sys)
	me, back := a.inbox(t, "me")
	a.sys.Root.RequestWithCustomSender(b.at("nobody"), text("lost"), me)
	letter := next(t, dead, "the dead letter at the receiver")
	require.Equal(t, "nobody", letter.PID.Id)
	require.Equal(t, "lost", textOf(t, letter.Message))
	require.IsType(t, &actor.DeadLetterResponse{}, next(t, back, "the sender's answer").message)

	_, err := a.sys.Root.RequestFuture(b.at("nobody"), text("lost"), patience).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
	a.sys.Root.Send(b.at("inbox"), text("after"))
	require.Equal(t, "after", textOf(t, next(t, got, "what comes after").message))
}

// A type that the receiver does not know, and a payload that does not decode, cost that message and
// nothing else.
func TestWhatTheReceiverCannotRead(t *testing.T) {
	for name, c := range map[string]struct {
		message proto.Message
		cause   error
	}{
		"unknown type":   {foreign(t, "nowhere", "Unknown", []byte("x")), ErrUnknownType},
		"broken payload": {foreign(t, "google.protobuf", "StringValue", []byte{0xff}), ErrBadPayload},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := node(t), node(t)
			_, got := b.inbox(t, "inbox")
			dead := events[*actor.DeadLetterEvent](t, b.sys)
			facts := b.Events().Subscribe(testContext(t))
			e, err := a.Connect(testContext(t), b.Address())
			require.NoError(t, err)
			generation := e.Rails()[0].Generation

			_, err = a.sys.Root.RequestFuture(b.at("inbox"), c.message, patience).Result()
			require.ErrorIs(t, err, actor.ErrDeadLetter, "the sender learns at once")
			u, ok := next(t, dead, "a dead letter at the receiver").Message.(*Undecoded)
			require.True(t, ok)
			require.ErrorIs(t, u.Cause, c.cause)
			require.Equal(t, string(c.message.ProtoReflect().Descriptor().FullName()), u.Type)
			for {
				fact := next(t, facts, "an event at the receiver")
				if fact.Kind == rail.MessageRefused {
					require.ErrorIs(t, fact.Cause, c.cause)
					require.Equal(t, a.Address(), fact.Peer)
					break
				}
			}
			for _, s := range []string{"one", "two"} {
				a.sys.Root.Send(b.at("inbox"), text(s))
				require.Equal(t, s, textOf(t, next(t, got, "what comes after").message))
			}
			require.Equal(t, generation, e.Rails()[0].Generation, "the rail lives")
		})
	}
}

// What cannot be written is a dead letter at the sender, with the cause beside it.
func TestWhatTheSenderCannotWrite(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	type plain struct{ X int }
	headers := map[string]string{"big": string(make([]byte, 9<<10))}
	long := make([]byte, 2000)
	for i := range long {
		long[i] = 'n'
	}
	for name, c := range map[string]struct {
		target  *actor.PID
		message any
		cause   error
		says    string
	}{
		"not protobuf":    {b.at("inbox"), &plain{1}, ErrNotProtobuf, "*actors.plain"},
		"nil":             {b.at("inbox"), nil, ErrNilMessage, "nil"},
		"invalid text":    {b.at("inbox"), text("\xff"), nil, "wrapperspb.StringValue"},
		"large headers":   {b.at("inbox"), &actor.MessageEnvelope{Header: headers, Message: text("x")}, rma.ErrTooLarge, "8192"},
		"a long name":     {b.at(string(long)), text("x"), rma.ErrTooLarge, "1024"},
		"a local message": {b.at("inbox"), &actor.Started{}, ErrNotProtobuf, "actor.Started"},
	} {
		t.Run(name, func(t *testing.T) {
			undelivered := events[*MessageUndelivered](t, a.sys)
			dead := events[*actor.DeadLetterEvent](t, a.sys)
			me := a.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			if _, wrapped := c.message.(*actor.MessageEnvelope); wrapped || name == "nil" {
				a.sys.Root.Send(c.target, c.message)
			} else {
				a.sys.Root.RequestWithCustomSender(c.target, c.message, me)
			}
			u := next(t, undelivered, "the cause")
			if c.cause != nil {
				require.ErrorIs(t, u.Cause, c.cause)
			}
			require.Contains(t, u.Cause.Error(), c.says)
			require.Equal(t, c.target.String(), u.Target.String())
			letter := next(t, dead, "the dead letter")
			require.True(t, u.Message == letter.Message, "%T became %T", u.Message, letter.Message)
			require.True(t, u.Sender == letter.Sender)
		})
	}
	a.sys.Root.Send(b.at("inbox"), text("after"))
	require.Equal(t, "after", textOf(t, next(t, got, "what comes after").message))
}

// Peers can stop each other's actors, as protoactor lets them, but not those that the framework
// consists of.
func TestPeersDoNotReachTheFramework(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	a.sys.Root.Send(b.at("inbox"), text("before"))
	next(t, got, "what comes before")
	facts := b.Events().Subscribe(testContext(t))
	e, err := b.Connect(testContext(t), a.Address())
	require.NoError(t, err)
	a.sys.Root.Stop(b.at(e.PID().Id))
	a.sys.Root.Poison(b.at(e.PID().Id))
	for refused := 0; refused < 2; { // among what a connection that is just made has to tell
		if fact := next(t, facts, "an event at the receiver"); fact.Kind == rail.MessageRefused {
			require.ErrorIs(t, fact.Cause, ErrReserved)
			refused++
		}
	}
	a.sys.Root.Send(b.at("inbox"), text("after"))
	require.Equal(t, "after", textOf(t, next(t, got, "what comes after").message))
	require.NoError(t, e.Err())
}

// A mailbox that panics is somebody's bug; it costs the message that met it.
func TestAPanicWhileDelivering(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	facts := b.Events().Subscribe(testContext(t))
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {},
		actor.WithMailbox(func() actor.Mailbox { return panicking{actor.Unbounded()()} })), "panics")
	require.NoError(t, err)
	_, err = a.sys.Root.RequestFuture(b.at("panics"), text("x"), patience).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
	for next(t, facts, "an event at the receiver").Kind != rail.MessageRefused {
	}
	a.sys.Root.Send(b.at("inbox"), text("after"))
	require.Equal(t, "after", textOf(t, next(t, got, "what comes after").message))
}

type panicking struct{ actor.Mailbox }

func (panicking) PostUserMessage(any) { panic("a bug in a mailbox") }

func TestWindowComesBackWhateverBecomesOfAMessage(t *testing.T) {
	const size = 64 << 10
	a := node(t)
	b := node(t, func(c *Config) { c.MaxMessage, c.Window = size, size*5/4+128<<10 })
	_, got := b.inbox(t, "inbox")
	ctx := testContext(t)
	_, err := a.Connect(ctx, b.Address())
	require.NoError(t, err)
	// Far more than the window, none of which reaches an actor.
	for range 40 {
		require.NoError(t, a.Send(ctx, b.at("nobody"), wrapperspb.Bytes(make([]byte, size/2))))
		require.NoError(t, a.Send(ctx, b.at("inbox"), foreign(t, "nowhere", "Unknown", make([]byte, size/2))))
		require.NoError(t, a.Send(ctx, b.at("railyard-$1"), wrapperspb.Bytes(make([]byte, size/2))))
	}
	require.NoError(t, a.Send(ctx, b.at("inbox"), text("after")))
	require.Equal(t, "after", textOf(t, next(t, got, "what comes after").message))
}
