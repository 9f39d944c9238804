package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"railyard/internal/load"
)

// This file: what a run has come to. It is pure.

// maxFailures bounds what is remembered of what went wrong; it is counted all the same.
const maxFailures = 40

// books are a run's result.
type books struct {
	Seed    uint64         `json:"seed"`
	Nodes   int            `json:"nodes"`
	Rails   int            `json:"rails"`
	Time    time.Duration  `json:"time"`
	Rounds  int            `json:"rounds"`
	Cuts    int            `json:"cuts"`
	ByKind  map[string]int `json:"by_kind"`
	Stops   int            `json:"stops"`
	Kills   int            `json:"kills"`
	Lives   uint64         `json:"lives_lost"` // of rails, in the processes that were there at the end
	Bouts   int            `json:"bouts"`
	Orphans int            `json:"orphans"` // bouts that a kill ended, seen by the survivor
	// Counted are the counters of all bouts that nobody's death ended, Widowed those of the survivors of the others.
	Counted load.Counters `json:"counted"`
	Widowed load.Counters `json:"widowed"`
	Parting load.Parting  `json:"parting"`
	// Strays are messages that came to a dead node's successor, where they were for nobody.
	Strays uint64 `json:"strays"`
	// Six zeros, of all bouts.
	Lost           uint64 `json:"lost"`
	Doubled        uint64 `json:"doubled"`
	Reordered      uint64 `json:"reordered"`
	Corrupted      uint64 `json:"corrupted"`
	LateWrites     uint64 `json:"late_writes"`
	EndpointErrors uint64 `json:"endpoint_errors"`
	// Health is what each node's present life held at its quiet points, by name.
	Health   map[string][]health `json:"health"`
	Wrong    int                 `json:"wrong"`
	Failures []string            `json:"failures"`
}

func (b *books) fail(format string, args ...any) {
	b.Wrong++
	if len(b.Failures) < maxFailures {
		b.Failures = append(b.Failures, fmt.Sprintf(format, args...))
	}
}

// ending is what one node says at the end of a bout.
type ending struct {
	who string
	answer
}

// clean takes a bout that both nodes lived through.
func (b *books) clean(name string, ends [2]ending) {
	b.Bouts++
	sum := ends[0].Report.Counters.Add(ends[1].Report.Counters)
	for _, broken := range sum.Broken() {
		if !strings.HasPrefix(broken, "load:") { // a bout that began late in a round may have had no time for any
			b.fail("%s: %s", name, broken)
		}
	}
	if sum.Unknown > 0 {
		b.fail("%s: the outcome of %d puts is unknown though nobody died", name, sum.Unknown)
	}
	for _, e := range ends {
		if e.Ended+e.Told > 0 {
			b.fail("%s: at %s the endpoint ended %d times and the watcher was told %d times though nobody died", name, e.who, e.Ended,
				e.Told)
		}
		b.remarks(name, e.Report.Notes)
	}
	b.Lost += sum.Lost()
	b.Counted = b.Counted.Add(sum)
	b.zeros(sum)
}

// mostSilent is what a dead process may have had in its mailboxes: messages that it had taken, and that no actor had seen.
const mostSilent = 100

// orphan takes what the survivor of a bout says.
func (b *books) orphan(name string, e ending) {
	b.Bouts++
	b.Orphans++
	c, p := e.Report.Counters, e.Parting
	if ended := c.Completed + c.Canceled + c.Revoked + c.Unknown; ended != c.Puts {
		b.fail("%s: of %d puts of the survivor %s %d ended", name, c.Puts, e.who, ended)
	}
	if p.Holes+p.Lies > 0 {
		b.fail("%s: at the survivor %s %d messages were skipped, and %d that were reported as not delivered had come", name, e.who, p.Holes,
			p.Lies)
	}
	if e.Ended != 1 || e.Told != 1 {
		b.fail("%s: the survivor %s was told of the end of the endpoint %d times, its watcher %d times", name, e.who, e.Ended, e.Told)
	}
	for _, n := range []struct {
		what string
		n    uint64
	}{{"doubled", c.Doubled}, {"reordered", c.Reordered}, {"corrupted", c.Corrupted}, {"late writes", c.LateWrites},
		{"endpoint errors", c.EndpointErrors}} {
		if n.n > 0 {
			b.fail("%s: %s at the survivor %s: %d", name, n.what, e.who, n.n)
		}
	}
	b.Lost += p.Holes
	b.remarks(name, e.Report.Notes)
	b.Widowed = b.Widowed.Add(c)
	b.Parting = load.Parting{Holes: b.Parting.Holes + p.Holes, Silent: b.Parting.Silent + p.Silent, Lies: b.Parting.Lies + p.Lies,
		Reported: b.Parting.Reported + p.Reported}
	b.zeros(c)
}

// silence looks at what never came and was not reported: it went to a successor, or was in a mailbox that nobody read any more.
func (b *books) silence() {
	if p := b.Parting; p.Silent > b.Strays+uint64(b.Orphans)*mostSilent {
		b.fail("%d messages to nodes that died neither came nor were reported; %d strays at their successors, and %d for each of %d "+
			"deaths, would be no wonder", p.Silent, b.Strays, mostSilent, b.Orphans)
		b.Lost += p.Silent - b.Strays
	}
}

func (b *books) zeros(c load.Counters) {
	b.Doubled += c.Doubled
	b.Reordered += c.Reordered
	b.Corrupted += c.Corrupted
	b.LateWrites += c.LateWrites
	b.EndpointErrors += c.EndpointErrors
}

func (b *books) remarks(name string, notes []string) {
	for _, n := range notes {
		if len(b.Failures) < maxFailures {
			b.Failures = append(b.Failures, name+": "+n)
		}
	}
}

// bytes are those of puts that completed.
func (b *books) bytes() uint64 { return b.Counted.PutBytes + b.Widowed.PutBytes }

// What a process may hold more at the end than at the beginning: the caches that fill.
const (
	moreHeap        = 16 << 20
	moreDescriptors = 8
	moreGoroutines  = 24
	leastPoints     = 6 // quiet points of a life that say anything
)

// flat looks at what a process held at its quiet points: nowhere in the last third was it as little as it had been at most in the
// first, and a little more? Then it grows. The very first point does not count: nothing is warm.
func flat(points []health) error {
	if len(points) < leastPoints {
		return nil
	}
	points = points[1:]
	third := len(points) / 3
	first, last := points[:third], points[len(points)-third:]
	for _, of := range []struct {
		what string
		get  func(health) uint64
		more uint64
	}{
		{"bytes of heap", func(h health) uint64 { return h.Heap }, moreHeap},
		{"descriptors", func(h health) uint64 { return uint64(h.Descriptors) }, moreDescriptors},
		{"goroutines", func(h health) uint64 { return uint64(h.Goroutines) }, moreGoroutines},
	} {
		var before, after []uint64
		for _, h := range first {
			before = append(before, of.get(h))
		}
		for _, h := range last {
			after = append(after, of.get(h))
		}
		if most, least := slices.Max(before), slices.Min(after); least > most+of.more {
			return fmt.Errorf("%w: from at most %d %s to at least %d", errGrows, most, of.what, least)
		}
	}
	return nil
}
