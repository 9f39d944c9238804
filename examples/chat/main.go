// Chat is a talk in two terminals or more, over rails that anybody may cut:
//
//	go run ./examples/chat open 127.0.0.1:7400
//	go run ./examples/chat join 127.0.0.1:7400 Ada
//
// Lines are said to all. Commands: /cut 1 cuts a rail, /mend 1 mends it, /rails shows them, /quit leaves. However many rails are
// cut, the talk goes on over one that is left; when all are cut, what was said arrives once one is mended.
//
// Messages are plain Go types, which travel as JSON. Owner: main starts the node and ends it. Start reading at room.go, then guest.go;
// cable.go is the network that can be cut.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/rail"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// errUsage: the command line is not one of ours.
var errUsage = errors.New("usage: chat open ADDRESS [NAME] | chat join ADDRESS NAME")

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 || len(args) > 3 {
		return errUsage
	}
	address, err := netip.ParseAddrPort(args[1])
	if err != nil {
		return fmt.Errorf("%q is no address such as 127.0.0.1:7400; %w", args[1], errUsage)
	}
	t := &terminal{in: lines(ctx, in), out: out, name: "host"}
	if len(args) == 3 {
		t.name = args[2]
	}
	switch {
	case args[0] == "open":
		return open(ctx, t, address)
	case args[0] == "join" && len(args) == 3:
		return join(ctx, t, address)
	}
	return errUsage
}

// Messages. Both ends know them by these names.
var messages = map[string]any{"hello": hello{}, "line": line{}, "cut": cut{}}

type (
	// hello is what a guest says to the room.
	hello struct{ Name string }
	// line is what somebody says.
	line struct{ Name, Text string }
	// cut asks the room to cut a rail, or to mend it.
	cut struct {
		Rail int
		Mend bool
	}
)

// host is an actor system on the network.
type host struct {
	system *actor.ActorSystem
	node   *actors.Node
}

func start(name string, rails []rail.Binding) (host, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	}))
	node, err := actors.Start(system, actors.Config{
		Name: name, Rails: rails, JSONTypes: messages,
		Secret: []byte(os.Getenv("CHAT_SECRET")),
		// What is said while all rails are cut waits for so long.
		OutageLimit: time.Minute,
	})
	if err != nil {
		return host{}, fmt.Errorf("cannot start: %w", err)
	}
	return host{system, node}, nil
}

func (h host) end() error {
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	err := h.node.Shutdown(ctx)
	h.system.Shutdown()
	return err
}

// terminal is where somebody reads and writes.
type terminal struct {
	name string
	in   <-chan string // closed when there is no more
	mu   sync.Mutex
	out  io.Writer // Owner: mu
}

func (t *terminal) print(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format+"\n", args...)
}

// lines reads until there is no more, or ctx ends.
func lines(ctx context.Context, in io.Reader) <-chan string {
	to := make(chan string)
	go func() {
		defer close(to)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			select {
			case to <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}
