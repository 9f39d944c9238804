package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"railyard/test/lab"
)

// Tool is the program that is tried.
type Tool struct {
	Path string // of cmd/railyard, built
	Dir  string // for timelines, until the trial is over
}

// Build builds the tool from the module in the working directory into dir.
func Build(ctx context.Context, dir string) (Tool, error) {
	t := Tool{Path: filepath.Join(dir, "railyard"), Dir: dir}
	out, err := exec.CommandContext(ctx, "go", "build", "-o", t.Path, "railyard/cmd/railyard").CombinedOutput()
	if err != nil {
		return t, fmt.Errorf("trial: cmd/railyard does not build: %w\n%s", err, out)
	}
	return t, nil
}

// Result is what `railyard perf --json` says, as far as it is used here.
type Result struct {
	Rails    int       `json:"rails"`
	Ops      uint64    `json:"ops"`
	MBps     float64   `json:"MBps"`
	P50      float64   `json:"p50_us"`
	Max      float64   `json:"max_us"`
	Errors   uint64    `json:"errors"`
	FirstErr string    `json:"first_error"`
	Verified uint64    `json:"verified"`
	Bad      uint64    `json:"bad"`
	Lost     uint64    `json:"lost"`
	Doubled  uint64    `json:"doubled"`
	Lives    uint64    `json:"lives_lost"`
	Trouble  []Trouble `json:"trouble"`
}

// Trouble is one thing that happened to a rail.
type Trouble struct {
	At     int64  `json:"unix_ns"`
	Kind   string `json:"kind"`
	Local  string `json:"local"`
	Remote string `json:"remote"`
	Cause  string `json:"cause"`
	Missed uint64 `json:"missed"`
}

// Outcome of a trial of Railyard.
type Outcome struct {
	lab.Gap // zero where nothing was cut
	Moments
	Result
	// Ended counts the endpoints that were given up, False the lives that rails lost though they were not cut.
	Ended, False int
	// Timeline at the target.
	Timeline lab.Timeline
}

// Longest is the time of the longest single put, Typical that of the median one.
func (r Result) Longest() time.Duration { return time.Duration(r.Max * 1e3) }

// Typical is the median put's time.
func (r Result) Typical() time.Duration { return time.Duration(r.P50 * 1e3) }

// Unsound counts the puts with which something is wrong: that failed, were lost, doubled or corrupted.
func (r Result) Unsound() uint64 { return r.Errors + r.Lost + r.Doubled + r.Bad }

const port = 7400

// Run makes a lab and tries Railyard in it.
func (t Tool) Run(ctx context.Context, p Plan) (o Outcome, err error) {
	l, err := lab.New(p.Lab)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	ready := &awaited{word: "serving", seen: make(chan struct{})}
	target, file, err := t.serve(ctx, l, ready)
	if err != nil {
		return o, err
	}
	defer os.Remove(file)
	args := []string{"perf", "put-bw", "--json", "--verify", "--to", fmt.Sprintf("%s:%d", l.Address(lab.B, 0), port),
		"--size", strconv.Itoa(p.Size), "--window", strconv.Itoa(p.Window), "--time", (p.length() - warmUp).String()}
	for i := range l.Rails() {
		args = append(args, "--rail", l.Address(lab.A, i).String())
	}
	var out, complaint bytes.Buffer
	initiator, err := l.Start(lab.A, lab.Command{Path: t.Path, Args: args, Stdout: &out, Stderr: &complaint})
	if err != nil {
		return o, err
	}
	if err := flowing(ctx, l); err != nil {
		return o, fmt.Errorf("%w: %s", err, complaint.String())
	}
	if p.Trouble != nil {
		o.Moments, err = p.Trouble(ctx, Stage{l, initiator, target})
	} else {
		o.Moments, err = p.disturb(ctx, l)
	}
	if err != nil {
		return o, err
	}
	if err := ended(ctx, initiator); err != nil {
		return o, fmt.Errorf("%w; it said %s%s", err, complaint.String(), out.String())
	}
	if err := target.End(); err != nil && !target.Killed() {
		return o, fmt.Errorf("%w: the target: %w", ErrTrial, err)
	}
	if err := json.Unmarshal(out.Bytes(), &o.Result); err != nil {
		return o, fmt.Errorf("%w: the initiator's result cannot be read (%w): %s%s", ErrTrial, err, complaint.String(), out.String())
	}
	o.count(p)
	if o.Timeline, err = readTimeline(file); err != nil || o.Cut == 0 || target.Killed() {
		return o, err
	}
	o.Gap, err = o.Timeline.Gap(p.Rail, o.Cut, o.Heal)
	return o, err
}

// warmUp is what a test does before its time counts.
const warmUp = 500 * time.Millisecond

// serve starts the target and waits until it serves. The file is that of its timeline.
func (t Tool) serve(ctx context.Context, l *lab.Lab, ready *awaited) (*lab.Process, string, error) {
	f, err := os.CreateTemp(t.Dir, "timeline-")
	if err != nil {
		return nil, "", fmt.Errorf("trial: no file for a timeline: %w", err)
	}
	_ = f.Close()
	args := []string{"perf", "serve", "--timeline", f.Name()}
	for i := range l.Rails() {
		args = append(args, "--rail", fmt.Sprintf("%s:%d", l.Address(lab.B, i), port))
	}
	target, err := l.Start(lab.B, lab.Command{Path: t.Path, Args: args, Stdout: ready, Stderr: ready})
	if err != nil {
		return nil, "", err
	}
	select {
	case <-ready.seen:
		return target, f.Name(), nil
	case <-target.Ended():
		err = fmt.Errorf("%w: the target has ended: %s", ErrTrial, ready.text())
	case <-time.After(settle):
		err = fmt.Errorf("%w: the target does not serve: %s", ErrTrial, ready.text())
	case <-ctx.Done():
		err = fmt.Errorf("trial: stopped while the target started: %w", context.Cause(ctx))
	}
	return nil, "", err
}

// awaited collects what a process says until a word is there.
type awaited struct {
	word string
	seen chan struct{}
	mu   sync.Mutex
	said bytes.Buffer
	done bool
}

func (a *awaited) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said.Write(b)
	if !a.done && strings.Contains(a.said.String(), a.word) {
		a.done = true
		close(a.seen)
	}
	return len(b), nil
}

func (a *awaited) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said.String()
}

// ended waits for the initiator. That it found something wrong is no error here: its result tells.
func ended(ctx context.Context, p *lab.Process) error {
	select {
	case <-p.Ended():
	case <-time.After(settle):
		return fmt.Errorf("%w: the initiator does not end", ErrTrial)
	case <-ctx.Done():
		return fmt.Errorf("trial: stopped while the initiator ended: %w", context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return fmt.Errorf("%w: the initiator: %w", ErrTrial, err)
	}
	return nil
}

// count looks through the trouble. A rail that is only slow has lost no life rightly.
func (o *Outcome) count(p Plan) {
	deadly := false
	for _, c := range p.Cuts {
		switch c.Kind {
		case lab.Slow, lab.Delay, lab.Narrow, lab.Loss:
		default:
			deadly = true
		}
	}
	for _, t := range o.Trouble {
		switch t.Kind {
		case "EndpointDown":
			o.Ended++
		case "RailDown", "RailGaveUp":
			if !deadly || Rail(t.Remote) != p.Rail || o.alive(t.At) {
				o.False++
			}
		}
	}
}

func readTimeline(file string) (lab.Timeline, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("trial: the target's timeline: %w", err)
	}
	defer f.Close()
	t, err := lab.ReadTimeline(f)
	return lively(t), err
}
