package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime/pprof"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	seeds := flag.Int("seeds", 100, "how many worlds")
	from := flag.Uint64("from", 1, "the first seed")
	verbose := flag.Bool("v", false, "tell each story while it happens")
	without := flag.String("without", "", "features to leave out, with commas between them")
	under := flag.String("profile", "", "put every world under this pressure (profiles.go)")
	limit := flag.Duration("for", 0, "stop after this real time (0: never)")
	profile := flag.String("cpuprofile", "", "write a profile of the processor's time here")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintf(os.Stderr, "sim: no profile: %v\n", err)
			return 2
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fmt.Fprintf(os.Stderr, "sim: no profile is being taken: %v\n", err)
			return 2
		}
		defer pprof.StopCPUProfile()
	}
	var sum Counts
	begun := time.Now()
	for i := range uint64(*seeds) {
		opt := OptionsOf(*from + i)
		opt.Verbose = *verbose
		if flag.NArg() > 0 || !opt.without(*without) {
			fmt.Fprintf(os.Stderr, "sim: no such feature in %q: have a look into options.go\n", *without)
			return 2
		}
		if !opt.press(*under) {
			fmt.Fprintf(os.Stderr, "sim: no profile %q: have a look into profiles.go\n", *under)
			return 2
		}
		w, failure := Play(opt)
		if failure != nil {
			report(failure, opt)
			if failure.Stack != "" {
				return 3
			}
			return 1
		}
		sum.add(&w.Count)
		if *limit > 0 && time.Since(begun) > *limit {
			break
		}
	}
	fmt.Printf("%s in %s\n", sum.String(), time.Since(begun).Round(time.Millisecond))
	return 0
}

// report says what broke, and the story up to it.
func report(f *Failure, opt Options) {
	for _, line := range f.Story {
		fmt.Println(line)
	}
	fmt.Printf("\n%+v\n\n%s\n", opt, f.Error())
	if f.Stack != "" {
		fmt.Println(f.Stack)
	} else {
		fmt.Printf("seen by: %s\n", f.Checker)
	}
	fmt.Printf("again: go run ./test/sim --seeds 1 --from %d", f.Seed)
	flag.Visit(func(given *flag.Flag) {
		if given.Name == "without" || given.Name == "profile" {
			fmt.Printf(" --%s %s", given.Name, given.Value)
		}
	})
	fmt.Println()
}

// add sums up two counts, field by field.
func (c *Counts) add(o *Counts) {
	a, b := reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem()
	for i := range a.NumField() {
		a.Field(i).SetUint(a.Field(i).Uint() + b.Field(i).Uint())
	}
}

// String lists what happened.
func (c *Counts) String() string {
	v := reflect.ValueOf(c).Elem()
	text := ""
	for i := range v.NumField() {
		text += fmt.Sprintf("%s %d  ", v.Type().Field(i).Name, v.Field(i).Uint())
	}
	return text
}
