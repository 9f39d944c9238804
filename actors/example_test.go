package actors_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/actors"
	"railyard/rail"
	"railyard/rma"
)

// Two nodes, here in one process and over loopback: one owns a buffer and an actor that hands out
// its key, the other asks for the key and puts data into the buffer.
func Example() {
	ctx, done := context.WithTimeout(context.Background(), 20*time.Second)
	defer done()
	owner, err := start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop(ctx, owner)
	writer, err := start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop(ctx, writer)

	buffer, err := owner.node.Alloc(4096)
	if err != nil {
		fmt.Println(err)
		return
	}
	region, err := owner.node.Register(buffer, rma.RemoteWrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	landed := make(chan string, 1)
	_, err = owner.system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *wrapperspb.StringValue: // "key, please"
			key, err := region.Key().MarshalBinary()
			if err != nil {
				c.Logger().Error(err.Error())
				return
			}
			c.Respond(wrapperspb.Bytes(key))
		case *wrapperspb.UInt32Value: // so many bytes are there
			landed <- string(region.Bytes()[:m.GetValue()])
		}
	}), "keeper")
	if err != nil {
		fmt.Println(err)
		return
	}

	if err := write(ctx, writer, actor.NewPID(owner.node.Address(), "keeper"), "hello, memory"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-landed)
	// Output: hello, memory
}

// write asks the keeper for its key, and puts text into the keeper's region.
func write(ctx context.Context, from host, keeper *actor.PID, text string) error {
	answer, err := from.system.Root.RequestFuture(keeper, wrapperspb.String("key, please"), 10*time.Second).Result()
	if err != nil {
		return err
	}
	var key rma.Key
	if err := key.UnmarshalBinary(answer.(*wrapperspb.BytesValue).GetValue()); err != nil {
		return err
	}
	peer, err := from.node.Connect(ctx, keeper.Address)
	if err != nil {
		return err
	}
	return peer.Put(ctx, key, 0, []byte(text), rma.Notify(keeper, wrapperspb.UInt32(uint32(len(text)))))
}

// host is an actor system on the network.
type host struct {
	system *actor.ActorSystem
	node   *actors.Node
}

func start() (host, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
	node, err := actors.Start(system, actors.Config{
		Rails:  []rail.Binding{rail.TCP("127.0.0.1:0"), rail.TCP("127.0.0.1:0")},
		Secret: []byte("the same on every node of the example"),
	})
	return host{system, node}, err
}

func stop(ctx context.Context, h host) {
	if err := h.node.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
	h.system.Shutdown()
}
