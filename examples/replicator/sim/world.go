package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"railyard/examples/replicator/replica"
)

// world is one simulated run.
type world struct {
	options
	now   time.Duration
	queue events
	count uint64
	rnd   *rand.Rand
	trace uint64
	story []string

	nodes   []*node // by name
	names   []replica.Name
	links   map[[2]int]*link // lower index first
	roster  replica.Roster
	truth   map[replica.Position]replica.Record // what each epoch's primary has sequenced
	began   map[uint64]replica.Name             // who wrote in an epoch
	clients []*client
	hist    map[uint64]*blockHistory // by block
	ops     uint64
	calm    bool // nothing breaks any more
	tally   tally
}

// tally is what happened, so that a run can be seen to have had something in it.
type tally struct {
	Seeds, Acked, Reads, Unknown, Crashes, Freezes, Cuts, Epochs, Fills, Revoked, Late, Dropped, Wiped, Withdrawn, Repaired, Loaded uint64
}

func (t *tally) add(o tally) {
	for i, p := range t.fields() {
		*p += *o.fields()[i]
	}
}

func (t *tally) fields() []*uint64 {
	return []*uint64{&t.Seeds, &t.Acked, &t.Reads, &t.Unknown, &t.Crashes, &t.Freezes, &t.Cuts, &t.Epochs, &t.Fills, &t.Revoked,
		&t.Late, &t.Dropped, &t.Wiped, &t.Withdrawn, &t.Repaired, &t.Loaded}
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// violation is a broken promise.
type violation struct{ text string }

func (w *world) violate(format string, args ...any) { panic(violation{fmt.Sprintf(format, args...)}) }

const maxStory = 4000

func (w *world) note(format string, args ...any) {
	if len(w.story) >= maxStory {
		w.story = w.story[maxStory/2:]
	}
	w.story = append(w.story, fmt.Sprintf("%8.1fms  ", float64(w.now)/1e6)+fmt.Sprintf(format, args...))
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.queue, event{w.now + d, w.count, do})
}

// run lets the world go on until time end, or until done says so.
func (w *world) run(end time.Duration, done func() bool) bool {
	for n := 0; len(w.queue) > 0 && w.queue[0].at <= end; n++ {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.trace = (w.trace ^ uint64(e.at)) * 1099511628211
		e.do()
		if done != nil && n%16 == 0 && done() {
			return true
		}
	}
	w.now = max(w.now, end)
	return done != nil && done()
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// upTo gives a time from 0 to d, mostly short.
func (w *world) upTo(d time.Duration) time.Duration {
	f := w.rnd.Float64()
	return time.Duration(f * f * float64(d))
}

// every does something at random times, mean apart, until all is calm.
func (w *world) every(mean time.Duration, do func()) {
	if mean == 0 {
		return
	}
	w.after(time.Duration(w.rnd.ExpFloat64()*float64(mean)), func() {
		if !w.calm {
			do()
			w.every(mean, do)
		}
	})
}

func newWorld(o options) *world {
	w := &world{options: o, rnd: rand.New(rand.NewPCG(o.seed, 2)), trace: 14695981039346656037, links: make(map[[2]int]*link),
		truth: make(map[replica.Position]replica.Record), began: make(map[uint64]replica.Name), hist: make(map[uint64]*blockHistory)}
	for i := range o.members {
		w.names = append(w.names, replica.Name(fmt.Sprintf("n%d", i)))
	}
	w.roster, _ = replica.Found(w.names)
	for i := range o.members {
		w.nodes = append(w.nodes, &node{w: w, index: i, name: w.names[i], rate: 0.98 + 0.04*w.rnd.Float64(),
			store: newStore(o.extents), regions: make(map[replica.Stream]*region)})
		for j := range i {
			w.links[[2]int{j, i}] = &link{}
		}
	}
	for i := range o.clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// failure is a world that went wrong.
type failure struct {
	seed  uint64
	text  string
	story []string
}

// play plays a seed to its end. Nil: everything held.
func play(o options) (w *world, failed *failure) {
	w = newWorld(o)
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(violation)
			if !ok {
				panic(r)
			}
			failed = &failure{o.seed, v.text, w.story}
		}
	}()
	w.begin()
	w.run(o.faults, nil)
	w.end()
	w.tally.Seeds = 1
	return w, nil
}
