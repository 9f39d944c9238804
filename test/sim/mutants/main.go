package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx)
	stop()
	os.Exit(code)
}

func run(ctx context.Context) int {
	seeds := flag.Uint64("seeds", 120, "the budget of each mutant, in worlds")
	only := flag.String("only", "", "the mutants whose names have this in them")
	limit := flag.Duration("limit", 2*time.Minute, "real time for each run of the simulator")
	verbose := flag.Bool("v", false, "say what each mutant does, and what its checker said")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "mutants: what is %q? There are only flags: --help lists them\n", flag.Arg(0))
		return 2
	}
	list := mutants()
	catches, err := huntAll(ctx, list, *only, hunter{seeds: *seeds, limit: *limit})
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		return 2
	}
	table(os.Stdout, list, catches, *verbose)
	if left := survivors(catches); left > 0 || len(catches) == 0 {
		fmt.Printf("%d of %d mutants survived\n", left, len(catches))
		return 1
	}
	fmt.Printf("all %d mutants were caught\n", len(catches))
	return 0
}

// huntAll builds once and tries all mutants, as many at a time as there are processors.
func huntAll(ctx context.Context, list []mutant, only string, h hunter) ([]catch, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if h.sim, err = build(ctx, root, dir, list); err != nil {
		return nil, err
	}
	var catches []catch
	var wait sync.WaitGroup
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	results := make([]catch, len(list))
	for i := range list {
		if !strings.Contains(list[i].name, only) {
			continue
		}
		turn <- struct{}{}
		wait.Go(func() {
			results[i] = h.hunt(ctx, i+1, &list[i])
			<-turn
		})
	}
	wait.Wait()
	for _, c := range results {
		if c.number > 0 {
			catches = append(catches, c)
		}
	}
	return catches, nil
}

func survivors(catches []catch) int {
	n := 0
	for i := range catches {
		if !catches[i].caught || catches[i].err != nil {
			n++
		}
	}
	return n
}

// table prints what became of each mutant.
func table(out io.Writer, list []mutant, catches []catch, verbose bool) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "mutant\trule\tprofile\tseed\tcaught by\tseconds")
	for i := range catches {
		c := &catches[i]
		m := &list[c.number-1]
		seed, by := fmt.Sprint(c.seed), c.checker
		switch {
		case c.err != nil:
			seed, by = "-", "FAILED: "+c.err.Error()
		case !c.caught:
			seed, by = "-", fmt.Sprintf("SURVIVED (%d panics, %d worlds without an end)", c.panics, c.endless)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1f\n", m.name, m.rule, m.profile, seed, by, c.took.Seconds())
		if verbose {
			fmt.Fprintf(t, "  bug: %s\n", m.bug)
			fmt.Fprintf(t, "  seen: %s\n", c.said)
		}
	}
	t.Flush()
}
