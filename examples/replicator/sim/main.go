package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes.
const (
	codeHeld   = 0
	codeBroken = 1
	codeUsage  = 2
)

func run(args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(errOut)
	seeds := flags.Uint64("seeds", 500, "how many worlds")
	from := flags.Uint64("from", 1, "the first seed")
	limit := flags.Duration("for", 0, "begin no world after this time; 0: no limit")
	verbose := flags.Bool("v", false, "tell the whole story of the first seed")
	hunt := flags.Bool("mutants", false, "break each rule on purpose, and see it caught")
	if err := flags.Parse(args); err != nil {
		return codeUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(errOut, "sim: it takes flags only; see --help")
		return codeUsage
	}
	single := *verbose
	if *hunt {
		return huntAll(out, *seeds)
	}
	if single {
		return tell(out, *from)
	}
	begun := time.Now()
	sum, failed := playAll(*from, *seeds, func() bool { return *limit > 0 && time.Since(begun) > *limit })
	if failed != nil {
		fmt.Fprintln(out, strings.Join(failed.story, "\n"))
		fmt.Fprintf(out, "seed %d: %s\n", failed.seed, failed.text)
		return codeBroken
	}
	sum.print(out, time.Since(begun))
	return codeHeld
}

// tell tells the story of one world, with every operation.
func tell(out io.Writer, seed uint64) int {
	o := choose(seed)
	o.verbose = true
	w, failed := play(o)
	if failed != nil {
		fmt.Fprintf(out, "%s\nseed %d: %s\n", strings.Join(failed.story, "\n"), seed, failed.text)
		return codeBroken
	}
	fmt.Fprintln(out, strings.Join(w.story, "\n"))
	return codeHeld
}

func (t *tally) print(out io.Writer, took time.Duration) {
	v := reflect.ValueOf(*t)
	for i := range v.NumField() {
		fmt.Fprintf(out, "%s %d  ", strings.ToLower(v.Type().Field(i).Name), v.Field(i).Uint())
	}
	fmt.Fprintf(out, "in %s\n", took.Round(time.Millisecond))
}

// playAll plays seeds on all processors until one fails or enough says so. The failure of the lowest seed is reported.
func playAll(from, count uint64, enough func() bool) (tally, *failure) {
	var mu sync.Mutex
	var sum tally
	var worst *failure
	next := from
	draw := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= from+count || worst != nil || enough() {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				seed, ok := draw()
				if !ok {
					return
				}
				w, failed := play(choose(seed))
				mu.Lock()
				sum.add(w.tally)
				if failed != nil && (worst == nil || failed.seed < worst.seed) {
					worst = failed
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return sum, worst
}
