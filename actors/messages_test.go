package actors

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/endpoint"
	"railyard/rma"
)

func TestSendRequestRespond(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	a.sys.Root.Send(b.at("inbox"), text("one"))
	first := next(t, got, "a plain Send")
	require.Equal(t, "one", textOf(t, first.message))
	require.Nil(t, first.sender)
	require.Empty(t, first.headers)

	me, back := a.inbox(t, "me")
	b.echo(t, "echo")
	a.sys.Root.RequestWithCustomSender(b.at("echo"), text("two"), me)
	answer := next(t, back, "the answer")
	require.Equal(t, "two", textOf(t, answer.message))

	a.sys.Root.RequestWithCustomSender(b.at("inbox"), text("three"), me)
	second := next(t, got, "a request")
	require.Equal(t, a.at("me").String(), second.sender.String())
	b.sys.Root.Send(second.sender, text("to the sender's PID"))
	require.Equal(t, "to the sender's PID", textOf(t, next(t, back, "what was sent to the sender").message))
}

func TestFuturesAndForward(t *testing.T) {
	a, b := node(t), node(t)
	b.echo(t, "echo")
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Forward(b.at("echo"))
		}
	}), "forwarder")
	require.NoError(t, err)
	for i := range 50 {
		for _, name := range []string{"echo", "forwarder"} {
			s := fmt.Sprint(name, i)
			res, err := a.sys.Root.RequestFuture(b.at(name), text(s), patience).Result()
			require.NoError(t, err)
			require.Equal(t, s, textOf(t, res))
		}
	}
	require.Empty(t, a.futures.waiting, "answered futures are forgotten")
}

func TestHeadersTravel(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	headers := map[string]string{"trace": "1234", "empty": "", "": "no key", "utf8": "schön"}
	me, _ := a.inbox(t, "me")
	a.sys.Root.Send(b.at("inbox"), &actor.MessageEnvelope{Header: headers, Message: text("x"), Sender: me})
	with := next(t, got, "a message with headers and a sender")
	require.Equal(t, headers, with.headers)
	require.Equal(t, "me", with.sender.GetId())
	a.sys.Root.Send(b.at("inbox"), &actor.MessageEnvelope{Header: headers, Message: text("x")})
	without := next(t, got, "a message with headers and no sender")
	require.Equal(t, headers, without.headers)
	require.Nil(t, without.sender)
}

func TestMessagesArriveInOrder(t *testing.T) {
	const each, senders = 3000, 4
	a, b := node(t), node(t, func(c *Config) { *c = loopback(2) })
	_, got := b.inbox(t, "inbox")
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				size := i % 100
				if i%500 == 0 {
					size = 40 << 10 // travels in chunks
				}
				a.sys.Root.Send(b.at("inbox"), text(fmt.Sprintf("%d %d %s", s, i, strings.Repeat("x", size))))
			}
		})
	}
	var last [senders]int
	for range each * senders {
		var s, i int
		_, err := fmt.Sscanf(textOf(t, next(t, got, "a message").message), "%d %d", &s, &i)
		require.NoError(t, err)
		require.Equal(t, last[s], i, "sender %d", s)
		last[s]++
	}
	sending.Wait()
}

// The first message connects, also to an address that is not the one in the peer's PIDs.
func TestImplicitConnect(t *testing.T) {
	a := node(t)
	b := node(t, func(c *Config) { *c = loopback(2) })
	_, got := b.inbox(t, "inbox")
	b.echo(t, "echo")
	other := b.manager().Listening()[1].Address
	require.NotEqual(t, b.Address(), other)
	a.sys.Root.Send(actor.NewPID(other, "inbox"), text("by the second rail's address"))
	require.Equal(t, "by the second rail's address", textOf(t, next(t, got, "a message").message))
	res, err := a.sys.Root.RequestFuture(actor.NewPID(other, "echo"), text("hello"), patience).Result()
	require.NoError(t, err)
	require.Equal(t, "hello", textOf(t, res))
}

func TestPIDsWithOurOwnAddressesAreLocal(t *testing.T) {
	a := node(t, func(c *Config) { *c = loopback(2) })
	_, got := a.inbox(t, "inbox")
	for _, b := range a.manager().Listening() {
		a.sys.Root.Send(actor.NewPID(b.Address, "inbox"), text(b.Address))
		require.Equal(t, b.Address, textOf(t, next(t, got, "a message to "+b.Address).message))
		require.NoError(t, a.Send(testContext(t), actor.NewPID(b.Address, "inbox"), text("again")))
		next(t, got, "a message by Node.Send")
	}
	dead := events[*actor.DeadLetterEvent](t, a.sys)
	a.sys.Root.Send(actor.NewPID(a.manager().Listening()[1].Address, "nobody"), text("x"))
	require.Equal(t, "nobody", next(t, dead, "a dead letter").PID.Id)
	_, err := a.Connect(testContext(t), a.Address())
	require.ErrorIs(t, err, rma.ErrNoRoute)
}

