package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"railyard/test/lab"
	"railyard/test/lab/trial"
)

// This file: the table of cuts.

// The transfer of the table.
const (
	putSize    = 256 << 10
	putWindow  = 16
	before     = 2 * time.Second
	after      = 6 * time.Second
	atOnce     = 5 // trials that only judge the way back go on at the same time
	putsOfTail = 4 // that the longest put may take beyond the stall, on the survivor alone
)

func (r row) plan() trial.Plan {
	return trial.Plan{Lab: lab.Options{Rails: 2, Rates: []int64{shaped}}, Cuts: r.cuts, Rail: 1, Before: before, Hold: r.hold,
		After: after, Size: putSize, Window: putWindow}
}

func (b *bench) cuts(ctx context.Context) (bool, error) {
	alone := trial.Plan{Lab: lab.Options{Rails: 1, Rates: []int64{shaped}}, After: 3 * time.Second, Size: putSize, Window: putWindow}
	survivor, err := b.tool.Run(ctx, alone)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(b.out, "two rails of %d Mbit/s, puts of %d KiB, %d under way; one rail alone: %.1f MB/s, median put %s ms\n",
		int(shaped/1e6), putSize>>10, putWindow, survivor.MBps, millis(survivor.Typical()))
	fmt.Fprintln(b.out, "each figure: measured/limit (MPTCP), ms")
	fmt.Fprintln(b.out, heading)
	all := true
	for _, r := range rows {
		if b.cut != "" && b.cut != r.name {
			continue
		}
		ok, err := b.tries(ctx, r, survivor.Typical())
		if err != nil {
			return false, err
		}
		all = all && ok
	}
	return all, nil
}

// tries tries a row until most attempts agree.
func (b *bench) tries(ctx context.Context, r row, put time.Duration) (bool, error) {
	won, lost := 0, 0
	for most := b.attempts/2 + 1; won < most && lost < most; {
		a := b.attempt(ctx, r, put)
		if ctx.Err() != nil {
			return false, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		fmt.Fprintf(b.out, "%-20s %s\n", r.about, a)
		if !a.sound() {
			return false, nil
		}
		if a.met() {
			won++
		} else {
			lost++
		}
	}
	return won > lost, nil
}

// pair is what one run came to, of both.
type pair struct {
	ours   trial.Outcome
	theirs lab.Gap
	errs   []error
}

// once runs a row once: Railyard's trial, and MPTCP's at the same time on rails of its own.
func (b *bench) once(ctx context.Context, r row) (p pair) {
	var both sync.WaitGroup
	var ourErr, theirErr error
	both.Go(func() { p.ours, ourErr = b.tool.Run(ctx, r.plan()) })
	if !b.noMPTCP && !r.alone {
		both.Go(func() { p.theirs, _, theirErr = trial.Stream{Multipath: true}.Run(ctx, r.plan()) })
	}
	both.Wait()
	for _, err := range []error{ourErr, theirErr} {
		if err != nil {
			p.errs = append(p.errs, err)
		}
	}
	return p
}

func (b *bench) attempt(ctx context.Context, r row, put time.Duration) attempt {
	pairs := make([]pair, b.runs)
	width := 1
	if r.alone {
		width = atOnce
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, width)
	for i := range pairs {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			pairs[i] = b.once(ctx, r)
		})
	}
	running.Wait()
	if b.verbose {
		for _, p := range pairs {
			b.tell(p)
		}
	}
	return b.judge(r, pairs, put)
}

// tell prints one run.
func (b *bench) tell(p pair) {
	o := p.ours
	line := func(who string, g lab.Gap) {
		fmt.Fprintf(b.out, "  %s %.0f -> %.0f -> %.0f MB/s, stall %s at %s, full %s, lost %s, back %s\n", who, g.Before/1e6,
			g.Survivor/1e6, g.After/1e6, millis(g.Stall), millis(g.StallAt), millis(g.Full), millis(g.Lost), millis(g.Back))
	}
	line("railyard", o.Gap)
	line("MPTCP   ", p.theirs)
	fmt.Fprintf(b.out, "    longest put %s; the cut took %s, the heal %s\n", millis(o.Longest()), millis(o.CutTook), millis(o.HealTook))
	for _, t := range o.Trouble {
		fmt.Fprintf(b.out, "    %+7d ms %s %s %s\n", (t.At-o.Cut)/1e6, t.Kind, t.Remote, t.Cause)
	}
}

// judge makes a line of the runs of a row.
func (b *bench) judge(r row, pairs []pair, put time.Duration) (a attempt) {
	var ours, theirs [3][]time.Duration
	var longest []time.Duration
	for _, p := range pairs {
		for _, err := range p.errs {
			a.broken = append(a.broken, err.Error())
		}
		o := p.ours
		a.failed, a.wrong = a.failed+int(o.Errors), a.wrong+int(o.Bad)
		a.lost, a.doubled = a.lost+int(o.Result.Lost), a.doubled+int(o.Doubled)
		a.ended, a.falsely = a.ended+o.Ended, a.falsely+o.False
		for k, v := range []time.Duration{o.Stall, o.Full, o.Back} {
			ours[k] = append(ours[k], v)
		}
		for k, v := range []time.Duration{p.theirs.Stall, p.theirs.Full, p.theirs.Back} {
			theirs[k] = append(theirs[k], v)
		}
		longest = append(longest, o.Longest())
	}
	a.alone = r.alone
	for k, f := range []struct {
		to  *figure
		bar bar
	}{{&a.stall, r.bars.stall}, {&a.full, r.bars.full}, {&a.back, r.bars.back}} {
		here := lab.Median(theirs[k])
		*f.to = figure{value: lab.Median(ours[k]), limit: f.bar.scaled(here), mptcp: here}
	}
	a.longest = figure{value: lab.Median(longest), limit: a.stall.limit + putsOfTail*put}
	return a
}
