package main

import (
	"maps"
	"strings"
	"time"
)

// profiles are pressures: each takes what a seed has chosen and makes one kind of trouble likely, so that a bug of that kind
// is met within a few seeds. They change what happens, never what must hold.
var profiles = map[string]func(*Options){
	"": func(*Options) {},
	// Puts that are taken back while their bytes are under way, on several lanes, some of which die.
	"cancels": (*Options).cancels,
	// The same, and the initiator does not wait for the verdict.
	"abandons": func(o *Options) {
		o.cancels()
		o.Load.Abandon, o.Load.Notify = 0.7, 0.6
	},
	// Gets, some of them taken back, some of regions that are revoked.
	"gets": func(o *Options) {
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large = 1, 10, 0, 0
		o.Load.Cancel, o.Load.Evil, o.Load.RevokeEvery = 0.3, 0.05, 20*time.Millisecond
		o.puts(100 << 10)
	},
	// Keys that are revoked under puts, and claims that must be refused.
	"revokes": func(o *Options) {
		o.lanes(2)
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large = 10, 1, 0, 0
		o.Load.Cancel, o.Load.Abandon, o.Load.Evil, o.Load.RevokeEvery = 0, 0, 0.3, 20*time.Millisecond
		o.puts(100 << 10)
	},
	// Many messages of all sizes to few targets, on lanes that die and come back.
	"messages": func(o *Options) {
		o.lanes(3)
		o.MinBuffer, o.MaxBuffer = 8<<10, 64<<10
		o.Load.Messages, o.Load.Large, o.Load.Puts, o.Load.Gets = 50, 1, 1, 0
		o.Load.Targets, o.Load.Consume = 4, 10*time.Microsecond
		o.often(4*time.Millisecond, 40)
		o.Faults.Reset, o.Faults.HalfReset, o.Faults.Broken = 60*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	},
	// Puts that are taken back, while goroutines wait long for their turns: other lanes' frames come in between.
	"late-cancels": func(o *Options) {
		o.cancels()
		o.turns()
		o.lanes(3)
		o.Session.MaxOpen, o.Load.Cancel = 1<<18, 1
	},
	// Rails that are lost as soon as they have joined, and acceptors that take their time.
	"joins": func(o *Options) {
		o.cancels()
		o.turns()
		o.lanes(3)
		o.JoinCut, o.JoinHole, o.Zombies, o.Swallow = 0.1, 0.3, 1, 0
		o.Faults.Broken, o.Faults.OneWay, o.Faults.HoleFor = 20*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	},
	// As many operations as the target keeps records for, and more.
	"limits": func(o *Options) {
		o.cancels()
		o.Session.MaxOpen = 4
		o.Load.Notify, o.Load.Abandon, o.Load.Burst = 0.8, 0.7, 30
	},
	// Puts with notifications.
	"notify": func(o *Options) {
		o.lanes(2)
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large = 10, 0, 0, 0
		o.Load.Notify, o.Load.Cancel, o.Load.Evil = 0.8, 0.2, 0
		o.puts(100 << 10)
	},
	// Large messages to one target, in small pieces on many lanes.
	"large": func(o *Options) {
		o.lanes(4)
		o.turns()
		o.MinRate, o.MaxRate = 2e7, 2e8
		o.Session.MaxMessage, o.Session.Window, o.Session.MinChunk, o.Session.MaxChunk = 64<<10, 4<<20, 2<<10, 8<<10
		o.Load.Messages, o.Load.Large, o.Load.Puts, o.Load.Gets, o.Load.Targets = 1, 10, 0, 0, 1
		o.Load.Consume = 10 * time.Microsecond
		o.often(10*time.Millisecond, 10)
	},
	// Windows as small as they may be, mailboxes that are slow, and lanes that die with what found room.
	"windows": func(o *Options) {
		o.lanes(2)
		o.Session.MaxMessage, o.Session.Window = 64<<10, 1
		o.Load.Messages, o.Load.Large, o.Load.Puts, o.Load.Gets = 5, 5, 0, 0
		o.Load.Consume = 5 * time.Millisecond
		o.often(2*time.Millisecond, 5)
		o.Faults.Reset = 50 * time.Millisecond
	},
	// Connections that are cut, of which one end hears nothing for a while.
	"resets": func(o *Options) {
		o.lanes(2)
		o.Faults.Reset, o.Faults.HalfReset = 30*time.Millisecond, 30*time.Millisecond
		o.JoinCut, o.Zombies = 0.2, 1
	},
	// The same, and dialers that do not wait for what they have fenced.
	"hasty": func(o *Options) {
		o.lanes(2)
		o.turns()
		o.Hasty = true
		o.Faults.Reset, o.Faults.HalfReset, o.Faults.Broken = 30*time.Millisecond, 30*time.Millisecond, 30*time.Millisecond
	},
	// Fences and flushes.
	"fences": func(o *Options) {
		o.lanes(2)
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Flushes, o.Load.Fence = 5, 3, 1, 3, 0.3
	},
	// Nodes that leave while their messages are under way, on paths that take their time.
	"leaving": func(o *Options) {
		o.Ending, o.Nodes = Goodbye, 2
		o.MinDelay, o.MaxDelay = time.Millisecond, 5*time.Millisecond
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large, o.Load.Flushes = 0, 0, 10, 0, 0
		o.often(time.Millisecond, 10)
	},
	// Nodes that leave while their peers go on, with puts that must be refused, on several lanes.
	"goodbyes": func(o *Options) {
		o.lanes(3)
		o.Ending, o.Nodes = Goodbye, 2
		o.MinDelay, o.MaxDelay = time.Millisecond, 5*time.Millisecond
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large, o.Load.Flushes = 10, 0, 1, 0, 0
		o.Load.Evil, o.Load.Cancel, o.Load.Fence = 0.5, 0, 0
		o.puts(10 << 10)
		o.often(2*time.Millisecond, 10)
	},
	// Slow paths that are always full, and swallow everything from time to time.
	"clogged": func(o *Options) {
		o.lanes(2)
		o.MinRate, o.MaxRate, o.MinBuffer, o.MaxBuffer = 3e6, 5e6, 8<<10, 16<<10
		o.MinDelay, o.MaxDelay, o.Jitter, o.Turn, o.LateTurn = 5*time.Microsecond, 50*time.Microsecond, 0, 50*time.Microsecond, 0
		o.Session.MinChunk, o.Session.MaxChunk, o.Session.LaneBulk = 8<<10, 64<<10, 1<<20
		o.Length = time.Second
		o.Faults = Faults{Hole: 100 * time.Millisecond, HoleFor: time.Second}
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large, o.Load.Cancel = 10, 0, 0, 0, 0
		o.puts(300 << 10)
		o.Load.Budget, o.Load.Every, o.Load.Burst = 8<<20, 20*time.Millisecond, 5
	},
	// Nodes that die and come back, and endpoints that end, while hellos of theirs are still under way.
	"crashes": func(o *Options) {
		o.lanes(2)
		o.Ending, o.Gone, o.BothOpen, o.JoinHole = Peace, 0.1, 0.5, 0.05
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large = 3, 2, 10, 0
		o.puts(10 << 10)
		o.often(3*time.Millisecond, 5)
		o.Length = max(o.Length, 700*time.Millisecond)
		o.Faults.Crash, o.Faults.Bug, o.Faults.Replay = 150*time.Millisecond, 200*time.Millisecond, 50*time.Millisecond
		o.Faults.Reset, o.Faults.Hole, o.Faults.HoleFor = 100*time.Millisecond, 150*time.Millisecond, 500*time.Millisecond
	},
	// Paths that sleep for minutes, bytes that are stuck, clocks that leap, and endpoints that do not wait long.
	"sleepers": func(o *Options) {
		o.lanes(2)
		o.Ending, o.OutageLimit, o.Zombies = Peace, min(o.OutageLimit, 2*time.Second), 1
		o.Length = max(o.Length, 700*time.Millisecond)
		o.Faults.Sleep, o.Faults.Jump, o.Faults.Stuck = 300*time.Millisecond, 150*time.Millisecond, 60*time.Millisecond
		o.Faults.Crash, o.Faults.Reset, o.Faults.HoleFor = 400*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond
	},
	// Paths that swallow everything, one way or both, and nodes that are stopped.
	"silence": func(o *Options) {
		o.lanes(2)
		o.Length = max(o.Length, 1200*time.Millisecond)
		o.Faults = Faults{Hole: 200 * time.Millisecond, OneWay: 200 * time.Millisecond, Freeze: 300 * time.Millisecond,
			HoleFor: 2 * time.Second, FreezeFor: 600 * time.Millisecond}
		o.Load.Puts, o.Load.Messages = 3, 5
	},
}

