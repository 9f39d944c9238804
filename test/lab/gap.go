package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Sample is what a receiver had at one moment: running totals.
type Sample struct {
	At    int64 // unix nanoseconds
	Total uint64
	Rails []uint64
}

// Timeline is what happened to a transfer, oldest sample first.
type Timeline []Sample

// Never is a time that did not come.
const Never = time.Duration(-1)

// Gap is what a cut of one rail did. Rates are in bytes a second; times count from the cut or the heal.
type Gap struct {
	// Before is the rate in the second before the cut, Survivor in the second before the heal, After at the end.
	Before, Survivor, After float64
	// Stall is the longest stretch with almost nothing landing, StallAt when it began.
	Stall, StallAt time.Duration
	// Full is when 80 % of Survivor was there over 100 ms: behind the stall, if that is the cut's, which shows within a
	// second. Never: not before the heal.
	Full time.Duration
	// Lost is what was missing to Survivor until the heal, as time.
	Lost time.Duration
	// Back is how long after the heal the rail carried half of its old rate over 100 ms. Never: not while it was watched.
	Back time.Duration
}

const (
	span        = 100 * time.Millisecond // that rates are taken over
	almostNone  = 0.02                   // of the cut rail's rate
	fullAgain   = 0.8
	halfAgain   = 0.5
	leastBefore = time.Second // of samples before a cut
	prompt      = time.Second // a stall that begins later has another reason
)

// ErrTimeline is wrapped by the errors about timelines of which nothing can be said.
var ErrTimeline = errors.New("lab: the timeline says too little")

// ReadTimeline reads lines `unix_ns total rail0 rail1 …`. A last line that is cut off is left out.
func ReadTimeline(r io.Reader) (Timeline, error) {
	var t Timeline
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("lab: the timeline cannot be read: %w", err)
		}
		s, err := parseSample(line)
		if err != nil {
			return nil, err
		}
		t = append(t, s)
	}
}

func parseSample(line string) (Sample, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return Sample{}, fmt.Errorf("%w: %q has no time and total", ErrTimeline, line)
	}
	var numbers []uint64
	for _, f := range fields {
		n, err := strconv.ParseUint(f, 10, 63)
		if err != nil {
			return Sample{}, fmt.Errorf("%w: %q: %w", ErrTimeline, line, err)
		}
		numbers = append(numbers, n)
	}
	return Sample{At: int64(numbers[0]), Total: numbers[1], Rails: numbers[2:]}, nil
}

// at is the first sample at or after t.
func (t Timeline) at(ns int64) int {
	return sort.Search(len(t), func(i int) bool { return t[i].At >= ns })
}

// of gives one rail's total; rail < 0: that of all.
func (s Sample) of(rail int) uint64 {
	if rail < 0 {
		return s.Total
	}
	return s.Rails[rail]
}

// rate is that between two samples.
func (t Timeline) rate(from, to, rail int) float64 {
	to = min(to, len(t)-1)
	if from >= to {
		return 0
	}
	return float64(t[to].of(rail)-t[from].of(rail)) / (float64(t[to].At-t[from].At) / 1e9)
}

// over is the rate from a sample on, over the span; false: the timeline ends, or until comes, before.
func (t Timeline) over(from, until, rail int) (float64, bool) {
	to := t.at(t[from].At + int64(span))
	return t.rate(from, to, rail), to < min(until, len(t))
}

// Gap looks at the cut of one rail. cut and heal are unix nanoseconds.
func (t Timeline) Gap(rail int, cut, heal int64) (Gap, error) {
	switch {
	case len(t) == 0 || t[0].At > cut-int64(leastBefore):
		return Gap{}, fmt.Errorf("%w: it begins less than %v before the cut", ErrTimeline, leastBefore)
	case heal <= cut || t[len(t)-1].At < heal+int64(time.Second):
		return Gap{}, fmt.Errorf("%w: it ends less than a second after the heal", ErrTimeline)
	case rail >= len(t[0].Rails):
		return Gap{}, fmt.Errorf("%w: it has %d rails", ErrTimeline, len(t[0].Rails))
	}
	at, healed := t.at(cut), t.at(heal)
	second := t.at(cut - int64(time.Second))
	end := len(t) - 1
	g := Gap{
		Before: t.rate(second, at, -1), Survivor: t.rate(t.at(heal-int64(time.Second)), healed, -1),
		After: t.rate(t.at(t[end].At-int64(1200*time.Millisecond)), t.at(t[end].At-int64(200*time.Millisecond)), -1),
		Full:  Never, Back: Never,
	}
	old := t.rate(second, at, rail)
	stallEnd := g.stall(t, at, healed, old*almostNone)
	if g.StallAt > time.Duration(cut)+prompt {
		stallEnd = cut
	}
	for i := at; i < healed; i++ {
		rate, whole := t.over(i, healed, -1)
		if !whole {
			break
		}
		if t[i].At >= stallEnd && rate >= fullAgain*g.Survivor {
			g.Full = time.Duration(t[i].At - cut)
			break
		}
	}
	for i := at; i+1 < healed; i++ {
		if rate := t.rate(i, i+1, -1); rate < g.Survivor {
			g.Lost += time.Duration((g.Survivor - rate) / g.Survivor * float64(t[i+1].At-t[i].At))
		}
	}
	for i := healed; i < len(t); i++ {
		rate, whole := t.over(i, len(t), rail)
		if !whole {
			break
		}
		if rate >= halfAgain*old {
			g.Back = time.Duration(t[i].At - heal)
			break
		}
	}
	g.StallAt -= time.Duration(cut)
	return g, nil
}

// stall finds the longest stretch between two samples with no more than the rate, and says when it ended. StallAt is left as
// unix nanoseconds.
func (g *Gap) stall(t Timeline, from, to int, rate float64) (end int64) {
	start := t[from].At
	g.StallAt, end = time.Duration(start), start
	for i := from; i+1 < to; i++ {
		if t.rate(i, i+1, -1) > rate {
			start = t[i+1].At
			continue
		}
		if d := time.Duration(t[i+1].At - start); d > g.Stall {
			g.Stall, g.StallAt, end = d, time.Duration(start), t[i+1].At
		}
	}
	return end
}

// Median of the values; they are not changed. With an even number it is the upper one of the two. Never counts as longer than
// anything.
func Median(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return Never
	}
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b time.Duration) int {
		switch {
		case a == b:
			return 0
		case a == Never || b != Never && a > b:
			return 1
		}
		return -1
	})
	return sorted[len(sorted)/2]
}
