// Package pinger is the actor of the ping loads, the same one over protoactor's remote and over rails.
package pinger

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/bench/internal/cell"
)

// Pinger is an actor that sends its message again when it has come back.
type Pinger struct {
	Tally   *cell.Tally
	Counter *cell.Counter
	To      *actor.PID
	Message *wrapperspb.BytesValue
	began   time.Time
}

// Receive implements actor.Actor.
func (p *Pinger) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
	case *wrapperspb.BytesValue:
		p.Tally.Took(time.Since(p.began))
		p.Counter.Add(int64(len(m.Value)))
	default:
		return
	}
	p.began = time.Now()
	ctx.Request(p.To, p.Message)
}
