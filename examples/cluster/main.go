// Cluster is protoactor's own cluster over rails, told in one command:
//
//	go run ./examples/cluster
//
// It starts three members, each a process with two rails. They find each other by protoactor's automanaged provider, gossip,
// and share grains: actors that live on one member and are called by name from each. One member is killed, without a
// goodbye; its grains live on elsewhere, and another process takes its place.
//
// What an application changes for rails is in member.go: actors.Start, and actors.ClusterRemote in place of remote.Configure.
//
// Owner: main starts the members and ends them; a member ends when its input does. Start reading at member.go, then story.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// errUsage: the command line is not one of ours.
var errUsage = errors.New("usage: cluster (members are started by it)")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var s settings
	flags.StringVar(&s.name, "member", "", "be a member of this name")
	flags.IntVar(&s.port, "port", 0, "the port at which the provider of this member listens")
	hosts := flags.String("hosts", "", "the providers of all members")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return fmt.Errorf("%q: %w", args, errUsage)
	}
	if s.name == "" {
		return tell(ctx, out)
	}
	s.hosts = strings.Split(*hosts, ",")
	return serve(ctx, s, os.Stdin, out)
}
