package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"railyard/rail"
	"railyard/supervision"
)

// This file: what to do about a rail's failure (patience, a supervision.Policy), and how an application reads what
// happens to its rails (watcher).

// patience decides as the library's own policy does, with one rule more: a rail that keeps breaking is given up, since
// each break holds some messages up for a moment. It is asked once for each failure. What it says decides only whether
// and when the rail is tried again: the work in flight moves to the other rails in any case.
//
// Decide is called by the actors of the rails and must not block, so what it has to tell goes into a queue.
type patience struct {
	inner     supervision.Policy
	lives     int // that a rail may lose within a minute
	names     map[string]string
	decisions chan string
}

// decisionRoom bounds the queue. What does not fit is not told.
const decisionRoom = 128

func newPatience(lives int, names map[string]string) (*patience, error) {
	inner, err := supervision.Default(supervision.DefaultConfig{}, rand.NewPCG(rand.Uint64(), rand.Uint64()))
	if err != nil {
		return nil, fmt.Errorf("no policy to build on: %w", err)
	}
	return &patience{inner: inner, lives: lives, names: names, decisions: make(chan string, decisionRoom)}, nil
}

// Decide implements supervision.Policy: the rail's past and its newest failure come in, a directive goes out.
func (p *patience) Decide(h supervision.History, f supervision.Failure, now time.Duration) supervision.Directive {
	d := p.inner.Decide(h, f, now)
	// Two conditions more. Without another rail to the peer, giving up would cut us off. And silence (class Path) ends when the
	// cable is plugged in: only what breaks and comes back, over and over, is worth giving up.
	if d.Action == supervision.Restart && h.Flaps > p.lives && h.Reachable && f.Class != supervision.Path {
		d = supervision.Directive{Action: supervision.Stop, Reason: fmt.Sprintf("%d lives lost within %s, and there are other rails",
			h.Flaps, supervision.RecentSpan)}
	}
	if h.Lived > 0 { // else no life has ended: one more dial has failed
		select {
		case p.decisions <- fmt.Sprintf("our policy on the %s rail: %s, after %s (%s)", p.names[f.Remote], d.Action,
			d.Delay.Round(time.Millisecond), d.Reason):
		default:
		}
	}
	return d
}

// watcher reads the events of a node's rails and says what they mean, in one goroutine. Meanwhile events wait in a
// bounded queue; one that follows on missed events says how many.
type watcher struct {
	out    io.Writer
	began  time.Time
	names  map[string]string // of rails, by the address at their other end
	policy *patience
	events <-chan rail.Event
}

// until shows what happens until one of the kinds happens to the rail of that name ("": to any), and gives the kind.
func (w *watcher) until(ctx context.Context, name string, kinds ...rail.EventKind) (rail.EventKind, error) {
	e, found := w.read(eventLimit, func(e rail.Event) bool {
		return (name == "" || name == w.names[e.Remote]) && slices.Contains(kinds, e.Kind)
	})
	switch {
	case found:
		return e.Kind, nil
	case ctx.Err() != nil:
		return 0, fmt.Errorf("stopped while waiting for %v: %w", kinds, ctx.Err())
	}
	return 0, fmt.Errorf("%v of rail %q did not come within %s", kinds, name, eventLimit)
}

// show shows what happens for so long.
func (w *watcher) show(d time.Duration) { w.read(d, func(rail.Event) bool { return false }) }

// read shows what happens until stop is told of the right event (true), or the time is over, or the context of the events (false).
func (w *watcher) read(limit time.Duration, stop func(rail.Event) bool) (rail.Event, bool) {
	over := time.After(limit)
	for {
		select {
		case decision := <-w.policy.decisions:
			w.say(time.Now(), decision)
		case e, ok := <-w.events:
			if !ok {
				return e, false
			}
			w.say(e.At, w.words(e))
			if stop(e) {
				return e, true
			}
		case <-over:
			return rail.Event{}, false
		}
	}
}

// words is our reading of an event.
func (w *watcher) words(e rail.Event) string {
	name := "the " + w.names[e.Remote] + " rail"
	switch e.Kind {
	case rail.RailUp:
		return name + " is up, with its full share of the work"
	case rail.RailSuspect:
		return fmt.Sprintf("%s gets no new work: %v", name, e.Cause)
	case rail.RailTrusted:
		return name + " has answered after all"
	case rail.RailDown:
		// The failure names both cards, so that somebody can go and look; its class says whose fault it was.
		cause := e.Cause
		var f *supervision.Failure
		if errors.As(cause, &f) {
			cause = f.Err
		}
		return fmt.Sprintf("%s is down, a %s failure: %v", name, e.Class, cause)
	case rail.RailRetired:
		return "the work of " + name + " has moved to the others: both ends agree how far it had got"
	case rail.RailRejoined:
		return fmt.Sprintf("%s is back after %s, on probation", name, e.Outage.Round(time.Millisecond))
	case rail.RailGaveUp:
		return name + " is given up for as long as this peer is there"
	default: // rare, and the library's own words will do
		return e.String()
	}
}

func (w *watcher) say(at time.Time, text string) {
	fmt.Fprintf(w.out, "%6.3fs  %s\n", at.Sub(w.began).Seconds(), text)
}
