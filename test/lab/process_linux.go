package lab

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Process runs on a host.
type Process struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error // valid once ended is closed
	once    sync.Once
	killed  atomic.Bool
}

// Command is what to run on a host.
type Command struct {
	Path           string
	Args           []string
	Stdin          io.Reader // nil: nothing to read
	Stdout, Stderr io.Writer
}

// grace is how long a process may take to end when it is told to.
const grace = 15 * time.Second

// ErrClosed: the lab has been closed.
var ErrClosed = errors.New("lab: it has been closed")

// Start runs a command on a host.
func (l *Lab) Start(s Side, c Command) (*Process, error) {
	p := &Process{command: exec.Command(c.Path, c.Args...), ended: make(chan struct{})}
	p.command.Stdin, p.command.Stdout, p.command.Stderr = c.Stdin, c.Stdout, c.Stderr
	// The host's thread starts it, and lives as long as the lab: if this process dies, so does the child.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if err := l.hosts[s].do(p.command.Start); err != nil {
		return nil, fmt.Errorf("lab: %s does not start at host %s: %w", c.Path, s, err)
	}
	l.processes = append(l.processes, p)
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID is its number.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended is closed when it is gone and all that it wrote has been read.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits until it is gone. The error says how it ended, if not well.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Suspend stops it where it is (SIGSTOP), Resume lets it go on.
func (p *Process) Suspend() error { return p.command.Process.Signal(syscall.SIGSTOP) }

// Resume lets a suspended process go on.
func (p *Process) Resume() error { return p.command.Process.Signal(syscall.SIGCONT) }

// Kill ends it at once (SIGKILL), and waits.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.command.Process.Kill() // an error: it is gone already
	<-p.ended
}

// Killed tells whether it was ended by Kill.
func (p *Process) Killed() bool { return p.killed.Load() }

// End asks it to end (SIGINT), waits, and makes it end if it does not. The error says how it ended, if not well.
func (p *Process) End() error {
	p.once.Do(func() {
		_ = p.command.Process.Signal(syscall.SIGINT)
		select {
		case <-p.ended:
		case <-time.After(grace):
			p.Kill()
		}
	})
	return p.Wait()
}
