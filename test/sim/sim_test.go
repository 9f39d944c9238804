package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pressures is the profiles in a fixed order; the plain one counts most.
var pressures = []string{"", "", "", "", "", "cancels", "abandons", "gets", "revokes", "messages", "notify", "windows", "resets",
	"fences", "silence", "crashes", "sleepers"}

// recipeOf gives the world of a seed in the tests.
func recipeOf(seed uint64) recipe {
	return recipe{seed: seed, profile: pressures[seed%uint64(len(pressures))], faults: allFaults}
}

// optionsOf gives its options.
func optionsOf(t *testing.T, seed uint64) Options {
	t.Helper()
	opt, err := recipeOf(seed).options()
	require.NoError(t, err)
	return opt
}

// testShrink is how long a test looks for a smaller world; less than a test may take.
const testShrink = 30 * time.Second

// holds plays worlds and fails with the smallest story where one of them fails.
func holds(t *testing.T, recipes []recipe) *tally {
	t.Helper()
	b := &batch{count: uint64(len(recipes)), play: Play, recipe: func(i uint64) recipe { return recipes[i] }}
	sum, failed := b.run()
	if failed != nil {
		var text strings.Builder
		s := settings{shrink: testShrink}
		s.report(failed, &text)
		t.Fatal(text.String())
	}
	return sum
}

// TestSeeds plays a fixed set of worlds: whatever breaks, all promises hold.
func TestSeeds(t *testing.T) {
	t.Parallel()
	var recipes []recipe
	for seed := uint64(1); seed <= testSeeds; seed++ {
		recipes = append(recipes, recipeOf(seed))
	}
	begun := time.Now()
	sum := holds(t, recipes)
	var text strings.Builder
	sum.print(&text, time.Since(begun))
	t.Log(text.String())
	// A simulator in which nothing happens finds nothing.
	for name, n := range map[string]uint64{"messages": sum.Messages, "good ends": sum.Good, "cancels": sum.Canceled,
		"revokes": sum.Revoked, "refusals": sum.Refused, "retires": sum.Retires, "reroutes": sum.ReroutedFrames} {
		require.NotZero(t, n, name)
	}
	for k := range faultKinds {
		require.NotZero(t, sum.had[k], k)
	}
}

// TestSameSeedSameWorld: a seed replays its world event by event, and another seed is another world.
func TestSameSeedSameWorld(t *testing.T) {
	t.Parallel()
	traces := make(map[uint64]uint64)
	for seed := uint64(1); seed <= 6; seed++ {
		opt := optionsOf(t, seed)
		first, failure := Play(opt)
		require.Nil(t, failure)
		again, failure := playWith(opt, (*World).tellWhole)
		require.Nil(t, failure)
		require.Equal(t, first.trace, again.trace, "seed %d, told whole", seed)
		require.Equal(t, first.Count, again.Count, "seed %d", seed)
		require.NotContains(t, traces, first.trace)
		traces[first.trace] = seed
	}
}