// verbsProfiles are pressures on paths whose cards write.
var verbsProfiles = map[string]func(*Options){
	// Puts over cards, and whatever the seed has chosen besides.
	"verbs": func(o *Options) {
		o.Verbs = 0.7
		o.Load.Puts = max(o.Load.Puts, 5)
		o.Load.BigPut = max(o.Load.BigPut, 10<<10)
	},
	// Puts that are taken back while cards write, some without waiting for the verdict.
	"verbs-cancels": func(o *Options) {
		o.cancels()
		o.Verbs, o.Load.Abandon = 0.8, 0.3
		o.MinRate, o.MaxRate = 2e7, 1e8
	},
	// Regions that are revoked and registered again under the cards' writes.
	"verbs-revokes": func(o *Options) {
		profiles["revokes"](o)
		o.Verbs, o.Zombies = 0.8, 1
		o.Load.Cancel, o.Load.Evil, o.Load.Regions = 0.1, 0.1, 3
		o.MinRate, o.MaxRate = 2e7, 1e8
	},
	// Puts that are taken back, and answered so, while their last bytes are in the network and the queue pairs break.
	"verbs-astray": func(o *Options) {
		o.cancels()
		o.turns()
		o.lanes(3)
		o.Verbs, o.Zombies, o.Swallow, o.Ending = 0.7, 1, 1, Peace
		o.Turn, o.LateTurn, o.LateFx = 200*time.Microsecond, 0.1, 0
		o.Session.MaxOpen, o.Session.MinChunk, o.Session.MaxChunk, o.Session.LaneBulk = 1<<18, 32<<10, 128<<10, 1<<20
		o.Load.Cancel, o.Load.Abandon = 0.9, 0
		o.MinRate, o.MaxRate = 5e6, 2e7
		o.puts(300 << 10)
		o.Faults = Faults{Broken: 4 * time.Millisecond}
	},
	// Queue pairs that are lost all the time, and cards that wake up long after.
	"verbs-retires": func(o *Options) {
		o.lanes(2)
		o.Verbs, o.Zombies = 1, 1
		o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large = 10, 1, 1, 0
		o.Load.Cancel, o.Load.Abandon, o.Load.Notify, o.Load.Evil = 0.3, 0.3, 0.3, 0
		o.puts(100 << 10)
		o.MinRate, o.MaxRate = 2e7, 1e8
		o.Faults.Reset, o.Faults.HalfReset, o.Faults.Broken = 60*time.Millisecond, 30*time.Millisecond, 60*time.Millisecond
		o.Faults.Hole, o.Faults.OneWay, o.Faults.Freeze = 100*time.Millisecond, 60*time.Millisecond, 300*time.Millisecond
		o.Faults.HoleFor, o.Faults.FreezeFor = 2*time.Second, 600*time.Millisecond
	},
}

