package cli

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/spf13/cobra"

	"railyard/admin"
	"railyard/cmd/railyard/internal/demo"
	"railyard/cmd/railyard/internal/sabotage"
	"railyard/cmd/railyard/internal/script"
)

// serveHalf is the hidden command that the demo's second process runs.
const serveHalf = "demo-second-process"

func demoCommand(s streams, do works) *cobra.Command {
	cmd := &cobra.Command{Use: "demo", Short: "See the framework at work", Args: group,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(failoverCommand(s, do), &cobra.Command{
		Use: serveHalf, Hidden: true, Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error { return do.demoHalf(cmd.Context(), s.in, s.out) },
	})
	return cmd
}

// failoverFlags are the flags as they were typed.
type failoverFlags struct {
	rails, pairs     int
	script, sabotage string
	seed             uint64
	json, page       bool
	listen           string
}

func failoverCommand(s streams, do works) *cobra.Command {
	var f failoverFlags
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Pull the cables of two nodes under load, and see what becomes of the load",
		Long: "Two node processes, a load of numbered messages and checksummed puts between them, and virtual cables.\n" +
			"On a terminal a page shows it all, and takes cuts and heals: Ctrl-C ends it. Otherwise, or with --script,\n" +
			"a script does. The load checks itself; the exit code says whether every promise was kept.",
		Example: "  railyard demo failover                    # a page on loopback; its address is printed\n" +
			"  railyard demo failover --script default   # every kind of cut, about 40 s\n" +
			"  railyard demo failover --script FILE --json",
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			scripted := cmd.Flags().Changed("script") || f.json || f.sabotage != ""
			if f.page && scripted {
				return usagef("%s: --page is for cutting by hand, without --script, --json and --sabotage", cmd.CommandPath())
			}
			o, err := f.options(s, do.readScript)
			if err != nil {
				return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
			}
			if f.page || !scripted && width(s.out) > 0 {
				o.Page, o.Browse = f.listen, do.browse
			}
			_, err = do.failover(cmd.Context(), o)
			if cmd.Context().Err() != nil && o.Page == "" {
				return errInterrupted
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.script, "script", "default", "`FILE` with the cuts to make, or default: every kind of cut, about 40 s")
	flags.BoolVar(&f.page, "page", false, "show the run on a page, and cut there instead of by a script (as on a terminal)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` of the page, on loopback; port 0: a free one")
	flags.BoolVar(&f.json, "json", false, "print an object for each cut and one for the whole run")
	flags.StringVar(&f.sabotage, "sabotage", "",
		"break a promise on purpose, to see the checker fail: drop, double, reorder or late-write")
	flags.IntVar(&f.rails, "rails", 3, "cables between the two nodes")
	flags.IntVar(&f.pairs, "pairs", 8, "actor pairs that talk to each other")
	flags.Uint64Var(&f.seed, "seed", 0, "of the load's random choices; 0: a new one each time")
	return cmd
}

// options checks the flags.
func (f *failoverFlags) options(s streams, read func(path string) (string, error)) (demo.Options, error) {
	o := demo.Options{
		Rails: f.rails, Pairs: f.pairs, Seed: f.seed, JSON: f.json, Err: s.err,
		Second: []string{"demo", serveHalf},
		Screen: demo.Screen{Out: s.out, Width: func() int { return width(s.out) }},
	}
	if o.Rails < demo.MinRails || o.Rails > demo.MaxRails {
		return o, usagef("--rails %d: a failover needs %d to %d rails", o.Rails, demo.MinRails, demo.MaxRails)
	}
	if o.Pairs < demo.MinPairs || o.Pairs > demo.MaxPairs {
		return o, usagef("--pairs %d: %d to %d are possible", o.Pairs, demo.MinPairs, demo.MaxPairs)
	}
	err := admin.Validate(f.listen, "")
	if err != nil {
		return o, usagef("--listen: %w", err)
	}
	if o.Sabotage, err = sabotage.Parse(f.sabotage); err != nil {
		return o, usagef("--sabotage: %w", err)
	}
	text := script.Default(o.Rails)
	if f.script != "default" {
		if text, err = read(f.script); err != nil {
			return o, usagef("--script: %w", err)
		}
	}
	if o.Steps, err = script.Parse(text, o.Rails); err != nil {
		return o, usagef("--script %s: %w", f.script, err)
	}
	for o.Seed == 0 {
		o.Seed = rand.Uint64() >> 16 // short enough to be typed again
	}
	return o, nil
}

// maxScript bounds a script in bytes.
const maxScript = 1 << 20

func readScript(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot be opened: %w", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxScript+1))
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	if len(b) > maxScript {
		return "", fmt.Errorf("%s is longer than %d bytes: that is no script", path, maxScript)
	}
	return string(b), nil
}
