package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/internal/load"
)

func end(c load.Counters) answer { return answer{Report: load.Report{Counters: c}} }

var half = load.Counters{Sent: 5, Delivered: 5, Puts: 3, Completed: 2, Canceled: 1, Checked: 2, PutBytes: 1000}

func TestACleanBout(t *testing.T) {
	b := &books{}
	b.clean("x", [2]ending{{"a", end(half)}, {"b", end(half)}})
	assert.Zero(t, b.Wrong, b.Failures)
	assert.Equal(t, uint64(2000), b.bytes())
	for name, harm := range map[string]func(*answer){
		"lost":      func(a *answer) { a.Report.Counters.Sent++ },
		"doubled":   func(a *answer) { a.Report.Counters.Doubled++ },
		"reordered": func(a *answer) { a.Report.Counters.Reordered++ },
		"corrupted": func(a *answer) { a.Report.Counters.Corrupted++ },
		"late":      func(a *answer) { a.Report.Counters.LateWrites++ },
		"endpoint":  func(a *answer) { a.Report.Counters.EndpointErrors++ },
		"unknown":   func(a *answer) { a.Report.Counters.Unknown++ },
		"put":       func(a *answer) { a.Report.Counters.Puts++ },
		"ended":     func(a *answer) { a.Ended++ },
		"told":      func(a *answer) { a.Told++ },
	} {
		b, bad := &books{}, end(half)
		harm(&bad)
		b.clean("x", [2]ending{{"a", end(half)}, {"b", bad}})
		assert.Positive(t, b.Wrong, name)
	}
}

func TestASurvivorsBout(t *testing.T) {
	good := func() answer {
		a := end(load.Counters{Sent: 100, Delivered: 3, Puts: 4, Completed: 2, Unknown: 2, Checked: 1})
		a.Ended, a.Told = 1, 1
		a.Parting = load.Parting{Silent: 5, Reported: 20}
		return a
	}
	b := &books{}
	b.orphan("x", ending{"a", good()})
	b.silence()
	assert.Zero(t, b.Wrong, b.Failures)
	for name, harm := range map[string]func(*answer){
		"holes":    func(a *answer) { a.Parting.Holes++ },
		"lies":     func(a *answer) { a.Parting.Lies++ },
		"silent":   func(a *answer) { a.Parting.Silent = mostSilent + 1 },
		"hanging":  func(a *answer) { a.Report.Counters.Puts++ },
		"not told": func(a *answer) { a.Told = 0 },
		"twice":    func(a *answer) { a.Told = 2 },
		"ended":    func(a *answer) { a.Ended = 2 },
		"late":     func(a *answer) { a.Report.Counters.LateWrites++ },
		"doubled":  func(a *answer) { a.Report.Counters.Doubled++ },
	} {
		b, bad := &books{}, good()
		harm(&bad)
		b.orphan("x", ending{"a", bad})
		b.silence()
		assert.Positive(t, b.Wrong, name)
	}
	b = &books{Strays: mostSilent}
	bad := good()
	bad.Parting.Silent = mostSilent + 1
	b.orphan("x", ending{"a", bad})
	b.silence()
	assert.Zero(t, b.Wrong, "what a successor got is not lost")
}

func TestWhatIsFlat(t *testing.T) {
	points := func(of func(i int) health) (all []health) {
		for i := range 10 {
			all = append(all, of(i))
		}
		return all
	}
	require.NoError(t, flat(nil))
	require.NoError(t, flat(points(func(i int) health { return health{Heap: uint64(i%3) * moreHeap, Descriptors: 10 + i%5} })))
	require.NoError(t, flat(points(func(i int) health { return health{Heap: 1000 * uint64(min(i, 1))} })), "the first point is cold")
	require.ErrorIs(t, flat(points(func(i int) health { return health{Heap: uint64(i) * moreHeap} })), errGrows)
	require.ErrorIs(t, flat(points(func(i int) health { return health{Descriptors: 3 * i} })), errGrows)
	require.ErrorIs(t, flat(points(func(i int) health { return health{Goroutines: 10 * i} })), errGrows)
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"--seed", "7", "--soak", "1h", "--nodes", "4", "--rails", "3", "--rate", "1e6"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, options{seed: 7, time: time.Hour, nodes: 4, rails: 3, rate: 1e6, roundTime: 20 * time.Second}, o)
	for _, bad := range [][]string{{"--nodes", "1"}, {"--rails", "0"}, {"--rate", "0"}, {"--time", "0s"}, {"--round", "1s"}, {"x"}, {"--y"},
		{"--delay", "-1s"}} {
		_, err := parse(bad, io.Discard)
		assert.ErrorIs(t, err, errUsage, "%v", bad)
	}
}
