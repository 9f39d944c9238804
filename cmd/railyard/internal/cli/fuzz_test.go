package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/cmd/railyard/internal/demo"
	"railyard/cmd/railyard/internal/info"
	"railyard/cmd/railyard/internal/perf"
	"railyard/cmd/railyard/internal/sabotage"
)

// idle works do nothing; they check what they were asked for, and count.
func idle(t *testing.T, begun *int) works {
	return works{
		look:       func() (info.Report, error) { *begun++; return info.New(nil, info.RDMA{}), nil },
		readScript: func(path string) (string, error) { return path, nil }, // a script is its own name
		failover: func(_ context.Context, o demo.Options) (demo.Summary, error) {
			*begun++
			require.GreaterOrEqual(t, o.Rails, demo.MinRails)
			require.LessOrEqual(t, o.Rails, demo.MaxRails)
			require.GreaterOrEqual(t, o.Pairs, demo.MinPairs)
			require.LessOrEqual(t, o.Pairs, demo.MaxPairs)
			require.NotEmpty(t, o.Steps)
			require.NotZero(t, o.Seed)
			if o.Sabotage != sabotage.None {
				return demo.Summary{}, errors.New("a promise\nis broken")
			}
			return demo.Summary{}, nil
		},
		demoHalf: func(context.Context, io.Reader, io.Writer) error { *begun++; return nil },
		measure: func(_ context.Context, o perf.Options) (perf.Result, error) {
			if err := o.Check(); err != nil {
				return perf.Result{}, err
			}
			*begun++
			return perf.Result{}, nil
		},
		serve:    func(context.Context, perf.ServeOptions) error { *begun++; return nil },
		perfHalf: func(context.Context, int, io.Reader, io.Writer) error { *begun++; return nil },
	}
}

// FuzzCommandLine: whatever words are typed, nothing panics or waits; what cannot be done says so in one line with exit
// code 2, and what can be done is begun once.
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{
		"", "help", "help demo", "help fly", "help demo fly", "--help", "info", "info --json", "info eth0", "perf", "perf put-bw",
		"perf put-bw --rails 2 --size 64KiB --time 1s --window 3 --senders 2 --verify --json", "perf put-bw --rail 127.0.0.1 --to 10.0.0.1:1",
		"perf serve --rail 127.0.0.1:7400 --timeline x", "perf serve --rail x", "perf second-process --rails -1", "demo", "demo failover",
		"demo failover --script default --rails 16 --pairs 64 --seed 9 --json", "demo failover --script wait\t1s", "demo failover --sabotage drop",
		"demo demo-second-process", "completion bash", "__complete perf ", "-h", "--", "-- info", "demo -- failover", "\x1b[2J", "info --json=\x00",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out, errOut bytes.Buffer
		begun := 0
		code := runWith(ctx, strings.Split(line, " "), streams{strings.NewReader(""), &out, &errOut}, idle(t, &begun))
		require.NoError(t, ctx.Err(), "it hangs")
		switch code {
		case codeUsage:
			require.Empty(t, out.String())
			require.Zero(t, begun)
			requireOneLine(t, errOut.String())
		case codeFailed:
			require.Equal(t, 1, begun)
			requireOneLine(t, errOut.String())
		default:
			require.Equal(t, codeWell, code)
			require.LessOrEqual(t, begun, 1)
			require.True(t, begun == 1 || out.Len() > 0, "nothing was done, and nothing said")
		}
	})
}

// requireOneLine: one line, that does nothing to a terminal.
func requireOneLine(t *testing.T, text string) {
	t.Helper()
	require.True(t, strings.HasPrefix(text, "railyard: "), text)
	require.Equal(t, len(text)-1, strings.IndexByte(text, '\n'), "%q", text)
	require.NotContains(t, text, "\x1b")
}

// FuzzScriptFile reads scripts as files, whatever is in them.
func FuzzScriptFile(f *testing.F) {
	f.Add([]byte("wait 1s\ncut 0 reset\n"))
	f.Add([]byte{0, 0xff, '\n'})
	f.Fuzz(func(t *testing.T, text []byte) {
		path := t.TempDir() + "/script"
		require.NoError(t, os.WriteFile(path, text, 0o600))
		var out, errOut bytes.Buffer
		begun := 0
		do := idle(t, &begun)
		do.readScript = readScript
		code := runWith(t.Context(), []string{"demo", "failover", "--script", path}, streams{strings.NewReader(""), &out, &errOut}, do)
		if code == codeWell {
			require.Equal(t, 1, begun)
			return
		}
		require.Equal(t, codeUsage, code)
		require.Zero(t, begun)
		requireOneLine(t, errOut.String())
	})
}
