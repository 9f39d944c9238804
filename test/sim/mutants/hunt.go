package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Exit codes of the simulator.
const (
	simHeld     = 0
	simViolated = 1
	simPanicked = 3
)

// noCheckers are functions of the simulator that end a world because of its length; that is no proof of a bug, so the hunt goes
// on behind them.
var noCheckers = map[string]bool{
	"(*World).Run":        true, // more events than any world has
	"(*World).settleDown": true, // not done long after all is healed
}

// hunter runs one build of the simulator, with one mutant on at a time.
type hunter struct {
	sim   string
	seeds uint64        // the budget of each mutant
	limit time.Duration // real time for each run of the simulator
}

// catch is what became of one mutant.
type catch struct {
	number  int
	caught  bool
	seed    uint64
	checker string
	said    string
	took    time.Duration
	panics  int // worlds that ended in a panic
	endless int // worlds that did not end
	err     error
}

// build weaves all mutants into one simulator.
func build(ctx context.Context, root, dir string, list []mutant) (string, error) {
	woven, err := weave(root, list)
	if err != nil {
		return "", err
	}
	file, err := overlay(root, dir, woven)
	if err != nil {
		return "", fmt.Errorf("the woven sources cannot be written: %w", err)
	}
	sim := filepath.Join(dir, "sim")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", sim, "./test/sim")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the simulator does not build with its mutants: %w\n%s", err, out)
	}
	return sim, nil
}

// hunt tries seed after seed until a checker speaks, and then the same world without the mutant, which must hold.
func (h *hunter) hunt(ctx context.Context, number int, m *mutant) catch {
	begun := time.Now()
	c := catch{number: number}
	for from := uint64(1); from <= h.seeds && c.err == nil && !c.caught; {
		r := h.run(ctx, number, m.profile, from, h.seeds-from+1)
		switch {
		case r.err != nil:
			c.err = r.err
		case r.code == simHeld:
			from = h.seeds + 1
		case r.code == simPanicked:
			c.panics++
			c.said = r.said
		case noCheckers[r.checker]:
			c.endless++
			c.said = r.said
		default:
			c.caught, c.seed, c.checker, c.said = true, r.seed, r.checker, r.said
		}
		from = max(from, r.seed+1)
	}
	if c.caught {
		switch plain := h.run(ctx, 0, m.profile, c.seed, 1); {
		case plain.err != nil:
			c.err = plain.err
		case plain.code != simHeld:
			c.err = fmt.Errorf("seed %d breaks without the mutant as well: %s", c.seed, plain.said)
		}
	}
	c.took = time.Since(begun)
	return c
}

// result is one run of the simulator.
type result struct {
	code          int
	seed          uint64 // of the world that failed
	checker, said string
	err           error
}

var (
	saidLine = regexp.MustCompile(`(?m)^seed (\d+) at [^ ]+: (.*)$`)
	seenLine = regexp.MustCompile(`(?m)^seen by: (.*)$`)
)

// run plays worlds until one fails.
func (h *hunter) run(ctx context.Context, number int, profile string, from, seeds uint64) result {
	ctx, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.sim, "--from", strconv.FormatUint(from, 10), "--seeds", strconv.FormatUint(seeds, 10),
		"--profile", profile, "--shrink", "0")
	// One world at a time: other mutants have the other processors.
	cmd.Env = append(os.Environ(), switchVariable+"="+strconv.Itoa(number), "GOMAXPROCS=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{err: fmt.Errorf("the simulator cannot be run: %w", err)}
	}
	r := result{code: cmd.ProcessState.ExitCode()}
	switch {
	case ctx.Err() != nil:
		return result{err: fmt.Errorf("not done after %s: %w", h.limit, ctx.Err())}
	case r.code == simHeld:
		return r
	case r.code != simViolated && r.code != simPanicked:
		return result{err: fmt.Errorf("the simulator ended with %d: %s", r.code, tail(out.Bytes()))}
	}
	said := saidLine.FindSubmatch(out.Bytes())
	if said == nil {
		return result{err: fmt.Errorf("the simulator names no seed: %s", tail(out.Bytes()))}
	}
	r.said = string(said[2])
	if r.seed, err = strconv.ParseUint(string(said[1]), 10, 64); err != nil {
		return result{err: fmt.Errorf("the simulator names a seed that is none: %w", err)}
	}
	if seen := seenLine.FindSubmatch(out.Bytes()); seen != nil {
		r.checker = string(seen[1])
	}
	return r
}

// tail is the end of an output, for an error.
func tail(out []byte) []byte { return out[max(0, len(out)-400):] }
