package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/supervision"
)

// throttle is protoactor's: a goroutine that lives for a second after a dead letter has been logged, and ends by itself.
const throttle = "github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle)) }

// told are the lines that the story cannot do without, in this order.
var told = []string{
	`rail is up`, `rail is up`, `rail is up`,
	`=== the red cable is pulled`,
	`the red rail is down, a \w+ failure: `,
	`=== the red cable is plugged in`,
	`the red rail is back after \d+(\.\d+)?m?s`,
	`=== the application was held up for \d+(\.\d+)?m?s at most`,
	`=== the blue cable breaks`,
	`the blue rail is down, a transient failure`,
	`the blue rail is back after`,
	`our policy on the blue rail: stop, after 0s \(4 lives lost`,
	`=== the application was held up for \d+(\.\d+)?m?s at most`,
	`\d+ messages: 0 lost, 0 doubled, 0 reordered`,
	`\d+ puts of 1024 KiB: each found in memory as it was sent`,
	`every promise was kept`,
}

// inOrder asserts that each pattern is found behind the one before.
func inOrder(t *testing.T, text string, patterns []string) {
	t.Helper()
	rest := text
	for _, p := range patterns {
		at := regexp.MustCompile(p).FindStringIndex(rest)
		require.NotNil(t, at, "%q is not in its place in:\n%s", p, text)
		rest = rest[at[1]:]
	}
}

func TestStory(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out), "%s", &out)
	inOrder(t, out.String(), told)
	assert.Contains(t, out.String(), "the blue rail is given up")
}

// TestInterrupted: Ctrl-C in the middle ends both nodes and every cable (TestMain looks for goroutines).
func TestInterrupted(t *testing.T) {
	ctx, done := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer done()
	var out bytes.Buffer
	require.Error(t, run(ctx, &out))
	assert.NotContains(t, out.String(), "every promise")
}

func TestCommand(t *testing.T) {
	program := filepath.Join(t.TempDir(), "failover")
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", built)
	ctx, done := context.WithTimeout(t.Context(), storyLimit+time.Minute)
	defer done()
	out, err := exec.CommandContext(ctx, program).Output()
	require.NoError(t, err, "%s", out)
	inOrder(t, string(out), told)

	out, err = exec.CommandContext(ctx, program, "now").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 2, exit.ExitCode())
	assert.Equal(t, "usage: failover, without arguments\n", string(out))
}

func TestPatience(t *testing.T) {
	reset := errors.New("reset")
	for name, c := range map[string]struct {
		flaps     int
		reachable bool
		class     supervision.Class
		cause     error
		want      supervision.Action
	}{
		"a first break":         {1, true, supervision.Transient, reset, supervision.Restart},
		"as often as it may":    {3, true, supervision.Transient, reset, supervision.Restart},
		"once too often":        {4, true, supervision.Transient, reset, supervision.Stop},
		"the last rail":         {9, false, supervision.Transient, reset, supervision.Restart},
		"silence":               {9, true, supervision.Path, reset, supervision.Restart},
		"the library's verdict": {9, true, supervision.Peer, supervision.ErrGoodbye, supervision.Escalate},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPatience(3, map[string]string{"there": "blue"})
			require.NoError(t, err)
			h := supervision.History{Failures: 1, Flaps: c.flaps, Lived: time.Second, Reachable: c.reachable}
			d := p.Decide(h, supervision.Failure{Remote: "there", Class: c.class, Err: c.cause}, time.Minute)
			assert.Equal(t, c.want, d.Action)
			assert.Contains(t, <-p.decisions, fmt.Sprintf("our policy on the blue rail: %s", c.want))
		})
	}
}

// TestPatienceNeverBlocks: nobody reads its decisions.
func TestPatienceNeverBlocks(t *testing.T) {
	p, err := newPatience(3, nil)
	require.NoError(t, err)
	for range 2 * decisionRoom {
		p.Decide(supervision.History{Lived: time.Second}, supervision.Failure{Err: io.EOF}, 0)
	}
	assert.Len(t, p.decisions, decisionRoom)
}

// TestVerdict: the books notice what they are kept for.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		numbers []uint64
		want    string
	}{
		"all of them":    {[]uint64{1, 2, 3, 4}, "0 lost, 0 doubled, 0 reordered"},
		"a gap":          {[]uint64{1, 2, 4}, "1 lost, 0 doubled, 0 reordered"},
		"none at all":    {nil, "4 lost, 0 doubled, 0 reordered"},
		"the end":        {[]uint64{1, 2}, "2 lost, 0 doubled, 0 reordered"},
		"twice":          {[]uint64{1, 2, 2, 3, 4}, "0 lost, 1 doubled, 0 reordered"},
		"in wrong order": {[]uint64{1, 3, 2, 4}, "0 lost, 0 doubled, 1 reordered"},
		"late and twice": {[]uint64{1, 3, 2, 2, 4}, "0 lost, 1 doubled, 1 reordered"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &load{sent: 4, puts: 1}
			for i := range l.ledgers {
				l.ledgers[i] = &ledger{missing: make(map[uint64]bool), last: l.sent}
			}
			l.ledgers[1].last = 0
			for _, n := range c.numbers {
				l.ledgers[1].take(n)
			}
			var out bytes.Buffer
			err := l.verdict(&out)
			assert.Contains(t, out.String(), "16 messages: "+c.want)
			assert.Equal(t, name == "all of them", err == nil, "%v", err)
		})
	}
}
