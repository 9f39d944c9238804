package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/test/model/explore"
)

// TestRules: the rules hold, and each one that is left out is caught. RAILYARD_FULL walks all states.
func TestRules(t *testing.T) {
	limit := 40_000
	if os.Getenv("RAILYARD_FULL") == "1" {
		limit = explore.Full
	}
	require.Empty(t, design.Judge(limit, testWriter{t}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}
