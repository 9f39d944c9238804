package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"railyard/test/lab"
	"railyard/test/lab/trial"
)

// This file: the fifth list, a machine that is kept busy by other work.

const (
	busyEvery  = 2 * time.Minute // a black hole
	busyHold   = 5 * time.Second // how long it lasts
	detectable = 2 * time.Second // within which it is noticed
	recovery   = 3 * time.Second // after a heal, in which what dies is still the cut's doing
	busyRate   = 1e9
	leastBusy  = 20 * time.Second // of the list: a hole and what is around it do not fit into less
)

// hole is one black hole: from the cut until the rail had time to recover. Unix nanoseconds.
type hole struct{ cut, over int64 }

// works keeps all cores busy until the result is called.
func works() (stop func()) {
	done := make(chan struct{})
	var working sync.WaitGroup
	for range runtime.NumCPU() {
		working.Go(func() {
			for n := uint64(1); ; n++ {
				if n%(1<<20) == 0 {
					select {
					case <-done:
						return
					default:
					}
				}
			}
		})
	}
	return func() {
		close(done)
		working.Wait()
	}
}

// busy is the fifth list: nothing is retired for nothing while the cores are loaded, and what is cut is noticed all the same.
func (b *bench) busy(ctx context.Context) (bool, error) {
	every := min(busyEvery, b.time/2)
	var holes []hole
	p := trial.Plan{Lab: lab.Options{Rails: 2, Rates: []int64{busyRate}}, Rail: 1, After: b.time, Size: putSize, Window: putWindow}
	p.Trouble = func(ctx context.Context, on trial.Stage) (trial.Moments, error) {
		defer works()()
		for end := time.Now().Add(b.time); ; {
			if err := trial.Pause(ctx, every-busyHold); err != nil {
				return trial.Moments{}, err
			}
			if time.Now().Add(busyHold + recovery).After(end) {
				return trial.Moments{}, trial.Pause(ctx, time.Until(end))
			}
			at, err := on.Lab.Cut(p.Rail, lab.Cut{Kind: lab.BlackHole})
			if err == nil {
				err = trial.Pause(ctx, busyHold)
			}
			if err == nil {
				_, err = on.Lab.Heal(p.Rail)
			}
			if err != nil {
				return trial.Moments{}, err
			}
			holes = append(holes, hole{at.UnixNano(), time.Now().Add(recovery).UnixNano()})
		}
	}
	o, err := b.tool.Run(ctx, p)
	if err != nil {
		return false, err
	}
	slowest, missed, falsely := judgeBusy(holes, o.Trouble, on(p.Rail))
	ok := missed == 0 && falsely == 0 && o.Unsound() == 0 && o.Ended == 0 && len(holes) > 0
	fmt.Fprintf(b.out, "busy for %v: %d black holes, noticed within %s ms at most, %d not within %s ms; %d lives lost for nothing; "+
		"%s, ended %d; %.0f MB/s  %s\n", b.time, len(holes), millis(slowest), missed, millis(detectable), falsely,
		counts(o), o.Ended, o.MBps, word(ok))
	if b.verbose {
		b.tell(pair{ours: o})
	}
	return ok, nil
}

// on tells whether an address is that of a rail of a lab.
func on(rail int) func(address string) bool {
	return func(address string) bool { return trial.Rail(address) == rail }
}

// judgeBusy looks at what happened to the rails: how long the slowest notice took, how many holes were not noticed in time, and how
// many lives were lost outside of all holes, or by the rail that had none.
func judgeBusy(holes []hole, trouble []trial.Trouble, cut func(address string) bool) (slowest time.Duration, missed, falsely int) {
	for _, h := range holes {
		noticed := lab.Never
		for _, t := range trouble {
			notice := (t.Kind == "RailSuspect" || t.Kind == "RailDown") && cut(t.Remote)
			if d := time.Duration(t.At - h.cut); notice && d >= 0 && noticed == lab.Never {
				noticed = d
			}
		}
		if noticed == lab.Never || noticed > detectable {
			missed++
		}
		slowest = max(slowest, noticed)
	}
	for _, t := range trouble {
		if t.Kind != "RailDown" {
			continue
		}
		excused := false
		for _, h := range holes {
			excused = excused || cut(t.Remote) && t.At >= h.cut && t.At <= h.over
		}
		if !excused {
			falsely++
		}
	}
	return slowest, missed, falsely
}
