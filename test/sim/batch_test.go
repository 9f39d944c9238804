package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made plays worlds without playing them: those that fail, do so by their seed.
func made(fails func(seed uint64) bool) player {
	return func(opt Options) (*World, *Failure) {
		w := NewWorld(opt)
		if fails(opt.Seed) {
			return w, &Failure{Seed: opt.Seed, Text: "made up", Checker: "made"}
		}
		w.Count.Seeds, w.Count.Puts, w.Count.Resets = 1, opt.Seed, opt.Seed%2
		return w, nil
	}
}

func seedsFrom(first uint64) func(uint64) recipe {
	return func(i uint64) recipe { return recipe{seed: first + i, faults: allFaults} }
}

func TestTheLowestFailureIsReported(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for range 50 {
		// The lower of two failures ends long after the higher.
		higher := make(chan struct{})
		b := &batch{count: 40, recipe: seedsFrom(100), play: made(func(seed uint64) bool {
			switch seed {
			case 101:
				<-higher
				return true
			case 102:
				close(higher)
				return true
			}
			return seed == 139
		})}
		_, failed := b.run()
		require.NotNil(t, failed)
		require.Equal(t, uint64(101), failed.recipe.seed)
		require.Equal(t, uint64(101), failed.failure.Seed)
	}
}

func TestBehindAFailureNothingIsBegun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	played := 0
	b := &batch{count: 40, recipe: seedsFrom(100), play: made(func(seed uint64) bool {
		played++
		return seed == 103
	})}
	_, failed := b.run()
	require.NotNil(t, failed)
	require.Equal(t, 4, played)
}

func TestABatchSumsUpAllWorlds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	b := &batch{count: 100, recipe: seedsFrom(1), play: made(func(uint64) bool { return false })}
	sum, failed := b.run()
	require.Nil(t, failed)
	assert.Equal(t, uint64(100), sum.Seeds)
	assert.Equal(t, uint64(5050), sum.Puts)
	assert.Equal(t, uint64(50), sum.had[FaultReset])
	assert.InDelta(t, 0.5, sum.share(FaultReset), 1e-9)

	b = &batch{recipe: seedsFrom(1), until: time.Now().Add(-time.Second), play: b.play}
	sum, failed = b.run()
	require.Nil(t, failed)
	assert.Zero(t, sum.Seeds, "the time is over")
}

func TestTooLittleIsSaid(t *testing.T) {
	var sum tally
	for i := range uint64(100) {
		c := Counts{Seeds: 1, Messages: 100, Puts: 60, Gets: 30, Flushes: 10, Faults: 4}
		for k := range faultKinds {
			if i%20 == 0 { // five in a hundred
				*faults[k].count(&c) = 3
			}
		}
		sum.add(&c)
	}
	assert.Empty(t, sum.missing(), "just enough of everything")

	sum.Messages--
	sum.Faults--
	sum.had[FaultSlow]--
	assert.Equal(t, []string{
		"200.0 operations a seed; there should be 200 (loadOf in test/sim/options.go)",
		"4.0 faults a seed; there should be 4 (faultsOf in test/sim/options.go)",
		"slow path in 4.0 % of the seeds; it should be in 5 % (faultsOf in test/sim/options.go)",
	}, sum.missing())
}

func TestTheTableHasEveryCounter(t *testing.T) {
	sum := tally{Counts: Counts{Seeds: 2, Messages: 5, Faults: 7, Resets: 3}}
	sum.had[FaultReset] = 1
	var out bytes.Buffer
	sum.print(&out, time.Second)
	text := strings.Join(strings.Fields(out.String()), " ")
	assert.Contains(t, text, "2 worlds held, in 1s; operations 5, 2.5 a seed; faults 7, 3.5 a seed")
	assert.Contains(t, text, "Messages 5 2.5")
	assert.Contains(t, text, "reset 3 1.5 50.0 %")
	for k := range faultKinds {
		assert.Contains(t, text, k.String())
	}
	assert.NotContains(t, text, "Resets", "a kind of fault is counted in its own table")
}

func TestRunSaysWhatCameOfIt(t *testing.T) {
	var out, errOut bytes.Buffer
	require.Equal(t, codeHeld, run([]string{"--seeds", "2", "--from", "5", "--faults", "1"}, &out, &errOut))
	assert.Contains(t, out.String(), "2 worlds held")
	assert.Empty(t, errOut.String(), "no progress where nobody looks")

	out.Reset()
	require.Equal(t, codeViolated, run([]string{"--seeds", "2", "--faults", "0", "--check-mix"}, &out, &errOut))
	assert.Contains(t, out.String(), "too little happens: 0.0 faults a seed")

	out.Reset()
	require.Equal(t, codeHeld, run([]string{"--soak", "300ms", "--length", "10ms"}, &out, &errOut))
	assert.Regexp(t, `soak: 300ms under each of \d+ profiles, from seed \d+\n`, out.String())
	assert.Contains(t, out.String(), "live heap: at most")
}

func TestWhatStaysInMemoryIsSeen(t *testing.T) {
	h := &heapWatch{begun: time.Now(), half: time.Hour}
	h.look()
	early, late := h.most()
	assert.NotZero(t, early)
	assert.Zero(t, late)
	assert.Equal(t, early, h.now())

	h.half, h.looked = -time.Second, time.Time{}
	kept := make([]byte, 32<<20)
	h.look()
	_, late = h.most()
	assert.Greater(t, late, early+24<<20)
	runtime.KeepAlive(kept)
}
