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
	"time"

	"railyard/test/lab"
	"railyard/test/lab/trial"
)

// options as they were typed.
type options struct {
	runs, attempts int
	cut, list      string
	time           time.Duration
	noMPTCP        bool
	verbose        bool
}

var errUsage = errors.New("wrong usage")

func main() {
	if err := lab.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	os.Exit(report(os.Args[1:]))
}

// report gives the exit code.
func report(args []string) int {
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
		fmt.Fprintln(os.Stderr, "report:", err)
		return 2
	}
	fmt.Fprintln(os.Stderr, "report:", err)
	return 1
}

func parse(args []string, complain io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(complain)
	flags.IntVar(&o.runs, "runs", 5, "runs of each cut; the figures are their medians")
	flags.IntVar(&o.attempts, "attempts", 3, "attempts at each cut; most of them must meet the bars")
	flags.StringVar(&o.cut, "cut", "", "this cut alone: "+names())
	flags.StringVar(&o.list, "list", "", "this list alone: cuts, stripes, peer or busy")
	flags.DurationVar(&o.time, "time", 30*time.Minute, "of the list busy")
	flags.BoolVar(&o.noMPTCP, "no-mptcp", false, "do not compare: the limits are the bars themselves")
	flags.BoolVar(&o.verbose, "v", false, "tell of each run")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	switch o.list {
	case "", "cuts", "stripes", "peer", "busy":
	default:
		return o, fmt.Errorf("%w: there is no list %q; there are cuts, stripes, peer and busy", errUsage, o.list)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: %q is no flag", errUsage, flags.Arg(0))
	case o.time < leastBusy:
		return o, fmt.Errorf("%w: a time of %v; %v at least", errUsage, o.time, leastBusy)
	case o.runs < 1 || o.attempts < 1:
		return o, fmt.Errorf("%w: %d runs and %d attempts; at least one of each", errUsage, o.runs, o.attempts)
	case o.cut != "" && !strings.Contains(" "+names()+",", " "+o.cut+","):
		return o, fmt.Errorf("%w: there is no cut %q; there are %s", errUsage, o.cut, names())
	case o.cut != "" && o.list == "":
		o.list = "cuts"
	}
	return o, nil
}

func names() string {
	var all []string
	for _, r := range rows {
		all = append(all, r.name)
	}
	return strings.Join(all, ", ")
}

// bench is what all lists need.
type bench struct {
	options
	tool trial.Tool
	out  io.Writer
}

var errMissed = errors.New("a bar is missed")

func run(ctx context.Context, o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "railyard-report-")
	if err != nil {
		return fmt.Errorf("no place for the tool: %w", err)
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, out: out}
	if b.tool, err = trial.Build(ctx, dir); err != nil {
		return err
	}
	from, met := time.Now(), true
	for _, list := range []struct {
		name string
		do   func(context.Context) (bool, error)
	}{{"cuts", b.cuts}, {"stripes", b.stripes}, {"peer", b.peer}, {"busy", b.busy}} {
		if o.list != "" && o.list != list.name {
			continue
		}
		ok, err := list.do(ctx)
		if err != nil {
			return err
		}
		met = met && ok
	}
	fmt.Fprintf(out, "%.0f s\n", time.Since(from).Seconds())
	if !met {
		return errMissed
	}
	return nil
}
