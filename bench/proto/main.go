// Proto is protoactor-go's own remote, over gRPC: what users of protoactor have without Railyard.
//
// Its limits on the size of a gRPC message are lifted: with its defaults, batches of large messages are lost without a word. Its
// queues have no bound, so senders are held back here, by the application.
package main

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/bench/internal/cell"
	"railyard/bench/internal/pinger"
)

// largest is the size of a gRPC message, which is a batch of messages.
const largest = 1 << 30

func main() { cell.Main(cell.Contender{Serve: serve, Drive: drive}) }

// start makes a system that is reached from other processes, and gives its address.
func start() (*actor.ActorSystem, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	remote.NewRemote(system, remote.Configure("127.0.0.1", port,
		remote.WithServerOptions(grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest)),
		remote.WithDialOptions(grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest))),
	)).Start()
	return system, fmt.Sprintf("127.0.0.1:%d", port), nil
}

// freePort finds one, since the remote does not tell which the system chose.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no port on loopback: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func serve(s cell.Setup) (cell.Reach, error) {
	system, address, err := start()
	if err != nil {
		return cell.Reach{}, err
	}
	spawn := func(name string, receive actor.ReceiveFunc) {
		if _, taken := system.Root.SpawnNamed(actor.PropsFromFunc(receive), name); taken != nil {
			err = taken
		}
	}
	switch s.Spec.Load {
	case cell.Ping:
		spawn("echo", func(ctx actor.Context) {
			if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
				ctx.Respond(m)
			}
		})
	case cell.Messages:
		for i := range s.Spec.Senders {
			spawn(sinkName(i), sink(s))
		}
	default:
		err = cell.ErrNoLoad
	}
	return cell.Reach{Address: address}, err
}

func sinkName(i int) string { return fmt.Sprintf("sink%d", i) }

// sink counts messages, and tells its sender now and then.
func sink(s cell.Setup) actor.ReceiveFunc {
	counter, seen, each := s.Tally.Counter(0), 0, s.Spec.AckEach()
	return func(ctx actor.Context) {
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
	system, _, err := start()
	if err != nil {
		return nil, err
	}
	message := &wrapperspb.BytesValue{Value: make([]byte, s.Spec.Size)}
	switch s.Spec.Load {
	case cell.Ping:
		p := &pinger.Pinger{Tally: s.Tally, Counter: s.Tally.Counter(s.Spec.Size),
			To: actor.NewPID(s.Peer.Address, "echo"), Message: message}
		return func() error {
			system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }))
			return nil
		}, nil
	case cell.Messages:
		return func() error {
			for i := range s.Spec.Senders {
				go send(system, actor.NewPID(s.Peer.Address, sinkName(i)), message, s.Spec.Window)
			}
			return nil
		}, nil
	default:
		return nil, cell.ErrNoLoad
	}
}

// send sends for ever, as its credits allow.
func send(system *actor.ActorSystem, to *actor.PID, message *wrapperspb.BytesValue, window int) {
	credits := cell.NewCredits(window)
	self := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			credits.Give(int(m.Value))
		}
	}))
	for {
		credits.Take()
		system.Root.RequestWithCustomSender(to, message, self)
	}
}
