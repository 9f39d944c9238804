package main

import (
	"math/rand/v2"
	"time"

	"railyard/examples/replicator/replica"
)

// The geometry of simulated volumes: small, so that everything meets.
const (
	block   = 16 // bytes; written and read as a whole
	extent  = 64
	volume  = 7
	staging = 512
)

// options are what a seed chooses.
type options struct {
	seed    uint64
	verbose bool // the story tells of every operation
	members int
	extents uint64
	level   replica.Level
	kept    int // records that a log holds before the oldest go
	window  int
	clients int
	faults  time.Duration // how long things break
	// Means between two of each; 0: none.
	crash, freeze, cut, elect, wipe, withdraw time.Duration
	slowDisk, slowNet                         time.Duration // the longest usual delay
	lateness                                  float64       // part of puts that land late
}

func choose(seed uint64) options {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(ms ...int) time.Duration { return time.Duration(ms[r.IntN(len(ms))]) * time.Millisecond }
	o := options{seed: seed, members: 3, extents: 3 + r.Uint64N(5), level: replica.LevelC, kept: 8 + r.IntN(60),
		window: 64 << r.IntN(6), clients: 1 + r.IntN(4), faults: time.Duration(2+r.IntN(6)) * time.Second,
		crash: pick(0, 600, 2000), freeze: pick(0, 500, 1500),
		cut: pick(0, 400, 1500), elect: pick(0, 800, 3000),
		wipe: pick(0, 0, 2500), withdraw: pick(0, 100),
		slowDisk: pick(1, 5, 30), slowNet: pick(1, 5, 20),
		lateness: []float64{0, 0.05, 0.3}[r.IntN(3)]}
	switch r.IntN(8) {
	case 0:
		o.level = replica.LevelB
	case 1:
		o.level = replica.LevelA
	}
	if r.IntN(8) == 0 {
		o.members = 5
	}
	return o
}

func (o *options) settings(self replica.Name) replica.Settings {
	return replica.Settings{Self: self, Volume: volume, Size: o.extents * extent, Extent: extent, Level: o.level,
		Staging: staging, Window: o.window, Pending: 256, Lease: 200 * time.Millisecond, Beat: 20 * time.Millisecond,
		Retry: 60 * time.Millisecond, Stall: 150 * time.Millisecond, MarkEvery: 2}
}
