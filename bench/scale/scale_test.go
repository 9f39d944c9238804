package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/bench/internal/bars"
	"railyard/bench/internal/cell"
)

// TestSmallScale runs each load once for a moment, with numbers that are small.
func TestSmallScale(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, bars.Build(t.Context(), folder, []string{ours}))
	for _, r := range rows(3, 1000, 1000) {
		t.Run(r.Load, func(t *testing.T) {
			result, err := cell.Run(t.Context(), cell.Cell{Program: filepath.Join(folder, ours), Spec: r.Ours.Spec,
				Time: 200 * time.Millisecond, Stderr: os.Stderr})
			require.NoError(t, err)
			assert.Positive(t, result.Seconds)
			assert.Positive(t, r.Metric.Of(result))
		})
	}
}
