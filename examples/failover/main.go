// Failover is a program to copy from: supervised failover with a policy of the application's own, and events read by
// the application itself. It needs no arguments and ends by itself:
//
//	go run ./examples/failover
//
// Two nodes are joined by three cables, red, green and blue, while one of them sends numbered messages and puts to the
// other. The red cable is pulled and plugged in again; the blue one breaks so often that our policy gives its rail up.
// Each event is printed in words. Exit 0 says that nothing was lost, doubled or reordered, and that after each put the
// memory held what was put there.
//
// Start reading at supervision.go: that is the part to take along. main.go tells the story, load.go is the
// application with its books, cable.go the network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/rail"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: failover, without arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

const (
	storyLimit = 2 * time.Minute        // for everything
	eventLimit = 20 * time.Second       // for one thing that has to happen
	scene      = 500 * time.Millisecond // in which nothing is done to the cables
	outage     = time.Second            // of the red cable, once it was noticed
	lives      = 3                      // that a rail may lose within a minute before our policy gives it up
	maxBreaks  = 20                     // of the blue cable, should the policy not do that
)

// run puts the world together, tells the story, and takes the world down. An error says what went wrong.
func run(ctx context.Context, out io.Writer) (err error) {
	ctx, done := context.WithTimeout(ctx, storyLimit)
	defer done()
	names := make(map[string]string) // of cables and their rails, by the address that the left node dials
	cables := make(map[string]*cable)
	var far actors.Config
	for _, name := range []string{"red", "green", "blue"} {
		c, err := lay(name)
		if err != nil {
			return err
		}
		defer c.remove()
		names[c.address], cables[name] = name, c
		// The far node listens behind the cable, and tells peers to dial the cable.
		far.Rails = append(far.Rails, rail.TCP(c.target, rail.Advertised(c.address)))
	}
	right, err := start(far)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, right.end()) }()

	policy, err := newPatience(lives, names)
	if err != nil {
		return err
	}
	left, err := start(actors.Config{
		Rails:  []rail.Binding{rail.TCP("127.0.0.1"), rail.TCP("127.0.0.1"), rail.TCP("127.0.0.1")},
		Policy: policy, // that of the node that dials: the other one waits to be dialed
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, left.end()) }()

	s := &story{
		watcher: watcher{out: out, began: time.Now(), names: names, policy: policy, events: left.node.Events().Subscribe(ctx)},
		cables:  cables,
	}
	if s.load, err = newLoad(ctx, left, right); err != nil {
		return err
	}
	working, rest := context.WithCancel(ctx)
	outcome := make(chan error)
	go func() { outcome <- s.load.run(working) }()
	err = s.tell(ctx)
	rest()
	if err = errors.Join(err, <-outcome); err != nil {
		return err
	}
	return s.load.verdict(out)
}

// story is what happens to the cables, and what must follow.
type story struct {
	watcher
	cables map[string]*cable
	load   *load
}

func (s *story) tell(ctx context.Context) error {
	for range s.cables {
		if _, err := s.until(ctx, "", rail.RailUp); err != nil {
			return err
		}
	}
	s.show(scene)
	for _, chapter := range []func(context.Context) error{s.pull, s.wear} {
		s.load.longestRound() // of this chapter only
		if err := chapter(ctx); err != nil {
			return err
		}
		s.show(scene)
		s.say(time.Now(), fmt.Sprintf("=== the application was held up for %s at most", s.load.longestRound()))
	}
	return ctx.Err()
}

// pull takes the red cable out for a while.
func (s *story) pull(ctx context.Context) error {
	s.say(time.Now(), "=== the red cable is pulled")
	s.cables["red"].pull()
	if _, err := s.until(ctx, "red", rail.RailDown); err != nil {
		return err
	}
	s.show(outage)
	s.say(time.Now(), "=== the red cable is plugged in: what was on its way comes out now, and must do no harm")
	s.cables["red"].plug()
	_, err := s.until(ctx, "red", rail.RailRejoined)
	return err
}

// wear breaks the blue cable until our policy has had enough.
func (s *story) wear(ctx context.Context) error {
	for range maxBreaks {
		s.say(time.Now(), "=== the blue cable breaks, and is whole again at once")
		s.cables["blue"].snap()
		kind, err := s.until(ctx, "blue", rail.RailRejoined, rail.RailGaveUp)
		if err != nil || kind == rail.RailGaveUp {
			return err
		}
	}
	return fmt.Errorf("our policy has not given the blue rail up after %d breaks", maxBreaks)
}

// host is an actor system on the network.
type host struct {
	system *actor.ActorSystem
	node   *actors.Node
}

func start(cfg actors.Config) (host, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	cfg.Secret = []byte("known to both nodes and nobody else")
	node, err := actors.Start(system, cfg)
	if err != nil {
		return host{}, fmt.Errorf("no node: %w", err)
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
