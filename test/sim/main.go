package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes.
const (
	codeHeld     = 0
	codeViolated = 1 // a checker saw a broken promise, or too little happens in the worlds
	codeUsage    = 2
	codePanic    = 3 // a panic that was no checker's
)

func run(args []string, out, errOut io.Writer) int {
	s, err := parse(args)
	if errors.Is(err, errHelp) {
		usage(out)
		return codeHeld
	}
	if err != nil {
		fmt.Fprintf(errOut, "sim: %s\n", oneLine(err))
		return codeUsage
	}
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			fmt.Fprintf(errOut, "sim: no profile: %v\n", err)
			return codeUsage
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fmt.Fprintf(errOut, "sim: no profile is being taken: %v\n", err)
			return codeUsage
		}
		defer pprof.StopCPUProfile()
	}
	if s.soak > 0 {
		return soak(&s, out, errOut)
	}
	return playAll(&s, out, errOut)
}

// playAll plays the seeds that were asked for.
func playAll(s *settings, out, errOut io.Writer) int {
	begun := time.Now()
	b := &batch{count: s.seeds, verbose: s.verbose, play: Play, recipe: func(i uint64) recipe {
		r := s.recipe
		r.seed += i
		return r
	}}
	if s.limit > 0 {
		b.until = begun.Add(s.limit)
	}
	line := showProgress(errOut, func() string {
		return fmt.Sprintf("%d of %d worlds, %s", b.soFar(), s.seeds, time.Since(begun).Round(time.Second))
	})
	sum, failed := b.run()
	line.stop()
	if failed != nil {
		return s.report(failed, out)
	}
	sum.print(out, time.Since(begun))
	if !s.checkMix && (!s.recipe.plain() || sum.Seeds < mixSeeds) {
		return codeHeld
	}
	missing := sum.missing()
	for _, line := range missing {
		fmt.Fprintf(out, "too little happens: %s\n", line)
	}
	if len(missing) > 0 {
		return codeViolated
	}
	return codeHeld
}
