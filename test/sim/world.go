package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// World is one simulated run.
type World struct {
	opt   Options
	now   time.Duration
	queue events
	seq   uint64
	rnd   *rand.Rand
	trace uint64 // hash over every event and every note
	steps uint64
	story story

	nodes   []*Node // the newest incarnation of each
	pairs   []*Pair
	all     []*End     // that ever were, in the order in which they began
	calm    bool       // no more faults, and no more new work
	records []recorded // what a stranger has heard
	Count   Counts
	ended   func() bool // asked from time to time where it is set: yes ends the world without a verdict
}

// Counts is what happened in a world, or in many.
type Counts struct {
	Seeds, Steps                              uint64
	Messages, Large, System                   uint64
	Puts, Gets, Flushes, Fenced, Notified     uint64
	Good, Canceled, Revoked, Refused, Unknown uint64
	Over                                      uint64
	Cancels, Revokes, Abandons, WindowFull    uint64
	// Faults is how many of all kinds there were; each kind has its own below (faults.go).
	Faults                             uint64
	Resets, HalfResets, Holes, OneWays uint64
	Slows, Freezes, Broken, Alarms     uint64
	Crashes, Bugs, Jumps, Replays      uint64
	Stuck, HalfFrames, Sleeps, Wakeups uint64
	JoinCuts, JoinHoles, LostPaths     uint64
	Joins, Kills, Retires, Suspects    uint64
	ReroutedFrames, ReroutedBytes      uint64
	Agreed, Restarts, Outages          uint64
	Bytes                              uint64
	// Of paths whose cards write: places posted, regions registered, writes refused by the peer's card for want of a registration,
	// those that nobody acknowledged, and packets that came to a queue pair that was no more.
	Places, Maps, AccessErrors, Retries, CardRefusals uint64
}

// violation is how a checker or a broken promise ends a run.
type violation struct{ checker, text string }

// Failure is a run that ended badly.
type Failure struct {
	Seed  uint64
	At    time.Duration
	Text  string
	Story []string
	// Checker is the function that saw it, Stack that of a panic which was no checker's: one of them is empty.
	Checker, Stack string
}

// Error names the seed and the promise.
func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d at %s: %s", f.Seed, f.At, f.Text)
}

// maxSteps bounds a run: more means that something goes round in circles.
const maxSteps = 20_000_000

// outOfTime sees a world that was ended from outside.
const outOfTime = "out of time"

// event is something that happens later.
type event struct {
	at  time.Duration
	seq uint64
	tag string
	// node: it is done by this node's process, if that is alive and running; nil: by the network, a kernel or the world.
	node *Node
	fn   func()
}

// events is a heap by time, then by the order in which they were asked for.
type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || (q[i].at == q[j].at && q[i].seq < q[j].seq)
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	last := len(old) - 1
	e := old[last]
	old[last] = event{}
	*q = old[:last]
	return e
}

// NewWorld makes the world that the options describe.
func NewWorld(opt Options) *World {
	if opt.Ending != Peace { // the endings are about a session that lives until then
		opt.OutageLimit = outageLimit
	}
	w := &World{opt: opt, rnd: rand.New(rand.NewPCG(opt.Seed, 0x9e3779b97f4a7c15)), trace: 14695981039346656037}
	w.story.verbose, w.story.whole = opt.Verbose, opt.Verbose
	return w
}

// After has fn run when d of virtual time has gone by. The tag names the event in the trace.
func (w *World) After(d time.Duration, tag string, fn func()) {
	w.push(event{at: w.now + max(d, 0), tag: tag, fn: fn})
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.queue, e)
}

// ends gives the endpoints in use, in a fixed order.
func (w *World) ends() []*End {
	var list []*End
	for _, n := range w.nodes {
		for _, p := range n.peers {
			if p != nil && p.end != nil && !n.dead {
				list = append(list, p.end)
			}
		}
	}
	return list
}

// Run lets the world go on until time end, or until done says so after an event. It reports whether done did.
func (w *World) Run(end time.Duration, done func() bool) bool {
	for len(w.queue) > 0 && w.queue[0].at <= end {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		if n := e.node; n != nil {
			if n.dead {
				continue
			}
			if n.thaw > w.now {
				e.at = n.thaw
				w.push(e)
				continue
			}
		}
		w.steps++
		w.hash(uint64(e.at))
		w.hashText(e.tag)
		e.fn()
		if w.steps > maxSteps {
			w.violate("more than %d events: the world goes round in circles", maxSteps)
		}
		if w.ended != nil && w.steps%4096 == 0 && w.ended() {
			panic(violation{outOfTime, "nobody waits for this world any more"})
		}
		if done != nil && w.steps%64 == 0 && done() {
			return true
		}
	}
	w.now = max(w.now, end)
	return done != nil && done()
}

func (w *World) hash(v uint64) {
	for range 8 {
		w.trace = (w.trace ^ v&0xff) * 1099511628211
		v >>= 8
	}
}

func (w *World) hashText(s string) {
	for i := range len(s) {
		w.trace = (w.trace ^ uint64(s[i])) * 1099511628211
	}
}

// violate ends the run: a promise is broken, as its caller has seen.
func (w *World) violate(format string, args ...any) {
	checker := "unknown"
	if pc, _, _, ok := runtime.Caller(1); ok {
		checker = strings.TrimPrefix(runtime.FuncForPC(pc).Name(), "main.")
	}
	panic(violation{checker, fmt.Sprintf(format, args...)})
}

// chance is true with probability p.
func (w *World) chance(p float64) bool { return w.rnd.Float64() < p }

// between gives a time from lo to hi.
func (w *World) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(w.rnd.Int64N(int64(hi-lo+1)))
}

// number gives an int from lo to hi.
func (w *World) number(lo, hi int) int {
	if hi <= lo {
		return lo
	}
	return lo + w.rnd.IntN(hi-lo+1)
}

// Play runs the world of the options to its end. Nil: every promise held.
func Play(opt Options) (*World, *Failure) { return playWith(opt, nil) }

// playWith lets prepare have the world before it begins.
func playWith(opt Options, prepare func(*World)) (w *World, failure *Failure) {
	w = NewWorld(opt)
	if prepare != nil {
		prepare(w)
	}
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		failure = &Failure{Seed: opt.Seed, At: w.now, Story: w.story.all()}
		if v, ok := r.(violation); ok {
			failure.Checker, failure.Text = v.checker, v.text
		} else {
			failure.Text = fmt.Sprintf("panic: %v", r)
			failure.Stack = string(debug.Stack())
		}
	}()
	w.play()
	w.Count.Seeds, w.Count.Steps = 1, w.steps
	return w, nil
}
