package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"railyard/test/lab"
)

// This file: what happens in a round, from a seed. It is pure.

// deed is what an act does.
type deed int

const (
	cutRail deed = iota + 1
	healRail
	stopNode
	wakeNode
	killNode
	bearNode
)

var deedNames = [...]string{cutRail: "cut", healRail: "heal", stopNode: "stop", wakeNode: "wake", killNode: "kill", bearNode: "start"}

func (d deed) String() string { return deedNames[d] }

// act is one thing that happens in a round.
type act struct {
	at   time.Duration // since the round began
	do   deed
	rail int     // cutRail and healRail
	node int     // the others
	cut  lab.Cut // cutRail
}

func (a act) String() string {
	switch a.do {
	case cutRail:
		return fmt.Sprintf("%6.2f s cut rail %d: %s at %s", a.at.Seconds(), a.rail, a.cut.Kind, a.cut.Where)
	case healRail:
		return fmt.Sprintf("%6.2f s heal rail %d", a.at.Seconds(), a.rail)
	default:
		return fmt.Sprintf("%6.2f s %s node %d", a.at.Seconds(), a.do, a.node)
	}
}

// world is what scripts are for.
type world struct {
	nodes, rails int
	rate         int64 // of a rail, bits a second
	wires        bool  // rails can delay
}

// How long things last.
const (
	shortestCut = 300 * time.Millisecond
	longestCut  = 5 * time.Second
	// leastRest is how long a rail is well between two cuts, so that it is seen to come back.
	leastRest              = 1500 * time.Millisecond
	mostRest               = 4 * time.Second
	stopChance, killChance = 0.5, 0.6
)

// script makes a round's acts, in order. Everything that a round breaks it also mends before its end.
func script(rng *rand.Rand, w world, length time.Duration) []act {
	var acts []act
	for rail := range w.rails {
		acts = append(acts, cuts(rng, w, rail, length)...)
	}
	stopped := -1
	if rng.Float64() < stopChance {
		stopped = rng.IntN(w.nodes)
		from := between(rng, 0, length/2)
		acts = append(acts, act{at: from, do: stopNode, node: stopped},
			act{at: min(from+between(rng, 500*time.Millisecond, 6*time.Second), length), do: wakeNode, node: stopped})
	}
	// Node 0 is never killed: it is the one that sees all the others come and go. Who stands still cannot be met again.
	if rng.Float64() < killChance {
		if node := 1 + rng.IntN(w.nodes-1); node != stopped {
			from := between(rng, length/10, length*6/10)
			acts = append(acts, act{at: from, do: killNode, node: node},
				act{at: from + between(rng, 100*time.Millisecond, 2*time.Second), do: bearNode, node: node})
		}
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return acts
}

// cuts makes one rail's: cut, healed, at rest, and so on.
func cuts(rng *rand.Rand, w world, rail int, length time.Duration) []act {
	var acts []act
	for at := between(rng, 0, mostRest); at+shortestCut < length; {
		heal := min(at+between(rng, shortestCut, longestCut), length)
		acts = append(acts, act{at: at, do: cutRail, rail: rail, cut: anyCut(rng, w)}, act{at: heal, do: healRail, rail: rail})
		at = heal + between(rng, leastRest, mostRest)
	}
	return acts
}

func anyCut(rng *rand.Rand, w world) lab.Cut {
	kinds := []lab.Kind{lab.LinkDown, lab.BlackHole, lab.OneWay, lab.Reset, lab.SwallowedReset, lab.Loss, lab.Slow, lab.Flap,
		lab.AddressRemoved, lab.Narrow, lab.Poisoned}
	if w.wires {
		// A wire in user space has no card whose rate can be shaped, and no link to lose.
		kinds = []lab.Kind{lab.BlackHole, lab.OneWay, lab.Reset, lab.SwallowedReset, lab.Loss, lab.Delay}
	}
	c := lab.Cut{Kind: kinds[rng.IntN(len(kinds))], Where: lab.Side(rng.IntN(2))}
	switch c.Kind {
	case lab.Loss:
		c.Percent = 1 + 39*rng.Float64()
	case lab.Slow:
		c.Rate = int64(float64(w.rate) * (0.005 + 0.2*rng.Float64()))
	case lab.Delay:
		c.Delay = between(rng, time.Millisecond, 200*time.Millisecond)
	case lab.Flap:
		c.Down, c.Up = between(rng, 20*time.Millisecond, 500*time.Millisecond), between(rng, 20*time.Millisecond, 500*time.Millisecond)
	case lab.Narrow:
		c.MTU = 600 + rng.IntN(800)
	default: // the others have no measure
	}
	return c
}

func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)+1))
}

// scriptOf makes the script of a round of a run.
func scriptOf(seed uint64, round int, w world, length time.Duration) []act {
	return script(rand.New(rand.NewPCG(seed, uint64(round))), w, length)
}

// pairs are the nodes at different hosts: those that talk. Nodes with even numbers are at host A.
func pairsOf(nodes int) [][2]int {
	var all [][2]int
	for i := range nodes {
		for k := i + 1; k < nodes; k++ {
			if (i+k)%2 == 1 {
				all = append(all, [2]int{i, k})
			}
		}
	}
	return all
}
