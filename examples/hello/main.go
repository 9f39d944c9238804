// Hello is the smallest program on two terminals:
//
//	go run ./examples/hello serve 127.0.0.1:7400
//	go run ./examples/hello greet 127.0.0.1:7400 Ada
//
// The guest sends a message to an actor of the server, which answers and lends it a page of memory; then the guest
// writes a letter straight into that page. With several addresses, one for each network card of the server and
// separated by commas, there are several rails, and each may die meanwhile:
//
//	go run ./examples/hello serve 10.0.0.2:7400,10.0.1.2:7400
//	go run ./examples/hello greet 10.0.0.2:7400,10.0.1.2:7400 Ada
//
// Owner: main starts the node and shuts it down. Start reading at serve.go, then greet.go; messages are in hello.proto.
package main

//go:generate go build -o ../../bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
//go:generate protoc -I../.. --plugin=protoc-gen-go=../../bin/protoc-gen-go --go_out=../.. --go_opt=module=railyard examples/hello/hello.proto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/rail"
)

func main() {
	// Ctrl-C ends ctx; everything below hears of that, cleans up and returns. A second one does not wait for that.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

// errUsage: the command line is not one of ours.
var errUsage = errors.New("usage: hello serve ADDRESS[,ADDRESS...] | hello greet ADDRESS[,ADDRESS...] [NAME]")

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	addresses := strings.Split(args[1], ",")
	for _, a := range addresses {
		if _, err := netip.ParseAddrPort(a); err != nil {
			return fmt.Errorf("%q is no address such as 127.0.0.1:7400; %w", a, errUsage)
		}
	}
	switch {
	case args[0] == "serve" && len(args) == 2:
		return serve(ctx, addresses)
	case args[0] == "greet" && len(args) == 2:
		return greet(ctx, addresses, "stranger")
	case args[0] == "greet" && len(args) == 3:
		return greet(ctx, addresses, args[2])
	}
	return errUsage
}

// host is an actor system on the network.
type host struct {
	system *actor.ActorSystem
	node   *actors.Node
}

// start makes an actor system, as any program on protoactor does, and puts it on the network: that is Start.
func start(rails []rail.Binding) (host, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(warnings))
	node, err := actors.Start(system, actors.Config{
		// One binding for each local card. Work is striped over all of them.
		Rails: rails,
		// Who does not know the secret gets in nowhere. With none at all, as here unless the variable is set, a session is
		// still safe from strangers who cannot read its traffic.
		Secret: []byte(os.Getenv("HELLO_SECRET")),
	})
	if err != nil {
		// Settings that make no sense are refused, with the field and its value.
		return host{}, fmt.Errorf("cannot start: %w", err)
	}
	return host{system, node}, nil
}

// warnings is a logger for protoactor that leaves out what goes as it should.
func warnings(*actor.ActorSystem) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// end sends what is still to be sent, says goodbye to all peers, and leaves nothing behind.
func (h host) end() error {
	// Not the program's ctx: that may have ended, and this is to be done all the same.
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	err := h.node.Shutdown(ctx)
	h.system.Shutdown()
	if err != nil {
		return fmt.Errorf("not everything was delivered: %w", err)
	}
	return nil
}
