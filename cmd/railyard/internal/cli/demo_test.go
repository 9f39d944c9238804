package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines reads the objects of a run with --json: one for each cut, and the summary.
func lines(t *testing.T, out string) (cuts []map[string]any, summary map[string]any) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range all {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), "%q", line)
		if i == len(all)-1 {
			return cuts, v
		}
		cuts = append(cuts, v)
	}
	return nil, nil
}

// The whole: two processes, a load, each kind of cut, and every promise kept.
func TestFailoverKeepsEveryPromise(t *testing.T) {
	path := writeScript(t, `
wait 1s
cut first reset
detect first
heal first
rejoin first
cut 1 blackhole
detect 1
heal 1
rejoin 1
cut 2 oneway to-target
detect 2
heal 2
rejoin 2
flap 0 3 200ms
rejoin 0
cut all blackhole
detect all
heal all
rejoin all
`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	code, out, errOut := tool(ctx, "demo", "failover", "--json", "--script", path, "--seed", "7", "--pairs", "4")
	require.Equal(t, codeWell, code, "%s\n%s", out, errOut)
	assert.Empty(t, errOut)
	cuts, sum := lines(t, out)
	require.Len(t, cuts, 7)
	for _, c := range cuts {
		assert.NotNil(t, c["rejoin_ms"], c)
		assert.NotEmpty(t, c["in_flight_bytes"], c)
	}
	for _, c := range slices.Concat(cuts[:3], cuts[4:]) {
		assert.NotNil(t, c["detected_ms"], c)
		assert.NotEmpty(t, c["local"], c)
		assert.NotEmpty(t, c["remote"], c)
		assert.NotEmpty(t, c["cause"], c)
	}
	for _, zero := range []string{"lost", "doubled", "reordered", "corrupted", "late_writes", "endpoint_errors"} {
		assert.Zero(t, sum[zero], zero)
	}
	assert.Equal(t, sum["sent"], sum["delivered"])
	assert.InDelta(t, sum["puts"], sum["completed"].(float64)+sum["canceled"].(float64)+sum["revoked"].(float64), 0)
	assert.InDelta(t, 7, sum["cuts"], 0)
	assert.InDelta(t, 7, sum["seed"], 0)
	assert.NotEmpty(t, sum["completed"])
}

// The checker can fail: each sabotage is really done to the traffic, and breaks the promise that it should.
func TestSabotageIsFound(t *testing.T) {
	path := writeScript(t, "wait 3s")
	for kind, field := range map[string]string{
		"drop": "lost", "double": "doubled", "reorder": "reordered", "late-write": "late_writes",
	} {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			code, out, errOut := tool(ctx, "demo", "failover", "--json", "--script", path, "--sabotage", kind, "--rails", "2")
			require.Equal(t, codeFailed, code, "%s\n%s", out, errOut)
			_, sum := lines(t, out)
			assert.NotEmpty(t, sum[field], out)
			assert.NotEmpty(t, sum["deeds"], out)
			assert.Contains(t, errOut, field+":")
			for _, other := range []string{"lost", "doubled", "reordered", "corrupted", "late_writes", "endpoint_errors"} {
				if other != field {
					assert.Zero(t, sum[other], other)
				}
			}
		})
	}
}

// trigger is a writer that does something once when it has seen a word.
type trigger struct {
	bytes.Buffer
	word string
	do   func()
}

func (w *trigger) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if strings.Contains(w.String(), w.word) {
		w.do()
	}
	return n, err
}

func TestInterruptEndsTheDemoInOrder(t *testing.T) {
	path := writeScript(t, "wait 1s\ncut 0 reset\nwait 5m")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := &trigger{word: "cut [0]", do: cancel}
	var errOut bytes.Buffer
	args := []string{"demo", "failover", "--script", path, "--rails", "2"}
	assert.Equal(t, codeFailed, run(ctx, args, streams{strings.NewReader(""), out, &errOut}))
	assert.Contains(t, errOut.String(), "interrupted")
	assert.Contains(t, out.String(), ", 0 lost, 0 doubled", "what had been sent arrived")
}
