package tracing_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/actors"
	"railyard/actors/tracing"
	"railyard/rail"
)

const patience = 20 * time.Second

type host struct {
	system *actor.ActorSystem
	node   *actors.Node
}

func start(t *testing.T) host {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
	node, err := actors.Start(system, actors.Config{Rails: []rail.Binding{rail.TCP("127.0.0.1:0")}, Secret: []byte("for tests")})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.NoError(t, node.Shutdown(ctx))
		system.Shutdown()
	})
	return host{system, node}
}

func (h host) spawn(t *testing.T, name string, props *actor.Props) *actor.PID {
	t.Helper()
	_, err := h.system.Root.SpawnNamed(props, name)
	require.NoError(t, err)
	return actor.NewPID(h.node.Address(), name)
}

// One trace goes from a caller through an actor of one node to an actor of another, and back.
func TestOneTraceOverTwoNodes(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	tracer := provider.Tracer("test")
	tr := tracing.New(nil)
	traced := func(receive actor.ReceiveFunc) *actor.Props {
		return actor.PropsFromFunc(receive, actor.WithReceiverMiddleware(tr.Receiver(tracer)), actor.WithSenderMiddleware(tr.Sender()))
	}
	a, b := start(t), start(t)
	seen := make(chan trace.SpanContext, 10)
	back := b.spawn(t, "back", traced(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			seen <- trace.SpanContextFromContext(tr.Context(ctx))
			ctx.Respond(wrapperspb.Bool(true))
		}
	}))
	front := a.spawn(t, "front", traced(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.RequestWithCustomSender(back, m, ctx.Sender())
		}
	}))
	ctx, span := tracer.Start(context.Background(), "caller")
	root := a.system.Root.Copy().WithSenderMiddleware(tr.From(ctx))
	answer, err := root.RequestFuture(front, wrapperspb.String("x"), patience).Result()
	require.NoError(t, err)
	require.True(t, answer.(*wrapperspb.BoolValue).GetValue())
	span.End()
	require.Equal(t, span.SpanContext().TraceID(), (<-seen).TraceID())

	// Spans end behind the answer.
	require.Eventually(t, func() bool { return len(spans.GetSpans()) == 3 }, patience, time.Millisecond)
	parents := make(map[trace.SpanID]trace.SpanID)
	for _, s := range spans.GetSpans() {
		require.Equal(t, span.SpanContext().TraceID(), s.SpanContext.TraceID())
		parents[s.SpanContext.SpanID()] = s.Parent.SpanID()
	}
	depth := 0
	for id := range parents {
		n := 0
		for at := id; at.IsValid(); at = parents[at] {
			n++
		}
		depth = max(depth, n)
	}
	require.Equal(t, 3, depth, "caller, front, back: each the child of the one before")

	// A message without a trace starts none, and has no headers.
	a.system.Root.Send(back, wrapperspb.String("y"))
	require.False(t, (<-seen).IsValid())
	require.Len(t, spans.GetSpans(), 3)
}

// A panic is told, and is the supervisor's as ever.
func TestPanicsGoOn(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(spans)).Tracer("test")
	tr := tracing.New(nil)
	a := start(t)
	failed := make(chan any, 1)
	sub := a.system.EventStream.Subscribe(func(e any) {
		if s, ok := e.(*actor.SupervisorEvent); ok {
			failed <- s.Reason
		}
	})
	defer a.system.EventStream.Unsubscribe(sub)
	pid := a.spawn(t, "fails", actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			panic("on purpose")
		}
	}, actor.WithReceiverMiddleware(tr.Receiver(tracer))))
	ctx, span := tracer.Start(context.Background(), "caller")
	defer span.End()
	envelope := &actor.MessageEnvelope{Message: wrapperspb.String("x")}
	tr.Inject(ctx, envelope)
	a.system.Root.Send(pid, envelope)
	require.Equal(t, "on purpose", <-failed)
	require.Len(t, spans.GetSpans()[0].Events, 1)
}
