package main

import (
	"fmt"
	"time"
)

// FaultKind is a kind of thing that goes wrong.
type FaultKind uint8

// The kinds of faults.
const (
	FaultReset     FaultKind = iota // a path's connections end, and both ends hear of it
	FaultHalfReset                  // only one end hears of it
	FaultHole                       // a path swallows everything, both ways
	FaultOneWay                     // one way only
	FaultSlow                       // a path is many times slower
	FaultFreeze                     // a node's process is stopped, its kernel goes on
	FaultBroken                     // a transport fails for a reason of its own
	FaultAlarm                      // a card says that its carrier is gone, and nothing is wrong
	FaultJoinCut                    // a connection ends while it is being joined
	FaultJoinHole                   // a path swallows what is being joined
	FaultLost                       // a path does not come back until all work is done
	FaultCrash                      // a node's process or host dies
	FaultBug                        // an endpoint fails: its epoch ends, its node lives
	FaultJump                       // a node's clock leaps
	FaultStuck                      // a connection carries nothing one way for a while
	FaultHalfFrame                  // a connection ends in the middle of a write
	FaultSleep                      // a path swallows everything for minutes
	FaultReplay                     // a stranger plays back a hello
	faultKinds                      // how many there are
)

// faults says of each kind what the story calls it, and where it is counted.
var faults = [faultKinds]struct {
	name  string
	count func(*Counts) *uint64
}{
	FaultReset:     {"reset", func(c *Counts) *uint64 { return &c.Resets }},
	FaultHalfReset: {"half a reset", func(c *Counts) *uint64 { return &c.HalfResets }},
	FaultHole:      {"black hole", func(c *Counts) *uint64 { return &c.Holes }},
	FaultOneWay:    {"black hole one way", func(c *Counts) *uint64 { return &c.OneWays }},
	FaultSlow:      {"slow path", func(c *Counts) *uint64 { return &c.Slows }},
	FaultFreeze:    {"stopped process", func(c *Counts) *uint64 { return &c.Freezes }},
	FaultBroken:    {"broken transport", func(c *Counts) *uint64 { return &c.Broken }},
	FaultAlarm:     {"false alarm", func(c *Counts) *uint64 { return &c.Alarms }},
	FaultJoinCut:   {"cut join", func(c *Counts) *uint64 { return &c.JoinCuts }},
	FaultJoinHole:  {"black hole in a join", func(c *Counts) *uint64 { return &c.JoinHoles }},
	FaultLost:      {"lost path", func(c *Counts) *uint64 { return &c.LostPaths }},
	FaultCrash:     {"crash", func(c *Counts) *uint64 { return &c.Crashes }},
	FaultBug:       {"bug in an endpoint", func(c *Counts) *uint64 { return &c.Bugs }},
	FaultJump:      {"clock jump", func(c *Counts) *uint64 { return &c.Jumps }},
	FaultStuck:     {"stuck bytes", func(c *Counts) *uint64 { return &c.Stuck }},
	FaultHalfFrame: {"half a frame", func(c *Counts) *uint64 { return &c.HalfFrames }},
	FaultSleep:     {"sleep of minutes", func(c *Counts) *uint64 { return &c.Sleeps }},
	FaultReplay:    {"replayed hello", func(c *Counts) *uint64 { return &c.Replays }},
}

// String is the name in stories and tables.
func (k FaultKind) String() string {
	if k >= faultKinds {
		return fmt.Sprintf("fault kind %d", uint8(k))
	}
	return faults[k].name
}

// Of is how many faults of the kind are counted.
func (k FaultKind) Of(c *Counts) uint64 { return *faults[k].count(c) }

// fault tells whether a fault may happen now, and if so counts it and begins its part of the story. Everything that goes
// wrong in a world asks here first, and nothing is changed where the answer is no: so a run with fewer of them is
// the same one up to the last that it had.
func (w *World) fault(kind FaultKind) bool {
	limit := w.opt.MaxFaults
	if limit < 0 || limit > 0 && w.Count.Faults >= uint64(limit) {
		return false
	}
	w.Count.Faults++
	*faults[kind].count(&w.Count)++
	w.note("fault %d: %s", w.Count.Faults, kind)
	return true
}

// startFaults has each kind of fault come at its own pace until the world is calm.
func (w *World) startFaults() {
	f := &w.opt.Faults
	w.often(f.Reset, w.reset)
	w.often(f.HalfReset, w.halfReset)
	w.often(f.Hole, w.hole)
	w.often(f.OneWay, w.oneWay)
	w.often(f.Slow, w.slow)
	w.often(f.Freeze, w.freeze)
	w.often(f.Broken, w.breakTransport)
	w.often(f.Alarm, w.alarm)
	w.often(f.Stuck, w.stick)
	w.often(f.HalfFrame, w.tear)
	w.often(f.Sleep, w.sleep)
	w.often(f.Replay, w.replay)
	if w.opt.Ending == Peace { // the endings are about a session that lives until then
		w.often(f.Crash, w.crash)
		w.often(f.Bug, w.bug)
		w.often(f.Jump, w.jump)
	}
}

