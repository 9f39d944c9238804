package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"railyard/test/lab"
	"railyard/test/lab/trial"
)

// This file: the lists beside the table.

const gbit = 1e9

// stripe is what several rails carry, in parts of what is compared with.
type stripe struct {
	name  string
	rates []int64
	rails int
	least float64
	alone bool // compared with one rail of ours; else with plain TCP streams on all
}

var stripings = []stripe{
	{name: "two rails of 2 Gbit/s", rates: []int64{2 * gbit}, rails: 2, least: 0.97},
	{name: "four rails of 2 Gbit/s", rates: []int64{2 * gbit}, rails: 4, least: 0.97},
	{name: "2 Gbit/s and 200 Mbit/s", rates: []int64{2 * gbit, gbit / 5}, rails: 2, least: 0.95},
	{name: "two rails without a limit", rails: 2, least: 0.9, alone: true},
}

// stripes is the second list: rails add up.
func (b *bench) stripes(ctx context.Context) (bool, error) {
	fmt.Fprintln(b.out, "what several rails carry, MB/s, of what plain TCP streams on all of them do, or one rail of ours")
	all := true
	for _, s := range stripings {
		p := trial.Plan{Lab: lab.Options{Rails: s.rails, Rates: s.rates}, Before: time.Second, After: 4 * time.Second, Size: 1 << 20,
			Window: putWindow}
		var parts, ours, theirs []float64
		for range b.runs {
			o, err := b.tool.Run(ctx, p)
			if err != nil {
				return false, err
			}
			var with float64
			if s.alone {
				p := p
				p.Lab.Rails = 1
				one, err := b.tool.Run(ctx, p)
				if err != nil {
					return false, err
				}
				with = one.MBps
			} else if with, err = trial.Sum(ctx, p); err != nil {
				return false, err
			} else {
				with /= 1e6
			}
			ours, theirs, parts = append(ours, o.MBps), append(theirs, with), append(parts, o.MBps/with)
		}
		part := middle(parts)
		ok := part >= s.least
		fmt.Fprintf(b.out, "%-28s %7.0f of %7.0f: %.2f, at least %.2f  %s\n", s.name, middle(ours), middle(theirs), part, s.least, word(ok))
		all = all && ok
	}
	return all, nil
}

func word(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// middle is the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

const (
	stopped     = 10 * time.Second
	outageLimit = 30 * time.Second // a node's default
	backAll     = 2 * time.Second  // after all rails have hung
)

// peer is the fourth list: it is not the rails that fail.
func (b *bench) peer(ctx context.Context) (bool, error) {
	all := true
	for _, c := range []struct {
		name  string
		hold  time.Duration
		do    func(on trial.Stage) error
		undo  func(on trial.Stage) error
		judge func(o trial.Outcome) (string, bool)
	}{
		{"target stopped for 10 s", stopped, func(on trial.Stage) error { return on.Target.Suspend() },
			func(on trial.Stage) error { return on.Target.Resume() }, calm},
		{"initiator stopped for 10 s", stopped, func(on trial.Stage) error { return on.Initiator.Suspend() },
			func(on trial.Stage) error { return on.Initiator.Resume() }, calm},
		{"all rails hang, resets lost", 4 * time.Second, hang, healAll, returned},
		{"target killed", outageLimit, func(on trial.Stage) error { on.Target.Kill(); return nil },
			func(trial.Stage) error { return nil }, told},
	} {
		p := rows[0].plan()
		p.Hold = c.hold
		p.Trouble = func(ctx context.Context, on trial.Stage) (m trial.Moments, err error) {
			return p.Happens(ctx, func() error { return c.do(on) }, func() error { return c.undo(on) })
		}
		o, err := b.tool.Run(ctx, p)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.name, err)
		}
		said, ok := c.judge(o)
		fmt.Fprintf(b.out, "%-28s %s  %s\n", c.name, said, word(ok))
		if b.verbose {
			b.tell(pair{ours: o})
		}
		all = all && ok
	}
	return all, nil
}

func hang(on trial.Stage) error {
	for i := range on.Lab.Rails() {
		if _, err := on.Lab.Cut(i, lab.Cut{Kind: lab.SwallowedReset}); err != nil {
			return err
		}
	}
	return nil
}

func healAll(on trial.Stage) error {
	for i := range on.Lab.Rails() {
		if _, err := on.Lab.Heal(i); err != nil {
			return err
		}
	}
	return nil
}

// counts says what became of the puts that should not.
func counts(o trial.Outcome) string {
	return fmt.Sprintf("failed %d, lost %d, doubled %d, wrong %d", o.Errors, o.Result.Lost, o.Doubled, o.Bad)
}

// calm: nothing was lost, no rail retired, and it goes on.
func calm(o trial.Outcome) (string, bool) {
	return fmt.Sprintf("%s, ended %d, lives lost %d, on again after %s ms", counts(o), o.Ended, o.Lives, millis(o.Back)),
		o.Unsound()+o.Lives == 0 && o.Ended == 0 && o.Back != lab.Never
}

// returned: nothing was lost, and the rails are back in time.
func returned(o trial.Outcome) (string, bool) {
	return fmt.Sprintf("%s, ended %d, back after %s of %s ms", counts(o), o.Ended, millis(o.Back), millis(backAll)),
		o.Unsound() == 0 && o.Ended == 0 && o.Back != lab.Never && o.Back <= backAll
}

// told: the endpoint ended, once, within the limit, and what was open has failed.
func told(o trial.Outcome) (string, bool) {
	after := lab.Never
	for _, t := range o.Trouble {
		if t.Kind == "EndpointDown" {
			after = time.Duration(t.At - o.Cut)
		}
	}
	const slack = 2 * time.Second
	return fmt.Sprintf("endpoints ended %d, after %s ms of %s", o.Ended, millis(after), millis(outageLimit)),
		o.Ended == 1 && after != lab.Never && after <= outageLimit+slack
}
