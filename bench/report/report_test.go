package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRowsAreWhole: every row has a bar, and its name is not another's.
func TestRowsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		assert.False(t, seen[r.Load], r.Load)
		seen[r.Load] = true
		assert.NotEmpty(t, r.Bars, r.Load)
		for _, b := range r.Bars {
			assert.Positive(t, b.Limit, r.Load)
			assert.Contains(t, contenders, b.Against.Contender, r.Load)
		}
	}
}

func TestCurve(t *testing.T) {
	points := []point{{8, 10, 5}, {16, 20, 10}, {32, 17, 20}, {64, 40, 40}}
	at, ratio := cliff(points)
	assert.Equal(t, int64(32), points[at].Size)
	assert.InDelta(t, 0.85, ratio, 1e-9)
	assert.False(t, curveLine(points).OK)
	points[2].Ours = 19
	assert.True(t, curveLine(points).OK)
	points[3].Ours = 0
	assert.False(t, curveLine(points).OK, "a size that failed is a cliff")
	svg := draw(points)
	assert.Equal(t, 2, strings.Count(svg, "<path d=\"M"))
	assert.Contains(t, svg, "8 B")
	assert.NotContains(t, svg, "NaN")
	_, err := json.Marshal(points)
	require.NoError(t, err)
}
