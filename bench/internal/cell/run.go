package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"railyard/internal/child"
)

// Patience with a contender's program.
const (
	answerWait = 2 * time.Minute        // a busy machine may keep a program waiting for long
	warmest    = 500 * time.Millisecond // nothing counts until then, or for a quarter of the time
	longest    = time.Minute            // beyond the time that was asked for, until something has ended
)

// Cell is what Run runs.
type Cell struct {
	Program string // file of the contender's program
	Spec    Spec
	Time    time.Duration // that is measured
	Papers  *Papers       // where Spec.TLS is set
	Stderr  io.Writer     // of both processes
	// Profiles is a folder for profiles of both sides: CPU, allocations, and what was waited for. They cost time, so the numbers
	// are then no measure. Empty: none.
	Profiles string
}

// Run runs one cell. When it returns, both processes have ended. ctx ends it early.
// It takes c.Time, and longer where nothing ends in it.
func Run(ctx context.Context, c Cell) (r Result, err error) {
	server, err := c.start(doServe)
	if err != nil {
		return r, err
	}
	defer server.end()
	reach, err := server.ready(ctx, order{Do: doServe, Setup: c.setup(Reach{})})
	if err != nil {
		return r, err
	}
	driver, err := c.start(doDrive)
	if err != nil {
		return r, err
	}
	defer driver.end()
	if _, err := driver.ready(ctx, order{Do: doDrive, Setup: c.setup(reach)}); err != nil {
		return r, err
	}
	both := [2]*talk{driver, server}
	if err := sleep(ctx, min(c.Time/4, warmest)); err != nil {
		return r, err
	}
	before, err := ask(ctx, both, doMark)
	if err != nil {
		return r, err
	}
	for limit := time.Now().Add(c.Time + longest); ; {
		if err := sleep(ctx, c.Time); err != nil {
			return r, err
		}
		after, err := ask(ctx, both, doMark)
		if err != nil {
			return r, err
		}
		if c.Spec.Load == Idle {
			weights, err := ask(ctx, both, doWeigh)
			return rest(before, after, weights), err
		}
		// On a machine that does something else, nothing may have ended yet.
		if r, err = between(c.Spec, before, after); !errors.Is(err, ErrNothing) || time.Now().After(limit) {
			return r, err
		}
	}
}

func (c Cell) setup(peer Reach) Setup { return Setup{Spec: c.Spec, Peer: peer, Papers: c.Papers} }

// talk is a running program.
type talk struct {
	process *child.Process
	say     *json.Encoder
	heard   chan answer // closed when it says no more
}

func (c Cell) start(side string) (*talk, error) {
	env := append(c.profiling(side), "GOGC=100", "GOMEMLIMIT=off", "GODEBUG=")
	if c.Spec.Procs > 0 {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(c.Spec.Procs))
	}
	p, err := child.Program{Path: c.Program, Env: env, Stderr: c.Stderr}.Start()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Program, err)
	}
	t := &talk{process: p, say: json.NewEncoder(p.In), heard: make(chan answer)}
	go func() {
		defer close(t.heard)
		for in := json.NewDecoder(p.Out); ; {
			var a answer
			if in.Decode(&a) != nil {
				return
			}
			t.heard <- a
		}
	}()
	return t, nil
}

// end has the program end, in whatever state it is: what it had to say has been heard.
func (t *talk) end() {
	go func() {
		for range t.heard { // what it still says has nobody to hear it
		}
	}()
	_ = t.process.End()
}

func (t *talk) hear(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWait, fmt.Errorf("the program has said nothing for %v", answerWait))
	defer cancel()
	select {
	case a, ok := <-t.heard:
		switch {
		case !ok:
			return a, errors.New("the program has ended without a word")
		case a.Error != "":
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

func (t *talk) ready(ctx context.Context, o order) (Reach, error) {
	if err := t.say.Encode(o); err != nil {
		return Reach{}, fmt.Errorf("the program cannot be told to %s: %w", o.Do, err)
	}
	a, err := t.hear(ctx)
	if err != nil {
		return Reach{}, err
	}
	if a.Ready == nil {
		return Reach{}, fmt.Errorf("the program does not say that it is ready to %s", o.Do)
	}
	return *a.Ready, nil
}

// ask has both say something at the same time.
func ask(ctx context.Context, both [2]*talk, what string) (marks [2]Mark, err error) {
	for _, t := range both {
		if err := t.say.Encode(order{Do: what}); err != nil {
			return marks, fmt.Errorf("a program cannot be asked for its counts: %w", err)
		}
	}
	for i, t := range both {
		a, err := t.hear(ctx)
		if err != nil {
			return marks, err
		}
		if a.Mark == nil {
			return marks, errors.New("a program does not tell its counts")
		}
		marks[i] = *a.Mark
	}
	return marks, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the measurement was stopped: %w", context.Cause(ctx))
	}
}
