package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What protoactor's users do inside an actor, with PIDs of another node.

// A sender middleware's headers travel with everything that its actor sends, answers too.
func TestSenderMiddleware(t *testing.T) {
	a, b := node(t), node(t)
	stamp := func(name string) actor.SenderMiddleware {
		return func(next actor.SenderFunc) actor.SenderFunc {
			return func(ctx actor.SenderContext, target *actor.PID, e *actor.MessageEnvelope) {
				e.SetHeader("by", name)
				next(ctx, target, e)
			}
		}
	}
	seen := make(chan string, 10)
	receive := func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
			if _, ok := e.Message.(*wrapperspb.StringValue); ok {
				seen <- e.GetHeader("by")
			}
			next(ctx, e)
		}
	}
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Respond(m)
		}
	}, actor.WithReceiverMiddleware(receive), actor.WithSenderMiddleware(stamp("b"))), "back")
	require.NoError(t, err)
	front := a.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BoolValue); ok {
			ctx.Request(b.at("back"), text("x"))
		}
	}, actor.WithReceiverMiddleware(receive), actor.WithSenderMiddleware(stamp("a"))))
	a.sys.Root.Send(front, wrapperspb.Bool(true))
	for _, by := range []string{"a", "b"} { // the request at the back, and the answer at the front
		require.Equal(t, by, next(t, seen, "a message through the middleware"))
	}
	root := a.sys.Root.Copy().WithSenderMiddleware(stamp("root"))
	_, err = root.RequestFuture(b.at("back"), text("y"), patience).Result()
	require.NoError(t, err)
	require.Equal(t, "root", next(t, seen, "a request's message"))
}

// ReenterAfter goes on inside the actor once the other node's actor has answered, or will not.
func TestReenterAfter(t *testing.T) {
	a, b := node(t), node(t)
	b.echo(t, "echo")
	type outcome struct {
		state  int
		result any
		err    error
	}
	done := make(chan outcome, 10)
	state := 0 // the actor's own: only Receive and what reenters touch it
	pid := a.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		m, ok := ctx.Message().(*wrapperspb.StringValue)
		if !ok {
			return
		}
		future := ctx.RequestFuture(b.at(m.GetValue()), text("question"), patience)
		ctx.ReenterAfter(future, func(result any, err error) {
			state++
			done <- outcome{state, result, err}
		})
	}))
	a.sys.Root.Send(pid, text("echo"))
	got := next(t, done, "the continuation")
	require.NoError(t, got.err)
	require.Equal(t, "question", textOf(t, got.result))
	a.sys.Root.Send(pid, text("nobody"))
	got = next(t, done, "the continuation")
	require.ErrorIs(t, got.err, actor.ErrDeadLetter)
	require.Equal(t, 2, got.state)
}

// A future has its own time, whatever becomes of the answer.
func TestRequestFutureTimesOut(t *testing.T) {
	a, b := node(t), node(t)
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "silent")
	require.NoError(t, err)
	connected(t, a, b)
	_, err = a.sys.Root.RequestFuture(b.at("silent"), text("x"), 50*time.Millisecond).Result()
	require.ErrorIs(t, err, actor.ErrTimeout)
}

// StopFuture and PoisonFuture from inside an actor, and a future that is piped to a third one's PID.
func TestFuturesOfAnActor(t *testing.T) {
	a, b := node(t), node(t)
	for i := range 2 {
		b.echo(t, fmt.Sprint("ends", i))
	}
	b.echo(t, "echo")
	_, piped := b.inbox(t, "pipe")
	done := make(chan error, 2)
	pid := a.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BoolValue); ok {
			ctx.RequestFuture(b.at("echo"), text("for the third"), patience).PipeTo(b.at("pipe"))
			for _, future := range []*actor.Future{ctx.StopFuture(b.at("ends0")), ctx.PoisonFuture(b.at("ends1"))} {
				ctx.ReenterAfter(future, func(_ any, err error) { done <- err })
			}
		}
	}))
	a.sys.Root.Send(pid, wrapperspb.Bool(true))
	for range 2 {
		require.NoError(t, next(t, done, "the end of an actor"))
	}
	require.Equal(t, "for the third", textOf(t, next(t, piped, "what was piped").message))
	for i := range 2 {
		_, alive := b.sys.ProcessRegistry.GetLocal(fmt.Sprint("ends", i))
		require.False(t, alive)
	}
}
