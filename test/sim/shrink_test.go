package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plant puts a bug into a world: it breaks when there were n faults of a kind.
func plant(kind FaultKind, n uint64) func(*World) {
	return func(w *World) {
		var look func()
		look = func() {
			if kind.Of(&w.Count) >= n {
				w.violate("planted: there were %d faults of the kind %s", n, kind)
			}
			w.After(20*time.Microsecond, "planted", look)
		}
		look()
	}
}

// planted gives a world that meets the bug.
func planted(t *testing.T, prepare func(*World)) *found {
	t.Helper()
	for seed := uint64(1); seed <= 50; seed++ {
		r := recipe{seed: seed, faults: allFaults}
		opt, err := r.options()
		require.NoError(t, err)
		w, failure := playWith(opt, prepare)
		if failure != nil && w.Count.Faults >= 12 {
			return &found{recipe: r, options: opt, failure: failure}
		}
	}
	require.Fail(t, "no world meets the bug after a dozen faults")
	return nil
}

// shrinkerOf is one without a limit.
func shrinkerOf(f *found, prepare func(*World)) *shrinker {
	return &shrinker{best: *f, had: unbounded, over: func() bool { return false }, tried: make(map[string]bool),
		play: func(opt Options) (*World, *Failure) { return playWith(opt, prepare) }}
}

func TestThePrefixOfFaultsIsTheShortest(t *testing.T) {
	t.Parallel()
	bug := plant(FaultReset, 3)
	f := planted(t, bug)
	// Which of all faults is the third reset? One by one, and with no bug in it.
	third := 0
	for n := 1; third == 0; n++ {
		r := f.recipe
		r.faults = n
		opt, err := r.options()
		require.NoError(t, err)
		w, failure := playWith(opt, nil)
		require.Nil(t, failure)
		if w.Count.Resets == 3 {
			third = n
		}
	}
	s := shrinkerOf(f, bug)
	require.True(t, s.fails(f.recipe))
	s.best.recipe.faults = third + 5 // as many as before; there may be fewer
	s.had = third + 5
	require.True(t, s.fewer())
	assert.Equal(t, third, s.best.recipe.faults)
	assert.Equal(t, third, s.had)
}

func TestAFailureShrinksToWhatItNeeds(t *testing.T) {
	t.Parallel()
	bug := plant(FaultReset, 3)
	f := planted(t, bug)
	smallest, tries := shrink(f, time.Minute, bug)
	require.Equal(t, f.failure.Checker, smallest.failure.Checker)
	assert.Positive(t, tries)
	assert.LessOrEqual(t, smallest.recipe.faults, 5, "hardly another kind of fault is left: %s", smallest.recipe)
	assert.NotContains(t, smallest.recipe.without, "resets")
	assert.Contains(t, smallest.recipe.without, "messages", "the bug needs none")
	assert.Less(t, smallest.options.Length, f.options.Length)

	// It is a whole recipe.
	r, err := parseRecipe(smallest.recipe.String())
	require.NoError(t, err)
	opt, err := r.options()
	require.NoError(t, err)
	_, again := playWith(opt, bug)
	require.NotNil(t, again)
	assert.Equal(t, smallest.failure.Text, again.Text)
	assert.Equal(t, smallest.failure.At, again.At)
}

func TestAFailureThatNeedsNoFaultSaysSo(t *testing.T) {
	t.Parallel()
	bug := func(w *World) { w.After(5*time.Millisecond, "planted", func() { w.violate("planted") }) }
	f := planted12(t, bug)
	smallest, _ := shrink(f, time.Minute, bug)
	assert.Equal(t, 0, smallest.recipe.faults)
	assert.LessOrEqual(t, smallest.options.Length, lengthStep)
	assert.NotContains(t, smallest.recipe.without, "holes", "where there are no faults, none of them is left out by name")
}

// planted12 is a world that meets a bug at once.
func planted12(t *testing.T, prepare func(*World)) *found {
	t.Helper()
	r := recipe{seed: 12, faults: allFaults}
	opt, err := r.options()
	require.NoError(t, err)
	_, failure := playWith(opt, prepare)
	require.NotNil(t, failure)
	return &found{recipe: r, options: opt, failure: failure}
}

func TestAnotherFailureIsNoSmallerOne(t *testing.T) {
	t.Parallel()
	// Without its faults this world breaks in another way.
	bug := func(w *World) {
		plant(FaultReset, 2)(w)
		if w.opt.MaxFaults != 0 {
			w.After(time.Millisecond, "other", func() { w.violate("another one") })
		}
	}
	f := planted(t, plant(FaultReset, 2))
	f.options.MaxFaults = 0
	smallest, _ := shrink(f, time.Minute, bug)
	assert.Equal(t, f.failure.Checker, smallest.failure.Checker)
	assert.Equal(t, allFaults, smallest.recipe.faults)
}

func TestShrinkingEndsInTime(t *testing.T) {
	t.Parallel()
	f := planted(t, plant(FaultReset, 3))
	smallest, tries := shrink(f, 0, plant(FaultReset, 3))
	assert.Zero(t, tries)
	assert.Equal(t, f.recipe, smallest.recipe, "there was no time for any other")

	// A world that goes round in circles is left when the time is over.
	circles := func(w *World) {
		var again func()
		again = func() { w.After(0, "again", again) }
		again()
	}
	begun := time.Now()
	_, tries = shrink(f, 50*time.Millisecond, circles)
	assert.Equal(t, 1, tries)
	assert.Less(t, time.Since(begun), 20*time.Second)
}

func TestTheStoryIsToldWhole(t *testing.T) {
	t.Parallel()
	opt, err := recipe{seed: 4, profile: "messages", faults: allFaults}.options()
	require.NoError(t, err)
	opt.Load.Puts, opt.Load.Messages = 5, 5
	w, failure := playWith(opt, func(w *World) {
		w.tellWhole()
		w.After(opt.Length, "planted", func() { w.violate("planted") })
	})
	require.NotNil(t, failure)
	lines := failure.Story
	require.Greater(t, len(lines), storyLines, "all of it, not the end alone")
	stamp := func(line string) string { return line[:12] }
	assert.True(t, slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(stamp(a), stamp(b)) }), "in the order of time")
	text := strings.Join(lines, "\n")
	for _, word := range []string{"sends message 1 to", "gets message 1 to", "starts put ", "is done", "fault 1: ", "is attached"} {
		assert.Contains(t, text, word)
	}
	assert.NotZero(t, w.Count.Faults)
}
