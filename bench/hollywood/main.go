// Hollywood is the remote of Hollywood, another actor framework for Go.
//
// Its limit on the size of a batch is lifted, and senders are held back by the application, since its queues have no bound.
package main

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/anthdm/hollywood/actor"
	"github.com/anthdm/hollywood/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/bench/internal/cell"
)

// largest is the size of a batch of messages.
const largest = 1 << 30

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	cell.Main(cell.Contender{Serve: serve, Drive: drive})
}

// start makes an engine that is reached from other processes.
func start() (*actor.Engine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port on loopback: %w", err)
	}
	// The remote does not tell which port the system chose, so it is given one that was free a moment ago.
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("a port on loopback stays taken: %w", err)
	}
	config := remote.NewConfig().WithBufferSize(largest)
	return actor.NewEngine(actor.NewEngineConfig().WithRemote(remote.New(address, config)))
}

func serve(s cell.Setup) (cell.Reach, error) {
	engine, err := start()
	if err != nil {
		return cell.Reach{}, err
	}
	switch s.Spec.Load {
	case cell.Ping:
		engine.SpawnFunc(func(ctx *actor.Context) {
			if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
				ctx.Respond(m)
			}
		}, "echo", actor.WithID("0"))
	case cell.Messages:
		for i := range s.Spec.Senders {
			engine.SpawnFunc(sink(s), "sink", actor.WithID(fmt.Sprint(i)))
		}
	default:
		err = cell.ErrNoLoad
	}
	return cell.Reach{Address: engine.Address()}, err
}

// sink counts messages, and tells its sender now and then.
func sink(s cell.Setup) func(*actor.Context) {
	counter, seen, each := s.Tally.Counter(0), 0, s.Spec.AckEach()
	return func(ctx *actor.Context) {
		m, ok := ctx.Message().(*wrapperspb.BytesValue)
		if !ok {
			return
		}
		counter.Add(int64(len(m.Value)))
		if seen++; seen%each == 0 {
			ctx.Respond(wrapperspb.Int64(int64(each)))
		}
	}
}

func drive(s cell.Setup) (func() error, error) {
	engine, err := start()
	if err != nil {
		return nil, err
	}
	message := &wrapperspb.BytesValue{Value: make([]byte, s.Spec.Size)}
	switch s.Spec.Load {
	case cell.Ping:
		p := &pinger{tally: s.Tally, counter: s.Tally.Counter(s.Spec.Size), to: actor.NewPID(s.Peer.Address, "echo/0"), message: message}
		return func() error {
			engine.Spawn(func() actor.Receiver { return p }, "pinger")
			return nil
		}, nil
	case cell.Messages:
		return func() error {
			for i := range s.Spec.Senders {
				go send(engine, actor.NewPID(s.Peer.Address, fmt.Sprintf("sink/%d", i)), message, s.Spec.Window)
			}
			return nil
		}, nil
	default:
		return nil, cell.ErrNoLoad
	}
}

// send sends for ever, as its credits allow.
func send(engine *actor.Engine, to *actor.PID, message *wrapperspb.BytesValue, window int) {
	credits := cell.NewCredits(window)
	self := engine.SpawnFunc(func(ctx *actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			credits.Give(int(m.Value))
		}
	}, "sender")
	for {
		credits.Take()
		engine.SendWithSender(to, message, self)
	}
}

// pinger is an actor that sends its message again when it has come back.
type pinger struct {
	tally   *cell.Tally
	counter *cell.Counter
	to      *actor.PID
	message *wrapperspb.BytesValue
	began   time.Time
}

func (p *pinger) Receive(ctx *actor.Context) {
	switch m := ctx.Message().(type) {
	case actor.Started:
	case *wrapperspb.BytesValue:
		p.tally.Took(time.Since(p.began))
		p.counter.Add(int64(len(m.Value)))
	default:
		return
	}
	p.began = time.Now()
	ctx.Engine().SendWithSender(p.to, p.message, ctx.PID())
}
