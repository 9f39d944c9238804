package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/test/lab"
)

var small = world{nodes: 3, rails: 2, rate: 1e9}

func TestASeedMakesTheSameScript(t *testing.T) {
	assert.Equal(t, scriptOf(7, 3, small, 20*time.Second), scriptOf(7, 3, small, 20*time.Second))
	assert.NotEqual(t, scriptOf(7, 3, small, 20*time.Second), scriptOf(7, 4, small, 20*time.Second))
	assert.NotEqual(t, scriptOf(8, 3, small, 20*time.Second), scriptOf(7, 3, small, 20*time.Second))
}

// TestScriptsMendWhatTheyBreak walks many scripts, and looks at what must hold in each.
func TestScriptsMendWhatTheyBreak(t *testing.T) {
	const length = 20 * time.Second
	kinds, deeds := map[lab.Kind]int{}, map[deed]int{}
	for round := range 1000 {
		cut, stopped, dead := map[int]bool{}, map[int]bool{}, map[int]bool{}
		last := time.Duration(0)
		for _, a := range scriptOf(1, round, small, length) {
			require.GreaterOrEqual(t, a.at, last, "in order")
			require.LessOrEqual(t, a.at, length)
			last = a.at
			deeds[a.do]++
			switch a.do {
			case cutRail:
				require.False(t, cut[a.rail], "a rail is cut once at a time")
				cut[a.rail] = true
				kinds[a.cut.Kind]++
			case healRail:
				require.True(t, cut[a.rail])
				cut[a.rail] = false
			case stopNode:
				stopped[a.node] = true
			case wakeNode:
				require.True(t, stopped[a.node])
				stopped[a.node] = false
			case killNode:
				require.NotZero(t, a.node, "node 0 lives")
				require.False(t, stopped[a.node])
				dead[a.node] = true
			case bearNode:
				require.True(t, dead[a.node])
				dead[a.node] = false
			}
		}
		for _, broken := range []map[int]bool{cut, stopped, dead} {
			for n, still := range broken {
				require.False(t, still, "round %d leaves %d broken", round, n)
			}
		}
	}
	for k := lab.LinkDown; k <= lab.Poisoned; k++ {
		if k != lab.Delay {
			assert.Positive(t, kinds[k], "%s", k)
		}
	}
	assert.Greater(t, deeds[cutRail], 5000, "at least five cuts a round")
	assert.Positive(t, deeds[stopNode])
	assert.Positive(t, deeds[killNode])
	for range 50 {
		for _, a := range scriptOf(2, 1, world{nodes: 4, rails: 4, wires: true}, length) {
			assert.NotEqual(t, lab.Slow, a.cut.Kind)
		}
	}
}

func TestPairsAreThoseAtDifferentHosts(t *testing.T) {
	assert.Equal(t, [][2]int{{0, 1}, {1, 2}}, pairsOf(3))
	assert.Equal(t, [][2]int{{0, 1}, {0, 3}, {1, 2}, {2, 3}}, pairsOf(4))
}
