package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The changes fit the version of protoactor that this module uses, and the page names what does not run. The tests themselves
// take minutes: go run ./test/upstream.
func TestPatchesFit(t *testing.T) {
	root, err := output(t.Context(), "list", "-m", "-f", "{{.Dir}}", protoactor)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, copyModule(filepath.Join(root, "cluster"), filepath.Join(copied, "cluster")))
	require.NoError(t, apply(copied, patches))
	require.Error(t, apply(copied, patches[:1]), "once changed, it is not found again")
	for _, file := range switchedOff {
		require.NoError(t, switchOn(copied, file))
		require.Error(t, switchOn(copied, file), "once on, it is not off")
	}

	page, err := os.ReadFile("../../docs/upstream.md")
	require.NoError(t, err)
	var listed strings.Builder
	show(&listed)
	for _, l := range left {
		require.Contains(t, listed.String(), l.where)
		require.Contains(t, string(page), "| "+l.where+" | "+l.why+" |")
	}
	for _, p := range packages {
		require.Contains(t, string(page), "`"+p+"`")
	}
}