func init() { maps.Copy(profiles, verbsProfiles) }

// press puts the options under a profile's pressure. False: there is none of that name.
func (o *Options) press(name string) bool {
	f := profiles[name]
	if f == nil {
		return false
	}
	if name != "" && !strings.HasPrefix(name, "verbs") {
		o.Verbs = 0 // their trouble is that of streams
	}
	f(o)
	return true
}

// lanes has at least n of them.
func (o *Options) lanes(n int) { o.Lanes = max(o.Lanes, n) }

// puts sets the size of the largest operation, and has the work come often enough for the time that there is.
func (o *Options) puts(n int) {
	o.Load.BigPut, o.Load.Regions, o.Load.RegionSize = n, 2, 8*n
	o.often(6*time.Millisecond, 5)
}

// often has bursts of work of that size come so often, until the budget is spent.
func (o *Options) often(every time.Duration, burst int) {
	o.Load.Burst, o.Load.Budget, o.Load.Every = burst, 4<<20, every
}

func (o *Options) cancels() {
	o.lanes(2)
	o.Load.Puts, o.Load.Gets, o.Load.Messages, o.Load.Large = 10, 0, 1, 0
	o.Load.Cancel, o.Load.Evil, o.Load.Notify = 0.6, 0, 0.3
	o.puts(100 << 10)
}

// turns has every goroutine wait, some of them long, on paths that are short.
func (o *Options) turns() {
	o.Turn, o.LateTurn = time.Millisecond, 0.1
	o.MinDelay, o.MaxDelay, o.Jitter = 5*time.Microsecond, 50*time.Microsecond, 20*time.Microsecond
}
