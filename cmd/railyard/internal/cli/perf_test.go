package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPerfStartsItsOwnTarget(t *testing.T) {
	for _, line := range []string{
		"perf put-bw --rails 2 --size 64KiB --time 500ms --verify --window 8 --senders 2 --json",
		"perf msg-lat --time 500ms --json",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		code, out, errOut := tool(ctx, strings.Fields(line)...)
		cancel()
		require.Equal(t, codeWell, code, errOut)
		assert.Empty(t, errOut)
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		for _, field := range []string{"test", "size", "rails", "seconds", "ops", "bytes", "MBps", "ops_per_s", "p50_us", "p99_us",
			"p999_us", "max_us", "errors", "cpu_s_per_GB", "cpu_s_per_GB_initiator", "cpu_s_per_GB_target", "settings"} {
			assert.Contains(t, r, field)
		}
		assert.Positive(t, r["ops"])
		assert.InDelta(t, strings.Count(line, "--rails 2")+1, r["rails"], 0)
	}
}

func TestPerfForPeople(t *testing.T) {
	code, out, errOut := tool(t.Context(), "perf", "put-lat", "--time", "300ms")
	require.Equal(t, codeWell, code, errOut)
	assert.Contains(t, out, "p99.9")
	for _, line := range strings.Split(out, "\n") {
		assert.LessOrEqual(t, len(line), 80)
	}
}

func TestPerfOnTwoHosts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	addresses := make(chan string, 1)
	out := &trigger{word: "\n"}
	out.do = func() { addresses <- strings.TrimSuffix(strings.Fields(out.String())[2], ";") }
	ended := make(chan int, 1)
	timeline := filepath.Join(t.TempDir(), "timeline")
	go func() {
		ended <- run(serving, []string{"perf", "serve", "--rail", "127.0.0.1:0", "--timeline", timeline},
			streams{strings.NewReader(""), out, &trigger{word: "\x00"}})
	}()
	code, text, errOut := tool(ctx, "perf", "put-bw", "--to", <-addresses, "--rail", "127.0.0.1", "--time", "300ms", "--json")
	assert.Equal(t, codeWell, code, "%s %s", text, errOut)
	stop()
	assert.Equal(t, codeWell, <-ended, "Ctrl-C is how serving ends")
	assert.FileExists(t, timeline)
}

func TestPerfInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	code, _, errOut := tool(ctx, "perf", "put-bw", "--time", "5m")
	assert.Equal(t, codeFailed, code)
	assert.Contains(t, errOut, "interrupted")
}
