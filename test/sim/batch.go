package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// batch plays many worlds, as many at a time as there are processors.
//
// Invariant: which failure is reported does not depend on which world was done first: it is that of the lowest number.
type batch struct {
	count   uint64              // how many worlds; 0: until something ends it
	recipe  func(uint64) recipe // of world 0, 1, …; known to be good
	verbose bool                // tell each story while it happens: one world at a time
	until   time.Time           // begin no more worlds then; zero: never
	play    player

	next   atomic.Uint64
	lowest atomic.Uint64 // number of the first world that failed; those behind it are of no interest

	mu     sync.Mutex
	sum    tally
	failed *found
}

// player plays one world.
type player func(Options) (*World, *Failure)

// found is a world that failed, and how.
type found struct {
	number  uint64
	recipe  recipe
	options Options
	failure *Failure
}

// run plays the worlds. Nil: every promise held in all of them.
func (b *batch) run() (*tally, *found) {
	b.lowest.Store(^uint64(0))
	workers := runtime.GOMAXPROCS(0)
	if b.verbose {
		workers = 1
	}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(b.work)
	}
	wait.Wait()
	return &b.sum, b.failed
}

func (b *batch) work() {
	for {
		number := b.next.Add(1) - 1
		if b.count > 0 && number >= b.count || number > b.lowest.Load() || !b.until.IsZero() && time.Now().After(b.until) {
			return
		}
		r := b.recipe(number)
		opt, err := r.options()
		if err != nil {
			panic(err) // a bug: recipes are checked where they are made
		}
		opt.Verbose = b.verbose
		w, failure := b.play(opt)
		b.mu.Lock()
		switch {
		case failure == nil:
			b.sum.add(&w.Count)
		case number < b.lowest.Load():
			b.lowest.Store(number)
			b.failed = &found{number: number, recipe: r, options: opt, failure: failure}
		}
		b.mu.Unlock()
	}
}

// soFar is how many worlds have held.
func (b *batch) soFar() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum.Seeds
}
