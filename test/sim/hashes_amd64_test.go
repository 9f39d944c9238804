package main

// On amd64 alone: elsewhere a compiler may join a multiplication and an addition into one, which rounds otherwise, and so
// another world comes of the same seed.

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/hashes.txt anew")

const (
	hashFile  = "testdata/hashes.txt"
	hashFirst = 1001
)

// TestHashes compares the traces of some worlds with those that are committed: event by event they are the same in every
// build and on any number of processors.
func TestHashes(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("# seed, profile, hash of every event. Written by: go test ./test/sim -run '^TestHashes$' -update\n")
	for seed := uint64(hashFirst); seed < hashFirst+testHashes; seed++ {
		r := recipeOf(seed)
		opt, err := r.options()
		require.NoError(t, err)
		w, failure := Play(opt)
		require.Nil(t, failure, r)
		name := r.profile
		if name == "" {
			name = "plain"
		}
		fmt.Fprintf(&text, "%d %s %016x\n", seed, name, w.trace)
	}
	if *update {
		require.EqualValues(t, 20, testHashes, "all of them are written; leave -race out")
		require.NoError(t, os.WriteFile(hashFile, []byte(text.String()), 0o644)) //nolint:gosec // for all to read
		return
	}
	want, err := os.ReadFile(hashFile)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(want), "\n")
	require.Greater(t, len(lines), testHashes)
	require.Equal(t, strings.Join(lines[:testHashes+1], ""), text.String(), "other worlds than those that are committed come of the same seeds.\n"+
		"After a change of the session, of rma, of rail's health or of the simulator that is as it should be. Then write them anew:\n"+
		"\tgo test ./test/sim -run '^TestHashes$' -update\n"+
		"and commit the file along with the change. Without such a change something in a world does not come from its seed:\n"+
		"the order of a map, a clock, or a global source of randomness.")
}
