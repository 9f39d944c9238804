// Package tracing takes OpenTelemetry's context from actor to actor, through the headers of messages, within a node and
// between nodes:
//
//	t := tracing.New(nil)
//	props := actor.PropsFromProducer(newCart,
//		actor.WithReceiverMiddleware(t.Receiver(tracer)), actor.WithSenderMiddleware(t.Sender()))
//	root := system.Root.Copy().WithSenderMiddleware(t.From(ctx))
//
// Each message that an actor processes is a span then, whose parent is the span in which it was sent. Inside Receive,
// Context gives it, for what an actor calls meanwhile.
//
// Owner: nobody; a Tracing has no state. All functions may be called from any goroutine.
// Invariant: a message without a trace gets no header.
package tracing