func (w *World) often(every time.Duration, fn func()) {
	if every == 0 {
		return
	}
	w.After(w.between(every/10, 2*every), "fault", func() {
		if w.calm {
			return
		}
		fn()
		w.often(every, fn)
	})
}

func (w *World) anyPath() *Path {
	p := w.pairs[w.number(0, len(w.pairs)-1)]
	return p.paths[w.number(0, len(p.paths)-1)]
}

func (w *World) anyNode() *Node { return w.nodes[w.number(0, len(w.nodes)-1)] }

// anyCarrier gives one end's live transport of some rail; nil: it has none now.
func (w *World) anyCarrier() *carrier {
	ends := w.ends()
	if len(ends) == 0 {
		return nil
	}
	e := ends[w.number(0, len(ends)-1)]
	return e.rails[w.number(0, len(e.rails)-1)].carrier
}

// joinStep may cut a connection that is being joined, soon, or swallow what it carries one way.
func (w *World) joinStep(c *conn) {
	if w.calm {
		return
	}
	if w.opt.JoinHole > 0 && w.chance(w.opt.JoinHole) && w.fault(FaultJoinHole) {
		dirs := [2]bool{}
		dirs[w.number(0, 1)] = true
		w.swallow(c.path, dirs, w.between(time.Millisecond, w.opt.Faults.HoleFor))
	}
	if !w.chance(w.opt.JoinCut) {
		return
	}
	w.After(w.between(0, 4*w.opt.MaxDelay+4*w.opt.Turn), "join-cut", func() {
		if w.fault(FaultJoinCut) {
			c.cut([2]bool{w.chance(0.7), w.chance(0.7)})
		}
	})
}

// reset ends a path's connections.
func (w *World) reset() {
	if w.fault(FaultReset) {
		w.resetPath(w.anyPath(), [2]bool{true, true})
	}
}

// halfReset is a reset of which only one end hears.
func (w *World) halfReset() {
	if w.fault(FaultHalfReset) {
		heard := w.number(0, 1)
		w.resetPath(w.anyPath(), [2]bool{heard == 0, heard == 1})
	}
}

func (w *World) resetPath(p *Path, heard [2]bool) {
	w.note("path %s: reset (heard: %v)", p.name, heard)
	for _, c := range append([]*conn(nil), p.live...) {
		c.cut(heard)
	}
}

// hole makes some path a black hole for a while.
func (w *World) hole() {
	if w.fault(FaultHole) {
		w.swallow(w.anyPath(), [2]bool{true, true}, w.between(time.Millisecond, w.opt.Faults.HoleFor))
	}
}

func (w *World) oneWay() {
	if w.fault(FaultOneWay) {
		i := w.number(0, 1)
		w.swallow(w.anyPath(), [2]bool{i == 0, i == 1}, w.between(time.Millisecond, w.opt.Faults.HoleFor))
	}
}

// swallow has what is sent over a path go nowhere, in the given directions, until it heals; then it comes out.
func (w *World) swallow(p *Path, dirs [2]bool, length time.Duration) {
	w.note("path %s: black hole %v for %s", p.name, dirs, length)
	for i := range p.dir {
		if dirs[i] {
			p.dir[i].block()
		}
	}
	w.After(length, "heal", func() {
		if w.calm {
			return
		}
		for i := range p.dir {
			if dirs[i] && !p.asleep {
				p.dir[i].heal()
			}
		}
		w.note("path %s: healed", p.name)
	})
}

// slow makes a path many times slower for a while.
func (w *World) slow() {
	if !w.fault(FaultSlow) {
		return
	}
	p := w.anyPath()
	times := float64(w.number(2, 30))
	w.note("path %s: %g times slower", p.name, times)
	for i := range p.dir {
		p.dir[i].slow = times
	}
	w.After(w.between(10*time.Millisecond, 500*time.Millisecond), "fast", func() {
		for i := range p.dir {
			p.dir[i].slow = 1
		}
	})
}

// freeze stops a node's process for a while, as a debugger or a full machine does.
func (w *World) freeze() {
	n := w.anyNode()
	if n.dead || !w.fault(FaultFreeze) {
		return
	}
	length := w.between(time.Millisecond, w.opt.Faults.FreezeFor)
	w.note("node %d is stopped for %s", n.id, length)
	n.thaw = max(n.thaw, w.now+length)
}

// breakTransport has a transport fail for a reason of its own.
func (w *World) breakTransport() {
	if c := w.anyCarrier(); c != nil && w.fault(FaultBroken) {
		c.e.node.soon("broken", func() { c.lost(errBroken) })
	}
}

// alarm has a card say that its carrier is gone, though nothing is wrong.
func (w *World) alarm() {
	if c := w.anyCarrier(); c != nil && w.fault(FaultAlarm) {
		c.e.node.soon("alarm", func() { c.pulse.Accuse(c.e.now()) })
	}
}
