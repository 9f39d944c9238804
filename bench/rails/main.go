// Rails is Railyard as an application uses it: two nodes with their defaults, heartbeats, failover and every promise on.
//
// Senders are not held back by the application: a node's windows do that.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/actors"
	"railyard/bench/internal/cell"
	"railyard/endpoint"
	"railyard/rail"
	"railyard/rma"
)

// connectWait bounds the wait for the peer, and for all of its rails.
const connectWait = time.Minute

func main() { cell.Main(cell.Contender{Serve: serve, Drive: drive}) }

// host is one node with the actor system that it carries.
type host struct {
	system *actor.ActorSystem
	node   *actors.Node
}

func start(s cell.Setup, rails int) (host, error) {
	config := actors.Config{Secret: []byte("bench")}
	for range rails {
		config.Rails = append(config.Rails, rail.TCP("127.0.0.1:0"))
	}
	if s.Spec.TLS {
		cert, pool, err := s.Papers.Pair()
		if err != nil {
			return host{}, err
		}
		config.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS13}
		config.RequireTLS = true
	}
	h := host{system: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))}
	var err error
	h.node, err = actors.Start(h.system, config)
	return h, err
}

func serve(s cell.Setup) (cell.Reach, error) {
	h, err := start(s, max(1, s.Spec.Rails))
	if err != nil {
		return cell.Reach{}, err
	}
	reach := cell.Reach{Address: h.node.Address()}
	if reach.Crowd, err = gather(s); err != nil {
		return reach, err
	}
	if err := h.furnish(s.Spec); err != nil {
		return reach, err
	}
	switch s.Spec.Load {
	case cell.Idle:
	case cell.Put, cell.Get:
		reach.Key, err = h.lend(s.Spec)
	case cell.Ping:
		if s.Spec.Beside > 0 {
			if reach.Key, err = h.lend(s.Spec); err != nil {
				return reach, err
			}
		}
		_, err = h.system.Root.SpawnNamed(actor.PropsFromFunc(echo), "echo")
	case cell.Messages:
		for i := range s.Spec.Senders {
			counter := s.Tally.Counter(0)
			if _, err = h.system.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
					counter.Add(int64(len(m.Value)))
				}
			}), sinkName(i)); err != nil {
				return reach, err
			}
		}
	default:
		return reach, cell.ErrNoLoad
	}
	return reach, err
}

func sinkName(i int) string { return fmt.Sprintf("sink%d", i) }

func echo(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
		ctx.Send(ctx.Sender(), m)
	}
}

// lend registers memory that the peer may write and read, and gives its key.
func (h host) lend(s cell.Spec) ([]byte, error) {
	region, err := h.node.Alloc(int(s.Region()))
	if err != nil {
		return nil, err
	}
	for i := range region { // touched, as memory that is in use has been
		region[i] = 1
	}
	r, err := h.node.Register(region, rma.RemoteWrite|rma.RemoteRead)
	if err != nil {
		return nil, err
	}
	return r.Key().MarshalBinary()
}

func drive(s cell.Setup) (func() error, error) {
	h, err := start(s, max(1, s.Spec.Rails))
	if err != nil {
		return nil, err
	}
	peer, err := h.connect(s.Peer.Address, s.Spec.Rails)
	if err != nil {
		return nil, err
	}
	d := driver{host: h, peer: peer, setup: s}
	if err := d.meet(); err != nil {
		return nil, err
	}
	if len(s.Peer.Key) > 0 {
		if err := d.borrow(); err != nil {
			return nil, err
		}
	}
	switch s.Spec.Load {
	case cell.Put, cell.Get:
		return d.operations, nil
	case cell.Idle:
		return d.whole, nil
	case cell.Ping:
		return d.ping, nil
	case cell.Messages:
		return d.messages, nil
	default:
		return nil, cell.ErrNoLoad
	}
}

// connect waits until so many rails to a node are up.
func (h host) connect(address string, rails int) (*endpoint.Endpoint, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectWait)
	defer cancel()
	peer, err := h.node.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for {
		up := 0
		for _, r := range peer.Rails() {
			if r.State == rail.Up {
				up++
			}
		}
		if up >= rails {
			return peer, nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d rails to %s are up: %w", up, rails, address, ctx.Err())
		}
	}
}
