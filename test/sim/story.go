package main

import (
	"fmt"
	"time"
)

// story is what happened, in lines: the last ones, or all of them.
type story struct {
	lines   []string
	at      int // where the oldest is, when there are as many as are kept
	keep    int // how many are kept; 0: storyLines
	verbose bool
	whole   bool // also what the applications do, line by line; it is no part of the trace
}

// How many lines a story keeps: of a world that is one of many, and of one that is told.
const (
	storyLines = 160
	wholeLines = 20_000
)

func (s *story) add(now time.Duration, line string) {
	line = fmt.Sprintf("%12.6f  %s", now.Seconds(), line)
	if s.verbose {
		fmt.Println(line)
	}
	if len(s.lines) < max(s.keep, storyLines) {
		s.lines = append(s.lines, line)
		return
	}
	s.lines[s.at] = line
	s.at = (s.at + 1) % len(s.lines)
}

func (s *story) all() []string {
	return append(append([]string(nil), s.lines[s.at:]...), s.lines[:s.at]...)
}

// note adds a line to the story and to the trace.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.hashText(line)
	w.story.add(w.now, line)
}

// tell adds a line about an application to a story that is told whole.
func (a *App) tell(format string, args ...any) {
	if a.w.story.whole {
		a.w.story.add(a.w.now, a.e.String()+" "+fmt.Sprintf(format, args...))
	}
}

// tellWhole has the story keep everything from the start.
func (w *World) tellWhole() { w.story.whole, w.story.keep = true, wholeLines }

// scene says who is in a world, in words.
func (o *Options) scene() []string {
	lines := []string{fmt.Sprintf("%d nodes, 0 to %d; between each two of them %d rails, over the paths a-b/0 to a-b/%d; "+
		"a>b is the session that node a has with node b.", o.Nodes, o.Nodes-1, o.Lanes, o.Lanes-1)}
	lines = append(lines, fmt.Sprintf("Work and faults for %s, then %s.", o.Length, o.Ending))
	return lines
}

// String says how a world ends.
func (e Ending) String() string {
	switch e {
	case Peace:
		return "all heals and all work is done"
	case BreakOff:
		return "one end closes its session in the middle of everything"
	case Goodbye:
		return "one end leaves in good order while the other works on"
	}
	return fmt.Sprintf("ending %d", uint8(e))
}

// asked is an operation with all that it asks for.
type asked struct{ *work }

func (k asked) String() string {
	text := k.work.String()
	if k.area != nil {
		text += fmt.Sprintf(": %d bytes, region %d from %d", k.n, k.op.Region, k.op.Offset)
	}
	for _, mark := range []struct {
		on   bool
		word string
	}{{k.op.Fence, ", fenced"}, {k.notify, ", with a notification"}, {k.evil != nil, ", to be refused"}} {
		if mark.on {
			text += mark.word
		}
	}
	return text
}

// verdict is what an application hears of its operation.
type verdict struct{ err error }

func (v verdict) String() string {
	if v.err == nil {
		return "is done"
	}
	return "ends with: " + v.err.Error()
}