// An actor that was spawned before Start has a PID without the node's address; peers must be able
// to answer it.
func TestActorsSpawnedBeforeStart(t *testing.T) {
	sys := quietSystem()
	to := make(chan received, 16)
	var b testNode
	begin := make(chan struct{})
	early := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.PoisonPill:
		case *wrapperspb.BoolValue:
			<-begin
			ctx.Request(b.at("echo"), text("from before"))
			ctx.Watch(b.at("echo"))
		case *wrapperspb.StringValue, *actor.Terminated:
			to <- received{message: m}
		}
	}))
	n, err := Start(sys, loopback(1))
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Shutdown(testContext(t))) }()
	b = node(t)
	echo := b.echo(t, "echo")
	close(begin)
	sys.Root.Send(early, wrapperspb.Bool(true))
	require.Equal(t, "from before", textOf(t, next(t, to, "the answer").message))
	b.sys.Root.Stop(echo)
	m, ok := next(t, to, "Terminated").message.(*actor.Terminated)
	require.True(t, ok)
	require.Equal(t, "echo", m.Who.GetId())
}

func TestTwoNodesConnectToEachOtherAtOnce(t *testing.T) {
	for round := range 5 {
		a, b := node(t), node(t)
		a.echo(t, "echo")
		b.echo(t, "echo")
		var both sync.WaitGroup
		for _, way := range [][2]testNode{{a, b}, {b, a}} {
			both.Go(func() {
				for i := range 20 {
					s := fmt.Sprint(round, i)
					res, err := way[0].sys.Root.RequestFuture(way[1].at("echo"), text(s), patience).Result()
					if assert.NoError(t, err) {
						assert.Equal(t, s, textOf(t, res))
					}
				}
			})
			both.Go(func() {
				_, err := way[0].Connect(testContext(t), way[1].Address())
				assert.NoError(t, err)
			})
		}
		both.Wait()
	}
}

// What protoactor's own remote fails at with its default settings.
func TestManyLargeMessagesAtDefaultSettings(t *testing.T) {
	const count, size = 32, 1 << 20
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	for i := range count {
		a.sys.Root.Send(b.at("inbox"), wrapperspb.Bytes(bytes.Repeat([]byte{byte(i)}, size)))
	}
	for i := range count {
		m := next(t, got, "a large message").message.(*wrapperspb.BytesValue)
		require.Len(t, m.GetValue(), size)
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, size), m.GetValue())
	}
}

func TestAMessageOverTheLimit(t *testing.T) {
	const limit = 1 << 20
	a := node(t)
	b := node(t, func(c *Config) { c.MaxMessage = limit })
	_, got := b.inbox(t, "inbox")
	e, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	generation := e.Rails()[0].Generation

	undelivered := events[*MessageUndelivered](t, a.sys)
	dead := events[*actor.DeadLetterEvent](t, a.sys)
	tooLarge := wrapperspb.Bytes(make([]byte, limit+1))
	a.sys.Root.Send(b.at("inbox"), tooLarge)
	u := next(t, undelivered, "the cause")
	require.ErrorIs(t, u.Cause, rma.ErrTooLarge)
	require.Contains(t, u.Cause.Error(), fmt.Sprint(limit), "the limit is named")
	require.Same(t, tooLarge, u.Message)
	require.Same(t, tooLarge, next(t, dead, "the dead letter").Message)
	err = a.Send(testContext(t), b.at("inbox"), tooLarge)
	require.ErrorIs(t, err, rma.ErrTooLarge)
	require.Contains(t, err.Error(), fmt.Sprint(limit))
	_, err = a.sys.Root.RequestFuture(b.at("inbox"), tooLarge, patience).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)

	a.sys.Root.Send(b.at("inbox"), wrapperspb.Bytes(make([]byte, limit-16)))
	require.Len(t, next(t, got, "a message just below the limit").message.(*wrapperspb.BytesValue).GetValue(), limit-16)
	require.Equal(t, generation, e.Rails()[0].Generation, "the rail lives")
	require.NoError(t, e.Err())
}

