package tracing

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Tracing writes a trace into headers and reads it from there.
type Tracing struct {
	propagator propagation.TextMapPropagator
}

// New makes one by a propagator; nil: W3C trace context and baggage.
func New(p propagation.TextMapPropagator) Tracing {
	if p == nil {
		p = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	return Tracing{p}
}

// Inject writes the trace of ctx into the headers of a message that is not sent yet.
func (t Tracing) Inject(ctx context.Context, envelope *actor.MessageEnvelope) {
	t.propagator.Inject(ctx, outgoing{envelope})
}

// Extract gives a context with what is in the headers of a message, on top of parent.
func (t Tracing) Extract(parent context.Context, header actor.ReadonlyMessageHeader) context.Context {
	if header == nil || header.Length() == 0 {
		return parent
	}
	return t.propagator.Extract(parent, incoming{header})
}

// Context gives, inside Receive, a context with the span of the message that is being processed.
func (t Tracing) Context(ctx interface {
	MessageHeader() actor.ReadonlyMessageHeader
}) context.Context {
	return t.Extract(context.Background(), ctx.MessageHeader())
}

// From is a sender middleware, mostly for a root context: what is sent carries the trace of ctx.
func (t Tracing) From(ctx context.Context) actor.SenderMiddleware {
	return func(next actor.SenderFunc) actor.SenderFunc {
		return func(c actor.SenderContext, target *actor.PID, envelope *actor.MessageEnvelope) {
			t.Inject(ctx, envelope)
			next(c, target, envelope)
		}
	}
}

// Sender is a sender middleware for actors: what one sends while it processes a message carries that message's trace on,
// unless it carries one of its own.
func (t Tracing) Sender() actor.SenderMiddleware {
	return func(next actor.SenderFunc) actor.SenderFunc {
		return func(c actor.SenderContext, target *actor.PID, envelope *actor.MessageEnvelope) {
			if header := c.MessageHeader(); header != nil {
				for _, name := range t.propagator.Fields() {
					if value := header.Get(name); value != "" && envelope.GetHeader(name) == "" {
						envelope.SetHeader(name, value)
					}
				}
			}
			next(c, target, envelope)
		}
	}
}

// Receiver is a receiver middleware: each message that carries a trace is processed in a span, named by its type. The actor
// sees that span in the message's headers in place of the sender's.
func (t Tracing) Receiver(tracer trace.Tracer) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			parent := t.propagator.Extract(context.Background(), outgoing{envelope})
			if !trace.SpanContextFromContext(parent).IsValid() {
				next(c, envelope)
				return
			}
			ctx, span := tracer.Start(parent, fmt.Sprintf("%T", envelope.Message), trace.WithSpanKind(trace.SpanKindConsumer))
			defer span.End() // which records a panic, and lets it go on
			// The map may be somebody else's as well: a local sender's, or that of a message to many.
			own := &actor.MessageEnvelope{Header: copied(envelope), Message: envelope.Message, Sender: envelope.Sender}
			t.Inject(ctx, own)
			next(c, own)
		}
	}
}

func copied(envelope *actor.MessageEnvelope) map[string]string {
	header := make(map[string]string, envelope.Header.Length()+1)
	for _, k := range envelope.Header.Keys() {
		header[k] = envelope.Header.Get(k)
	}
	return header
}

// outgoing is the headers of a message that is not sent yet, or of one that has just come.
type outgoing struct{ envelope *actor.MessageEnvelope }

var _ propagation.TextMapCarrier = outgoing{}

func (o outgoing) Get(key string) string { return o.envelope.GetHeader(key) }

func (o outgoing) Set(key, value string) { o.envelope.SetHeader(key, value) }

func (o outgoing) Keys() []string { return o.envelope.Header.Keys() }

// incoming is the headers of a message that is being processed.
type incoming struct{ actor.ReadonlyMessageHeader }

var _ propagation.TextMapCarrier = incoming{}

// Set does nothing: nobody writes headers of a message that has come.
func (incoming) Set(string, string) {}
