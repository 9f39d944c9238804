package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"railyard/test/lab"
)

// This file: a node process, seen from the director.

// remote is one life of a node process.
type remote struct {
	process *lab.Process
	address string
	in      *os.File

	mu      sync.Mutex
	last    uint64                 // request. Owner: mu
	waiting map[uint64]chan answer // Owner: mu
	gone    chan struct{}          // closed when no answer comes any more
}

var (
	errGone = errors.New("the node process has ended")
	errRun  = errors.New("chaos went wrong by itself")
)

// answerWait bounds every request: longer than what a node itself waits for.
const answerWait = 3 * patience

// startRemote starts a node process on a host, and waits until its node is there.
func startRemote(ctx context.Context, l *lab.Lab, side lab.Side, s setup) (*remote, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program does not know its own file: %w", err)
	}
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe to a node: %w", err)
	}
	defer theirs.Close()
	out, answers := io.Pipe()
	complaint := &tail{}
	r := &remote{in: in, waiting: map[uint64]chan answer{}, gone: make(chan struct{})}
	first := r.expect(0)
	go r.read(out)
	r.process, err = l.Start(side, lab.Command{Path: self, Args: []string{nodeWord}, Stdin: theirs, Stdout: answers, Stderr: complaint})
	if err != nil {
		return nil, errors.Join(err, in.Close(), answers.Close())
	}
	go func() {
		<-r.process.Ended()
		_ = answers.Close()
	}()
	err = json.NewEncoder(in).Encode(s)
	if err == nil {
		var a answer
		a, err = r.wait(ctx, first)
		r.address = a.Address
	}
	if err != nil {
		r.process.Kill()
		return nil, errors.Join(fmt.Errorf("node %s does not start: %w: %s", s.Name, err, complaint.text()), in.Close())
	}
	return r, nil
}

func (r *remote) expect(id uint64) chan answer {
	c := make(chan answer, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[id] = c
	return c
}

// read gives each answer to who waits for it.
func (r *remote) read(out io.Reader) {
	defer close(r.gone)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // half a line of a process that was killed
		}
		r.mu.Lock()
		c := r.waiting[a.ID]
		delete(r.waiting, a.ID)
		r.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
}

func (r *remote) wait(ctx context.Context, c chan answer) (answer, error) {
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	select {
	case a := <-c:
		if a.Error != "" {
			return a, fmt.Errorf("%w: %s", errRun, a.Error)
		}
		return a, nil
	case <-r.gone:
		return answer{}, errGone
	case <-timer.C:
		return answer{}, fmt.Errorf("%w: a node has not answered for %v", errRun, answerWait)
	case <-ctx.Done():
		return answer{}, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
}

// ask sends a request, and waits for its answer.
func (r *remote) ask(ctx context.Context, q request) (answer, error) {
	r.mu.Lock()
	r.last++
	q.ID = r.last
	r.mu.Unlock()
	c := r.expect(q.ID)
	line, err := json.Marshal(q)
	if err == nil {
		_, err = r.in.Write(append(line, '\n')) // one write: requests do not mix
	}
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errGone, err)
	}
	a, err := r.wait(ctx, c)
	if err != nil {
		err = fmt.Errorf("%s: %w", q.Do, err)
	}
	return a, err
}

// end ends the process, in order.
func (r *remote) end(ctx context.Context) error {
	_, err := r.ask(ctx, request{Do: doEnd})
	_ = r.in.Close()
	select {
	case <-r.process.Ended():
	case <-time.After(answerWait):
	}
	return errors.Join(err, r.process.End())
}

// kill ends it by SIGKILL.
func (r *remote) kill() {
	r.process.Kill()
	_ = r.in.Close()
}

// tail keeps the first of what a process complains of.
type tail struct {
	mu   sync.Mutex
	said []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 8 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, b[:min(len(b), most-len(t.said))]...)
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.said)
}
