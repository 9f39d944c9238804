package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"railyard/test/lab"
)

// options as they were typed.
type options struct {
	seed          uint64
	time          time.Duration
	nodes, rails  int
	rate          float64 // bytes a second of puts, all nodes together
	delay         time.Duration
	roundTime     time.Duration
	json, verbose bool
}

const (
	// nodeWord is the argument that makes this program a node.
	nodeWord = "node"
	// railRate is a rail's, in bits a second.
	railRate  = 1e9
	mostNodes = 8
)

var (
	errUsage = errors.New("wrong usage")
	errWrong = errors.New("a promise was broken")
	errGrows = errors.New("it grows")
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == nodeWord {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "chaos: a node:", err)
			os.Exit(1)
		}
		return
	}
	if err := lab.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	os.Exit(chaos(os.Args[1:]))
}

// chaos gives the exit code.
func chaos(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(args, os.Stderr)
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	fmt.Fprintln(os.Stderr, "chaos:", err)
	return 1
}

func parse(args []string, complain io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(complain)
	soak := time.Duration(0)
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()%1e6), "makes the scripts")
	flags.DurationVar(&o.time, "time", 2*time.Minute, "how long; the last round is played to its end")
	flags.DurationVar(&soak, "soak", 0, "the same as --time")
	flags.IntVar(&o.nodes, "nodes", 3, "node processes")
	flags.IntVar(&o.rails, "rails", 2, "rails between the hosts")
	flags.Float64Var(&o.rate, "rate", 60e6, "bytes a second of puts, all nodes together")
	flags.DurationVar(&o.delay, "delay", 0, "of a packet, one way: rails are wires in user space then, which can be delayed more")
	flags.DurationVar(&o.roundTime, "round", 20*time.Second, "length of a round")
	flags.BoolVar(&o.json, "json", false, "print the books as JSON, not as a table")
	flags.BoolVar(&o.verbose, "v", false, "tell of each act")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if soak > 0 {
		o.time = soak
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: %q is no flag", errUsage, flags.Arg(0))
	case o.nodes < 2 || o.nodes > mostNodes:
		return o, fmt.Errorf("%w: %d nodes; 2 to %d are", errUsage, o.nodes, mostNodes)
	case o.rails < 1 || o.rails > lab.MaxRails:
		return o, fmt.Errorf("%w: %d rails; 1 to %d are", errUsage, o.rails, lab.MaxRails)
	case o.rate < 1e5 || o.time <= 0 || o.delay < 0 || o.roundTime < 2*time.Second:
		return o, fmt.Errorf("%w: a rate of %v, a time of %v, a delay of %v and rounds of %v; from 1e5, above 0, from 0 and from 2 s are",
			errUsage, o.rate, o.time, o.delay, o.roundTime)
	}
	return o, nil
}

func (o options) world() world {
	return world{nodes: o.nodes, rails: o.rails, rate: railRate, wires: o.delay > 0}
}

func run(ctx context.Context, o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "railyard-chaos-")
	if err != nil {
		return fmt.Errorf("no place for ledgers: %w", err)
	}
	defer os.RemoveAll(dir)
	d := &director{options: o, dir: dir, out: out}
	if o.json {
		d.out = os.Stderr
	}
	fmt.Fprintf(d.out, "seed %d: %d nodes, %d rails\n", o.seed, o.nodes, o.rails)
	d.books = books{Seed: o.seed, Nodes: o.nodes, Rails: o.rails, ByKind: map[string]int{}, Health: map[string][]health{}}
	err = d.run(ctx)
	if err != nil {
		d.books.fail("%v", err)
	}
	if o.json {
		text := json.NewEncoder(out)
		text.SetIndent("", "  ")
		err = errors.Join(err, text.Encode(&d.books))
	} else {
		d.books.print(out)
	}
	if err == nil && d.books.Wrong > 0 {
		err = fmt.Errorf("%w, %d times; again with --seed %d", errWrong, d.books.Wrong, o.seed)
	}
	return err
}

// print writes the table.
func (b *books) print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("time", "%.0f s, %d rounds", b.Time.Seconds(), b.Rounds)
	row("cuts", "%d; nodes stopped %d times, killed %d times", b.Cuts, b.Stops, b.Kills)
	for _, k := range slices.Sorted(maps.Keys(b.ByKind)) {
		row("  "+k, "%d", b.ByKind[k])
	}
	row("bouts", "%d, of which a death ended %d", b.Bouts, b.Orphans)
	row("moved", "%.1f GB in %d puts", float64(b.bytes())/1e9, b.Counted.Completed+b.Widowed.Completed)
	row("messages", "%d sent; %d reported undelivered after a death, %d neither, of which %d were strays at a successor",
		b.Counted.Sent+b.Widowed.Sent, b.Parting.Reported, b.Parting.Silent, b.Strays)
	row("unknown", "%d puts, after a death", b.Widowed.Unknown)
	row("lost", "%d", b.Lost)
	row("doubled", "%d", b.Doubled)
	row("reordered", "%d", b.Reordered)
	row("corrupted", "%d", b.Corrupted)
	row("late writes", "%d", b.LateWrites)
	row("endpoint errors", "%d", b.EndpointErrors)
	for _, name := range slices.Sorted(maps.Keys(b.Health)) {
		if points := b.Health[name]; len(points) > 0 {
			first, last := points[0], points[len(points)-1]
			row(name, "%d quiet points; heap %d -> %d MiB, resident %d -> %d MiB, descriptors %d -> %d, goroutines %d -> %d", len(points),
				first.Heap>>20, last.Heap>>20, first.Resident>>20, last.Resident>>20, first.Descriptors, last.Descriptors, first.Goroutines,
				last.Goroutines)
		}
	}
	row("wrong", "%d", b.Wrong)
	_ = t.Flush()
	for _, f := range b.Failures {
		fmt.Fprintln(out, "  "+f)
	}
}