func TestPoisonAndStop(t *testing.T) {
	a, b := node(t), node(t)
	for name, end := range map[string]func(pid *actor.PID) error{
		"stop":   func(pid *actor.PID) error { return a.sys.Root.StopFuture(pid).Wait() },
		"poison": func(pid *actor.PID) error { return a.sys.Root.PoisonFuture(pid).Wait() },
	} {
		stopped := make(chan int, 1)
		got := 0
		_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *wrapperspb.StringValue:
				got++
			case *actor.Stopped:
				stopped <- got
			}
		}), name)
		require.NoError(t, err)
		for range 100 {
			a.sys.Root.Send(b.at(name), text("x"))
		}
		require.NoError(t, end(b.at(name)), name)
		count := next(t, stopped, name)
		if name == "poison" {
			require.Equal(t, 100, count, "poison waits for what came before")
		}
		_, alive := b.sys.ProcessRegistry.GetLocal(name)
		require.False(t, alive)
		require.Zero(t, a.watches.size)
	}
}

func TestNodeSend(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	ctx := testContext(t)
	require.NoError(t, a.Send(ctx, b.at("inbox"), text("x")))
	require.Equal(t, "x", textOf(t, next(t, got, "a message").message))
	require.ErrorIs(t, a.Send(ctx, nil, text("x")), ErrNoTarget)
	require.ErrorIs(t, a.Send(ctx, actor.NewPID(b.Address(), ""), text("x")), ErrNoTarget)
	require.ErrorIs(t, a.Send(ctx, b.at("inbox"), nil), ErrNilMessage)
	err := a.Send(ctx, b.at("inbox"), struct{ X int }{1})
	require.ErrorIs(t, err, ErrNotProtobuf)
	require.Contains(t, err.Error(), "struct { X int }")
}

// A plain Send that finds no room for SendWait becomes a dead letter that says so; Node.Send an
// error.
func TestAFullWindow(t *testing.T) {
	const size = 1 << 20
	a := node(t, func(c *Config) { c.SendWait, c.MaxMessage, c.Window = 20*time.Millisecond, size+64, 2*size })
	// Nobody answers there: what is sent waits for a connection, in a bounded queue.
	nowhere := actor.NewPID("127.0.0.1:1", "x")
	undelivered := events[*MessageUndelivered](t, a.sys)
	for range 3 {
		a.sys.Root.Send(nowhere, wrapperspb.Bytes(make([]byte, size)))
	}
	for range 2 { // the first one found room
		u := next(t, undelivered, "the cause")
		require.ErrorIs(t, u.Cause, rma.ErrWindowFull)
		require.Equal(t, nowhere.String(), u.Target.String())
	}
	ctx, done := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer done()
	require.ErrorIs(t, a.Send(ctx, nowhere, wrapperspb.Bytes(make([]byte, size))), rma.ErrWindowFull)
	require.NoError(t, a.Shutdown(testContext(t)))
	u := next(t, undelivered, "what waited, at the shutdown")
	require.ErrorIs(t, u.Cause, rma.ErrShutdown)
	require.Equal(t, nowhere.String(), u.Target.String())
}

// A node forgets addresses that lead nowhere. A PID remembers its process, which works all the same, and a watch by it ends as any other.
func TestAPIDOutlivesWhatTheNodeRemembers(t *testing.T) {
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	pid := b.at("inbox")
	remembered := a.peer(b.Address()).process("inbox")
	for i := range endpoint.MaxRoutes + 1 {
		a.peer(fmt.Sprintf("10.1.%d.%d:1", i>>8, i&0xff))
	}
	require.True(t, remembered.peer.route.Dropped())
	known := 0
	a.peers.Range(func(any, any) bool {
		known++
		return true
	})
	require.LessOrEqual(t, known, endpoint.MaxRoutes+1)

	remembered.SendUserMessage(pid, text("one"))
	require.Equal(t, "one", textOf(t, next(t, got, "a message").message))
	require.NotSame(t, remembered.peer, a.peer(b.Address()))
	a.sys.Root.Send(pid, text("two"))
	require.Equal(t, "two", textOf(t, next(t, got, "a message").message))
	remembered.SendUserMessage(pid, text("three"))
	require.Equal(t, "three", textOf(t, next(t, got, "a message").message))

	watcher := actor.NewPID(a.Address(), "watcher")
	remembered.SendSystemMessage(pid, &actor.Watch{Watcher: watcher})
	require.Equal(t, 1, a.watches.size)
	a.peer(b.Address()).process("inbox").SendSystemMessage(pid, &actor.Unwatch{Watcher: watcher})
	require.Zero(t, a.watches.size)
}
