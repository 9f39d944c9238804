package main

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// told are the lines that the story cannot do without, in this order.
var told = []string{
	"anna is up at 127", "=== three members know each other",
	"anna is home to", "bert is home to", "cleo is home to", "=== each grain was called from each member",
	"anna has heard the plums are ripe", "cleo has heard the plums are ripe", "=== what one publishes all hear",
	`=== \w+ is killed`, "answers again within", "=== calls go on",
	"dora is up at", "=== three members know each other", "dora is home to", "=== each grain was called from each member",
	`all is well: \d\d calls answered`,
}

// TestStory builds the program as a user would, and runs it. A member that a busy machine keeps from answering protoactor's
// provider within 2 s is never taken back by protoactor: then the story cannot go on, and is told again.
func TestStory(t *testing.T) {
	const tries = 3
	program := filepath.Join(t.TempDir(), "cluster")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for i := range tries {
		out, err = exec.CommandContext(t.Context(), program).CombinedOutput()
		if err == nil {
			break
		}
		t.Logf("try %d: %v\n%s", i+1, err, out)
	}
	require.NoError(t, err)
	rest := string(out)
	for _, p := range told {
		at := regexp.MustCompile(p).FindStringIndex(rest)
		require.NotNil(t, at, "%q is not in its place in:\n%s", p, out)
		rest = rest[at[1]:]
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-bad"}} {
		require.ErrorIs(t, run(t.Context(), args, io.Discard), errUsage)
	}
	var out bytes.Buffer
	ctx, done := context.WithCancel(t.Context())
	done()
	require.Error(t, run(ctx, nil, &out), "a story that is ended early is not well")
}
