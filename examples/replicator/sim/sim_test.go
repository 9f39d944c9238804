package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSeeds(t *testing.T) {
	sum, failed := playAll(1, 100, func() bool { return false })
	if failed != nil {
		t.Fatalf("seed %d: %s", failed.seed, failed.text)
	}
	for name, n := range map[string]uint64{"acknowledged": sum.Acked, "reads": sum.Reads, "unknown": sum.Unknown, "epochs": sum.Epochs,
		"fillings": sum.Fills, "revoked": sum.Revoked, "late": sum.Late, "dropped": sum.Dropped, "wiped": sum.Wiped, "withdrawn": sum.Withdrawn,
		"loaded": sum.Loaded} {
		assert.Positive(t, n, name)
	}
}

// TestReplay: a seed is a world.
func TestReplay(t *testing.T) {
	first, failed := play(choose(7))
	require.Nil(t, failed)
	second, failed := play(choose(7))
	require.Nil(t, failed)
	assert.Equal(t, first.trace, second.trace)
	assert.Equal(t, first.tally, second.tally)
}

func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		_, _, err := m.mutated("../../..")
		require.NoError(t, err, m.bug)
	}
}

func TestUsage(t *testing.T) {
	var out, errOut bytes.Buffer
	assert.Equal(t, codeUsage, run([]string{"--what"}, &out, &errOut))
	assert.Equal(t, codeUsage, run([]string{"now"}, &out, &errOut))
	assert.Equal(t, codeHeld, run([]string{"--seeds", "1", "-v"}, &out, &errOut))
	assert.Contains(t, out.String(), "all heals")
}

func TestOrder(t *testing.T) {
	w := func(v uint64, from, to time.Duration) *entry {
		return &entry{value: v, write: true, begun: from, end: to, ended: to > 0}
	}
	r := func(v uint64, from, to time.Duration) *entry {
		return &entry{value: v, begun: from, end: to, ended: true}
	}
	for name, c := range map[string]struct {
		entries []*entry
		held    bool
	}{
		"nothing":                           {nil, true},
		"the beginning":                     {[]*entry{r(0, 1, 2)}, true},
		"written and read":                  {[]*entry{w(1, 1, 2), r(1, 3, 4)}, true},
		"lost":                              {[]*entry{w(1, 1, 2), r(0, 3, 4)}, false},
		"old again":                         {[]*entry{w(1, 1, 2), w(2, 3, 4), r(2, 5, 6), r(1, 7, 8)}, false},
		"at once, either":                   {[]*entry{w(1, 1, 5), w(2, 2, 6), r(1, 7, 8)}, true},
		"at once, then both ways":           {[]*entry{w(1, 1, 5), w(2, 2, 6), r(1, 7, 8), r(2, 9, 10), r(1, 11, 12)}, false},
		"seen, then not":                    {[]*entry{w(1, 1, 9), r(1, 2, 3), r(0, 4, 5)}, false},
		"unknown, and it was not":           {[]*entry{w(1, 1, 0), r(0, 3, 4)}, true},
		"unknown, and it came late":         {[]*entry{w(1, 1, 0), r(0, 3, 4), r(1, 5, 6)}, true},
		"unknown, and over a newer one":     {[]*entry{w(1, 1, 0), w(2, 3, 4), r(2, 5, 6), r(1, 7, 8), r(2, 9, 10)}, false},
		"from nowhere":                      {[]*entry{r(5, 1, 2)}, false},
		"before it was written":             {[]*entry{r(1, 1, 2), w(1, 3, 4)}, false},
		"overwritten within another's life": {[]*entry{w(1, 1, 2), w(2, 3, 4), r(1, 5, 6)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &blockHistory{entries: c.entries}
			assert.Equal(t, c.held, h.order() == "", h.order())
		})
	}
}
