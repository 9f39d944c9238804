package main

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// shrinker looks for the smallest world that fails as a found one does: with as few faults as possible, then with features left
// out, then a shorter one, and again from the start until nothing of that helps.
//
// Invariant: best always fails the checker that the found world failed.
type shrinker struct {
	play player
	over func() bool // no more time
	best found
	had  int // faults in the best world, up to its failure
	// tried has the answer for each recipe, so that no world is played twice.
	tried map[string]bool
}

// lengthStep is how exactly the length of a world is looked for.
const lengthStep = 10 * time.Millisecond

// shrink gives the smallest world that it finds within the limit, in real time. With what plays worlds from then on it
// also gives how many it has tried.
func shrink(f *found, limit time.Duration, prepare func(*World)) (smallest *found, tries int) {
	end := time.Now().Add(limit)
	over := func() bool { return time.Now().After(end) }
	s := &shrinker{best: *f, over: over, tried: make(map[string]bool)}
	s.play = func(opt Options) (*World, *Failure) {
		opt.Verbose = false
		return playWith(opt, func(w *World) {
			w.ended = over
			if prepare != nil {
				prepare(w)
			}
		})
	}
	s.had = unbounded // until the world has been played again here
	if s.fails(f.recipe) {
		for s.fewer() || s.simpler() || s.shorter() {
		}
	}
	return &s.best, len(s.tried)
}

// unbounded is more faults than any world has.
const unbounded = 1 << 30

// fails tells whether that world fails in the same way; if so, it is the best one from now on.
func (s *shrinker) fails(r recipe) bool {
	text := r.String()
	if had, ok := s.tried[text]; ok && !had || s.over() {
		return false
	}
	opt, err := r.options()
	if err != nil {
		return false
	}
	w, failure := s.play(opt)
	same := failure != nil && failure.sees() == s.best.failure.sees()
	s.tried[text] = same
	if same {
		s.best.recipe, s.best.options, s.best.failure = r, opt, failure
		s.had = int(w.Count.Faults)
	}
	return same
}

// sees names what saw a failure. Panics are alike: the numbers in their texts change with everything.
func (f *Failure) sees() string {
	if f.Stack != "" {
		return "panic"
	}
	return f.Checker
}

// fewer looks for the shortest prefix of the faults that is enough: first by halves, then, since more faults may also hide a
// failure, one after the other from none at all.
func (s *shrinker) fewer() bool {
	from := s.had
	with := func(n int) recipe {
		r := s.best.recipe
		r.faults = n
		return r
	}
	low := 0
	for low < s.had {
		middle := (low + s.had) / 2
		if !s.fails(with(middle)) {
			low = middle + 1
		}
		if s.over() {
			break
		}
	}
	for n := 0; n < s.had && !s.over(); n++ {
		if s.fails(with(n)) {
			break
		}
	}
	if s.best.recipe.faults != s.had { // what would come after the failure does not belong to it
		s.fails(with(s.had))
	}
	return s.had < from
}

// simpler leaves out each feature that is not needed.
func (s *shrinker) simpler() bool {
	better := false
	for _, name := range slices.Sorted(maps.Keys(features)) {
		r := s.best.recipe.leave(name)
		opt, err := r.options()
		if err != nil || alike(opt, s.best.options) {
			continue
		}
		better = s.fails(r) || better
	}
	return better
}

// alike tells whether a feature that was left out was none of this world anyway.
func alike(a, b Options) bool {
	if a.MaxFaults < 0 {
		a.Faults, b.Faults = Faults{}, Faults{}
	}
	return reflect.DeepEqual(a, b)
}

// shorter ends work and faults earlier, at best not long after the failure began or even before it was seen.
func (s *shrinker) shorter() bool {
	from := s.best.options.Length
	lasting := func(n int64) recipe {
		r := s.best.recipe
		r.length = steps(n)
		return r
	}
	low, high := int64(1), int64(min(from, s.best.failure.At)/lengthStep)+1
	if steps(high) >= from || !s.fails(lasting(high)) {
		return false
	}
	for low < high && !s.over() {
		if middle := (low + high) / 2; s.fails(lasting(middle)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return true
}

// steps is the length of n steps.
func steps(n int64) time.Duration { return time.Duration(n * int64(lengthStep)) }
