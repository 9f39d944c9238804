package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"railyard/internal/child"
	"railyard/internal/load"
)

// What the parent may ask the second process for. One request a line, one answer a line, in order.
const (
	doStart  = "start"  // connect to Address and start the load
	doReport = "report" // count; From and To bound the standstill and the signs
	doPace   = "pace"   // send as fast as Pace says
	doHalt   = "halt"   // stop sending
	doFinish = "finish" // look at the memory a last time
	doPart   = "part"   // the other node may go from now on
	doEnd    = "end"    // shut down, answer, and end
)

type request struct {
	ID      uint64        `json:"id"` // from 1 on; the answer repeats it
	Do      string        `json:"do"`
	Address string        `json:"address,omitempty"`
	From    time.Duration `json:"from,omitempty"`
	To      time.Duration `json:"to,omitempty"`
	Pace    load.Pace     `json:"pace,omitzero"`
}

type answer struct {
	ID      uint64 `json:"id"`
	Address string `json:"address,omitempty"` // of the node, in the first answer
	Report  report `json:"report"`
	Error   string `json:"error,omitempty"`
}

// Patience of the two processes with each other.
const (
	connectWait = 15 * time.Second
	answerWait  = 60 * time.Second
	endWait     = 10 * time.Second
	maxLine     = 4 << 20 // bytes of a request or an answer
)

// Serve is the second process: it reads its setup and then requests, until it is told to end or its parent is gone.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	child.Ignore()
	in, ctx = child.Orphaned(ctx, in)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	reply := json.NewEncoder(out)
	var s setup
	if err := next(lines, &s); err != nil {
		return err
	}
	h, err := newHalf(s)
	if err != nil {
		return errors.Join(err, reply.Encode(answer{Error: err.Error()}))
	}
	if err := reply.Encode(answer{Address: h.node.Address()}); err != nil {
		return fmt.Errorf("the first process does not listen: %w", err)
	}
	for {
		var r request
		if err := next(lines, &r); err != nil {
			return errors.Join(err, h.end())
		}
		a := h.answer(ctx, r)
		if err := reply.Encode(a); err != nil {
			return errors.Join(fmt.Errorf("the first process has stopped listening: %w", err), h.end())
		}
		if r.Do == doEnd {
			return nil
		}
	}
}

func next(lines *bufio.Scanner, into any) error {
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return fmt.Errorf("the first process's words cannot be read: %w", err)
		}
		return errors.New("the first process is gone, so this one ends")
	}
	if err := json.Unmarshal(lines.Bytes(), into); err != nil {
		return fmt.Errorf("the first process's words make no sense: %w", err)
	}
	return nil
}

func (h *half) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	return h.close(ctx)
}

func (h *half) answer(ctx context.Context, r request) answer {
	a := answer{ID: r.ID}
	var err error
	switch r.Do {
	case doStart:
		within, cancel := context.WithTimeout(ctx, connectWait)
		err = h.start(within, r.Address)
		cancel()
	case doReport:
		a.Report = h.report(r.From, r.To)
	case doPace:
		h.side.SetPace(r.Pace)
	case doHalt:
		h.halt()
	case doFinish:
		err = h.side.Finish()
	case doPart:
		h.expectEnd()
	case doEnd:
		err = h.end()
	default:
		err = fmt.Errorf("unknown request %q", r.Do)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// remote is the second process, seen from the first.
type remote struct {
	process *child.Process
	address string

	mu      sync.Mutex // one request at a time
	answers chan answer
	out     *json.Encoder
	last    uint64 // request
}

// errGone says that the second process ended when it should not have.
var errGone = errors.New("the second process has ended")

// startRemote starts the second process and waits until its node is there.
func startRemote(ctx context.Context, args []string, s setup, stderr io.Writer) (*remote, error) {
	p, err := child.Start(args, stderr)
	if err != nil {
		return nil, err
	}
	r := &remote{process: p, answers: make(chan answer, 1), out: json.NewEncoder(p.In)}
	go r.read()
	if err := r.out.Encode(s); err != nil {
		return nil, errors.Join(fmt.Errorf("the second process does not listen: %w", err), p.End())
	}
	first, err := r.wait(ctx, 0, connectWait)
	if err != nil {
		return nil, errors.Join(err, p.End())
	}
	r.address = first.Address
	return r, nil
}

// read takes answers off the pipe until it ends.
func (r *remote) read() {
	defer close(r.answers)
	lines := bufio.NewScanner(r.process.Out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a.Error = fmt.Sprintf("the second process's words make no sense: %v", err)
		}
		r.answers <- a
	}
}

// wait waits for the answer to a request. Answers to earlier ones, which nobody waited for, are passed over.
func (r *remote) wait(ctx context.Context, id uint64, limit time.Duration) (answer, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case a, ok := <-r.answers:
			switch {
			case !ok:
				return answer{}, errGone
			case a.ID < id:
				continue
			case a.Error != "":
				return a, fmt.Errorf("second process: %s", a.Error)
			}
			return a, nil
		case <-timer.C:
			return answer{}, fmt.Errorf("the second process has not answered for %v", limit)
		case <-ctx.Done():
			return answer{}, fmt.Errorf("stopped waiting for the second process: %w", context.Cause(ctx))
		}
	}
}

// ask sends a request and waits for its answer.
func (r *remote) ask(ctx context.Context, q request) (answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	q.ID = r.last
	if err := r.out.Encode(q); err != nil {
		return answer{}, fmt.Errorf("%w: %w", errGone, err)
	}
	return r.wait(ctx, q.ID, answerWait)
}

// end ends the process, in order if it can.
func (r *remote) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	_, err := r.ask(ctx, request{Do: doEnd})
	// The reader ends with the pipe; nobody may block it.
	go func() {
		for range r.answers {
		}
	}()
	return errors.Join(err, r.process.End())
}
