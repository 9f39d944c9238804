package main

import (
	"fmt"
	"io"
	"time"
)

// How much of a long story is shown.
const (
	storyHead = 300
	storyTail = 1200
)

// report says what broke; then, where there is time for it, what the smallest world is that breaks so, and its whole story.
func (s *settings) report(f *found, out io.Writer) int {
	if s.shrink == 0 {
		for _, line := range f.failure.Story {
			fmt.Fprintln(out, line)
		}
	}
	f.print(out)
	fmt.Fprintf(out, "again: %s\n", f.recipe.command())
	code := codeViolated
	if f.failure.Stack != "" {
		code = codePanic
	}
	if s.shrink > 0 {
		begun := time.Now()
		smallest, tries := shrink(f, s.shrink, nil)
		fmt.Fprintf(out, "\nThe smallest world that fails so, of %d tried in %s:\n\n", tries, time.Since(begun).Round(time.Millisecond))
		smallest.tell(out)
		f = smallest
	}
	if s.save != "" {
		name, err := saveRegression(s.save, f)
		if err != nil {
			fmt.Fprintf(out, "not saved: %v\n", err)
			return code
		}
		fmt.Fprintf(out, "saved: %s\n", name)
	}
	return code
}

// print says what broke and who saw it.
func (f *found) print(out io.Writer) {
	fmt.Fprintf(out, "\n%+v\n\n%s\n", f.options, f.failure.Error())
	if f.failure.Stack != "" {
		fmt.Fprintln(out, f.failure.Stack)
	} else {
		fmt.Fprintf(out, "seen by: %s\n", f.failure.Checker)
	}
}

// tell plays the world once more and prints its story from the start: the applications' part is in it too.
func (f *found) tell(out io.Writer) {
	opt := f.options
	opt.Verbose = false
	_, failure := playWith(opt, (*World).tellWhole)
	if failure == nil || failure.sees() != f.failure.sees() {
		fmt.Fprintf(out, "it does not fail again: something in the simulator does not come from the seed\n")
		failure = f.failure
	}
	for _, line := range opt.scene() {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintln(out)
	lines := failure.Story
	for i, line := range lines {
		switch left := len(lines) - storyHead - storyTail; {
		case left <= 0 || i < storyHead || i >= storyHead+left:
			fmt.Fprintln(out, line)
		case i == storyHead:
			fmt.Fprintf(out, "… %d lines; -v has them\n", left)
		}
	}
	fmt.Fprintf(out, "\n%s\nagain: %s -v\n", failure.Error(), f.recipe.command())
}
