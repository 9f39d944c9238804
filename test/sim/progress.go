package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress is a line about what goes on, written over and over.
//
// Owner: its goroutine has the line until stop returns.
type progress struct {
	out  io.Writer
	done chan struct{}
	wait sync.WaitGroup
}

// wipe goes to the beginning of the line and clears it.
const wipe = "\r\x1b[K"

// showProgress writes the line twice a second, on a terminal only. Each call of line comes from one goroutine.
func showProgress(out io.Writer, line func() string) *progress {
	p := &progress{out: out, done: make(chan struct{})}
	if !isTerminal(out) {
		return p
	}
	p.wait.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				fmt.Fprint(p.out, wipe)
				return
			case <-tick.C:
				fmt.Fprint(p.out, wipe+line())
			}
		}
	})
	return p
}

// stop takes the line away.
func (p *progress) stop() {
	close(p.done)
	p.wait.Wait()
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
