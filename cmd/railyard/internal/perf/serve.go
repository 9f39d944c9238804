package perf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"railyard/actors"
	"railyard/internal/child"
	"railyard/rail"
)

// ServeOptions of a target.
type ServeOptions struct {
	Rails    []rail.Binding // empty: every usable card
	Timeline string         // file to write running totals to; empty: none
	// Ready is called with the node's address once it serves.
	Ready func(address string)
}

// Serve is a target until ctx ends.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	var timeline *os.File
	if o.Timeline != "" {
		if timeline, err = os.Create(o.Timeline); err != nil {
			return fmt.Errorf("the timeline cannot be written: %w", err)
		}
		defer func() {
			if closed := timeline.Close(); closed != nil {
				err = errors.Join(err, fmt.Errorf("the timeline may be incomplete: %w", closed))
			}
		}()
	}
	system := quietSystem()
	defer system.Shutdown()
	node, err := actors.Start(system, actors.Config{Name: "perf target", Rails: o.Rails})
	if err != nil {
		return fmt.Errorf("the target's node: %w", err)
	}
	s := &server{node: node, system: system}
	if err := s.spawn(); err != nil {
		return errors.Join(err, shutdown(node))
	}
	o.Ready(node.Address())
	if timeline == nil {
		<-ctx.Done()
	} else {
		err = writeTimeline(ctx, node, o.Rails, bufio.NewWriter(timeline))
	}
	return errors.Join(err, s.rest(), shutdown(node))
}

func shutdown(node *actors.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	if err := node.Shutdown(ctx); err != nil {
		return fmt.Errorf("the target's node did not shut down in order: %w", err)
	}
	return nil
}

// hello is the only thing that the second process says.
type hello struct {
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
}

// ServeSecond is the second process: a target on loopback until its input ends.
func ServeSecond(ctx context.Context, rails int, in io.Reader, out io.Writer) error {
	child.Ignore()
	in, ctx = child.Orphaned(ctx, in)
	go func() { _, _ = io.Copy(io.Discard, in) }() // its end is what counts
	say := json.NewEncoder(out)
	err := Serve(ctx, ServeOptions{Rails: loopback(rails), Ready: func(address string) {
		_ = say.Encode(hello{Address: address}) // a parent that is gone ends the input too
	}})
	if err != nil {
		return errors.Join(err, say.Encode(hello{Error: err.Error()}))
	}
	return nil
}

// second is the second process, seen from the first.
type second struct {
	*child.Process
	address string
}

// startSecond starts a target in a second process.
func startSecond(ctx context.Context, o Options) (*second, error) {
	p, err := child.Start(append(append([]string(nil), o.Second...), fmt.Sprintf("--rails=%d", o.Rails)), o.Err)
	if err != nil {
		return nil, err
	}
	said := make(chan hello, 1)
	go func() {
		var h hello
		if err := json.NewDecoder(p.Out).Decode(&h); err != nil {
			h.Error = "it said nothing: " + err.Error()
		}
		said <- h
		_, _ = io.Copy(io.Discard, p.Out)
	}()
	timer := time.NewTimer(connectWait)
	defer timer.Stop()
	select {
	case h := <-said:
		if h.Error == "" {
			return &second{p, h.Address}, nil
		}
		err = fmt.Errorf("the second process does not serve: %s", h.Error)
	case <-timer.C:
		err = fmt.Errorf("the second process does not serve after %v", connectWait)
	case <-ctx.Done():
		err = fmt.Errorf("stopped while the second process started: %w", context.Cause(ctx))
	}
	return nil, errors.Join(err, p.End())
}
