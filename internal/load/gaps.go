package load

import (
	"sync"
	"time"
)

// Span is a time in which a stream (an actor pair, or a putter with its put) made no progress.
type Span struct {
	Stream string        `json:"stream"`
	From   time.Duration `json:"from"`
	To     time.Duration `json:"to"`
}

// Length is how long it was.
func (s Span) Length() time.Duration { return s.To - s.From }

// Bounds of Gaps: what is shorter is no gap, and only so many are remembered.
const (
	shortestSpan = 10 * time.Millisecond
	maxSpans     = 8192
)

// Gaps remembers when streams stood still. Safe from any goroutine.
type Gaps struct {
	mu    sync.Mutex
	open  map[string]time.Duration // since when a stream waits
	spans []Span                   // a ring of the latest; next is the oldest once it is full
	next  int
}

// Wait says that a stream waits for progress from now on.
func (g *Gaps) Wait(stream string, now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[string]time.Duration{}
	}
	g.open[stream] = now
}

// Progress says that a stream has moved, and waits for nothing.
func (g *Gaps) Progress(stream string, now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress(stream, now)
}

func (g *Gaps) progress(stream string, now time.Duration) {
	from, waiting := g.open[stream]
	if !waiting {
		return
	}
	delete(g.open, stream)
	if now-from < shortestSpan {
		return
	}
	span := Span{stream, from, now}
	if len(g.spans) < maxSpans {
		g.spans = append(g.spans, span)
		return
	}
	g.spans[g.next] = span
	g.next = (g.next + 1) % maxSpans
}

// Beat is Progress and Wait in one: for a stream that never rests.
func (g *Gaps) Beat(stream string, now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[string]time.Duration{}
	}
	g.progress(stream, now)
	g.open[stream] = now
}

// Rest says that no stream waits any more: the load has been stopped.
func (g *Gaps) Rest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.open)
}

// Worst gives the longest standstill that began before to and ended after from, spans that are still
// open at now included. What lies before from does not count: it was not the cut's doing. Of two equally long ones
// it is the one of the lesser name.
func (g *Gaps) Worst(from, to, now time.Duration) Span {
	g.mu.Lock()
	defer g.mu.Unlock()
	var worst Span
	consider := func(s Span) {
		s.From = max(s.From, from)
		if s.To <= s.From || s.From > to {
			return
		}
		longer := s.Length() - worst.Length()
		if longer > 0 || longer == 0 && s.Stream < worst.Stream {
			worst = s
		}
	}
	for _, s := range g.spans {
		consider(s)
	}
	for stream, since := range g.open {
		consider(Span{stream, since, now})
	}
	return worst
}
