package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a member, seen from the story that started it.
type process struct {
	settings
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string // closed when it prints no more
	heard   chan string
}

// spawn starts this program as a member. It is killed when ctx ends, at the latest.
func spawn(ctx context.Context, s settings) (*process, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{settings: s, answers: make(chan string, 16), heard: make(chan string, 16)}
	p.cmd = exec.CommandContext(ctx, own, "-member", s.name, "-port", fmt.Sprint(s.port), "-hosts", strings.Join(s.hosts, ","))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.answers)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			text, ours := strings.CutPrefix(scan.Text(), said)
			if !ours {
				continue
			}
			to := p.answers
			if strings.HasPrefix(text, "heard ") {
				to = p.heard
			}
			select {
			case to <- text:
			case <-ctx.Done():
			}
		}
	}()
	return p, nil
}

// start waits until the member is ready.
func (p *process) start(ctx context.Context) error {
	line, err := p.line(ctx, p.answers)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(line, "ready %s", &p.address); err != nil {
		return fmt.Errorf("member %s says %q, and not that it is ready", p.name, line)
	}
	return nil
}

func (p *process) line(ctx context.Context, from <-chan string) (string, error) {
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("member %s says nothing: %w", p.name, ctx.Err())
	case line, ok := <-from:
		if !ok {
			return "", fmt.Errorf("member %s has ended", p.name)
		}
		return line, nil
	}
}

// ask gives the answer to a command.
func (p *process) ask(ctx context.Context, command string) (string, error) {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return "", fmt.Errorf("member %s hears no command: %w", p.name, err)
	}
	return p.line(ctx, p.answers)
}

// again is how long nobody asks a member again whose answer was not the one that is wanted.
const again = 100 * time.Millisecond

// until asks until the answer begins so.
func (p *process) until(ctx context.Context, command, begin string) (string, error) {
	for {
		answer, err := p.ask(ctx, command)
		if err != nil || strings.HasPrefix(answer, begin) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%q to member %s: its last answer was %q: %w", command, p.name, answer, ctx.Err())
		case <-time.After(again):
		}
	}
}

// kill ends the process without a goodbye.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	for range p.answers { // until it prints no more
	}
	_ = p.cmd.Wait() // it was killed, and says so
	return nil
}

// end lets the member leave.
func (p *process) end() error {
	err := p.in.Close()
	for range p.answers {
	}
	if errWait := p.cmd.Wait(); errWait != nil {
		return errors.Join(err, fmt.Errorf("member %s did not end well: %w", p.name, errWait))
	}
	return err
}
