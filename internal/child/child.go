// Package child runs this program a second time, as the other node, or another program of the house, and sees to it that it
// ends: when asked, when its parent is done with it, and when its parent dies.
//
// Owner: whoever called Start; End joins the process.
//
// The two talk over the child's standard input and output; its standard error is the parent's. A child whose input ends
// ends too (Orphaned), and on Linux the kernel kills it when its parent dies.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// grace is how long a child may take to end by itself, and then to end when it is told to.
const grace = 5 * time.Second

// Process is a running child.
type Process struct {
	In  io.WriteCloser // the child's standard input
	Out io.ReadCloser  // its standard output

	command *exec.Cmd
	ended   chan struct{}
	err     error // of the process; valid once ended is closed
	once    sync.Once
}

// Program is what a child runs.
type Program struct {
	Path   string   // its file; empty: this program
	Args   []string // without its name
	Env    []string // "NAME=value", beside what this process has
	Stderr io.Writer
}

// Start runs this program again with other arguments.
func Start(args []string, stderr io.Writer) (*Process, error) {
	return Program{Args: args, Stderr: stderr}.Start()
}

// Start runs the program.
func (p Program) Start() (*Process, error) {
	path := p.Path
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("this program does not know its own file, so no second process: %w", err)
		}
		path = self
	}
	command := exec.Command(path, p.Args...)
	command.Stderr = p.Stderr
	command.Env = append(os.Environ(), p.Env...)
	command.SysProcAttr = dieWithParent()
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe to the second process: %w", err)
	}
	// Not StdoutPipe: Wait would close it while the last lines are still being read.
	out, write, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("no pipe from the second process: %w", err)
	}
	command.Stdout = write
	err = command.Start()
	_ = write.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the second process did not start: %w", err), in.Close(), out.Close())
	}
	running := &Process{In: in, Out: out, command: command, ended: make(chan struct{})}
	go func() {
		running.err = command.Wait()
		close(running.ended)
	}()
	return running, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// End closes the child's input, waits for it to go, and makes it go if it does not. The error says how it ended,
// if that was not well. Later calls only wait.
func (p *Process) End() error {
	p.once.Do(func() {
		_ = p.In.Close()
		for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			select {
			case <-p.ended:
				return
			case <-time.After(grace):
				_ = p.command.Process.Signal(signal)
			}
		}
	})
	<-p.ended
	_ = p.Out.Close()
	if p.err != nil {
		return fmt.Errorf("the second process (%d) ended badly: %w", p.PID(), p.err)
	}
	return nil
}

// Ignore makes a child deaf for the terminal's Ctrl-C: its parent gets that too, and ends it in order.
func Ignore() { signal.Ignore(os.Interrupt) }

// Orphaned gives a reader of the parent's words and a context that ends when there are no more. The reader must be read
// to its end for that, as the child's loop does anyway.
func Orphaned(ctx context.Context, in io.Reader) (io.Reader, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	return &watched{in: in, gone: cancel}, ctx
}

type watched struct {
	in   io.Reader
	gone context.CancelFunc
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.in.Read(b)
	if err != nil {
		w.gone()
	}
	return n, err
}
