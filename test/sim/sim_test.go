package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// pressures is the profiles in a fixed order; the plain one counts most.
var pressures = []string{"", "", "", "", "cancels", "abandons", "gets", "revokes", "messages", "notify", "windows", "resets",
	"fences", "silence"}

// optionsOf gives the world of a seed in the tests.
func optionsOf(t *testing.T, seed uint64) (Options, string) {
	t.Helper()
	opt := OptionsOf(seed)
	name := pressures[seed%uint64(len(pressures))]
	require.True(t, opt.press(name), "no profile %q", name)
	return opt, name
}

// TestSeeds plays a fixed set of worlds: whatever breaks, all promises hold.
func TestSeeds(t *testing.T) {
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			var sum Counts
			for seed := 1 + shard; seed <= testSeeds; seed += shards {
				opt, name := optionsOf(t, seed)
				w, failure := Play(opt)
				if failure != nil {
					for _, line := range failure.Story {
						t.Log(line)
					}
					t.Fatalf("%v\n%s\nagain: go run ./test/sim --seeds 1 --from %d --profile %q", failure, failure.Stack, seed, name)
				}
				sum.add(&w.Count)
			}
			t.Log(sum.String())
			// A simulator in which nothing happens finds nothing.
			require.NotZero(t, sum.Messages)
			require.NotZero(t, sum.Good)
			require.NotZero(t, sum.Canceled)
			require.NotZero(t, sum.Revoked)
			require.NotZero(t, sum.Refused)
			require.NotZero(t, sum.Retires)
			require.NotZero(t, sum.ReroutedFrames)
		})
	}
}

// TestSameSeedSameWorld: a seed replays its world event by event, and another seed is another world.
func TestSameSeedSameWorld(t *testing.T) {
	t.Parallel()
	traces := make(map[uint64]uint64)
	for seed := uint64(1); seed <= 6; seed++ {
		opt, _ := optionsOf(t, seed)
		first, failure := Play(opt)
		require.Nil(t, failure)
		again, failure := Play(opt)
		require.Nil(t, failure)
		require.Equal(t, first.trace, again.trace, "seed %d", seed)
		require.Equal(t, first.Count, again.Count, "seed %d", seed)
		require.NotContains(t, traces, first.trace)
		traces[first.trace] = seed
	}
}
