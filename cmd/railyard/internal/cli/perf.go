package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"railyard/cmd/railyard/internal/perf"
	"railyard/cmd/railyard/internal/units"
)

// serveSecond is the hidden command that a test's second process runs.
const serveSecond = "second-process"

// perfFlags are the flags as they were typed.
type perfFlags struct {
	rails, window, senders int
	transport, size, to    string
	local                  []string
	time                   time.Duration
	verify, json           bool
}

func perfCommand(s streams, do works) *cobra.Command {
	var f perfFlags
	names, abouts := perf.Tests()
	var list strings.Builder
	for i, n := range names {
		fmt.Fprintf(&list, "  %-9s %s\n", n, abouts[i])
	}
	cmd := &cobra.Command{
		Use:   "perf TEST",
		Short: "Measure puts, gets and messages between two nodes",
		Long: "The tests are\n" + list.String() + "\nBy itself a test starts its target as a second process on loopback. " +
			"On two hosts run\n`railyard perf serve` on the one, and a test with --to on the other.",
		Args: oneTest(names),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return f.run(cmd, args[0], s, do)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.rails, "rails", 1, "loopback rails, without --to")
	flags.StringVar(&f.transport, "transport", "tcp", "what carries the rails: tcp (verbs and mixed are not built yet)")
	flags.StringVar(&f.size, "size", "", "bytes of an operation, such as 64KiB; empty: what suits the test")
	flags.DurationVar(&f.time, "time", 3*time.Second, "how long to measure")
	flags.IntVar(&f.window, "window", 16, "operations under way at a time, of each sender; the -lat tests have 1")
	flags.IntVar(&f.senders, "senders", 1, "senders at a time")
	flags.BoolVar(&f.verify, "verify", false, "compare checksums of what landed")
	flags.BoolVar(&f.json, "json", false, "print one object")
	flags.StringVar(&f.to, "to", "", "`ADDRESS` of a `railyard perf serve`")
	flags.StringArrayVar(&f.local, "rail", nil,
		"`ADDRESS` of a card of this host, with --to; once for each rail; none: every usable card")
	cmd.AddCommand(perfServeCommand(s, do), perfSecondCommand(s, do))
	return cmd
}

func oneTest(names []string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("%s takes one test, and %q is another word; there are %s", cmd.CommandPath(), args[1],
				strings.Join(names, ", "))
		}
		return nil
	}
}

// options checks what can be checked without the test.
func (f *perfFlags) options(cmd *cobra.Command, test string, s streams) (perf.Options, error) {
	o := perf.Options{
		Test: test, Rails: f.rails, To: f.to, Local: f.local, Time: f.time, Window: f.window, Senders: f.senders,
		Verify: f.verify, Second: []string{"perf", serveSecond}, Err: s.err,
	}
	switch f.transport {
	case "tcp":
	case "verbs", "mixed":
		return o, usagef("--transport %s is not built yet; use tcp", f.transport)
	default:
		return o, usagef("--transport %q: there is tcp", f.transport)
	}
	if f.to != "" && cmd.Flags().Changed("rails") {
		return o, usagef("--rails makes loopback rails; with --to name this host's cards with --rail")
	}
	var err error
	if f.size != "" {
		if o.Size, err = units.Size(f.size); err != nil {
			return o, usagef("--size: %w", err)
		}
	}
	return o, nil
}

func (f *perfFlags) run(cmd *cobra.Command, test string, s streams, do works) error {
	o, err := f.options(cmd, test, s)
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	wipe := func() {}
	if columns := width(s.err); columns > 1 && !f.json {
		o.Progress = func(line string) {
			fmt.Fprintf(s.err, "\r\x1b[K%.*s", columns-1, line)
		}
		wipe = func() { fmt.Fprint(s.err, "\r\x1b[K") }
	}
	result, err := do.measure(cmd.Context(), o)
	wipe()
	switch {
	case errors.Is(err, perf.ErrOptions):
		return usageError{fmt.Errorf("%s: %w", cmd.CommandPath(), err)}
	case cmd.Context().Err() != nil:
		return errInterrupted
	case err != nil && !errors.Is(err, perf.ErrFailed):
		return err
	}
	var printed error
	if f.json {
		printed = printJSON(s.out, result)
	} else {
		_, printed = io.WriteString(s.out, result.Text())
	}
	return errors.Join(err, printed)
}

func perfServeCommand(s streams, do works) *cobra.Command {
	var local []string
	var timeline string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be the target of tests from another host, until Ctrl-C",
		Args:  nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rails, err := perf.Bindings(local)
			if err != nil {
				return usageError{fmt.Errorf("%s --rail: %w", cmd.CommandPath(), err)}
			}
			if timeline != "" && len(rails) == 0 {
				return usagef("%s: --timeline has a column for each rail; name them with --rail", cmd.CommandPath())
			}
			ready := func(address string) { fmt.Fprintf(s.out, "serving at %s; end with Ctrl-C\n", address) }
			return do.serve(cmd.Context(), perf.ServeOptions{Rails: rails, Timeline: timeline, Ready: ready})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&local, "rail", nil, "`ADDRESS` to serve at, ip:port; once for each rail; none: every usable card")
	flags.StringVar(&timeline, "timeline", "",
		"`FILE` that gets a line every 10 ms: unix_ns, bytes landed in all, and of each rail")
	return cmd
}

func perfSecondCommand(s streams, do works) *cobra.Command {
	var rails int
	cmd := &cobra.Command{
		Use: serveSecond, Hidden: true, Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return do.perfHalf(cmd.Context(), rails, s.in, s.out)
		},
	}
	cmd.Flags().IntVar(&rails, "rails", 1, "loopback rails")
	return cmd
}
