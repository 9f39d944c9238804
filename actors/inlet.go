package actors

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// inlet is what one peer's messages to one actor of ours have taken of the window, until the actor has processed them.
//
// Invariant: count and bytes are the sums over marks; consumed and bytes together are what has come.
type inlet struct {
	in   *inflow
	name string
	// interned: the peer keeps an account of this target, and wants to be told.
	interned bool
	pid      *actor.PID
	// posting counts messages that are noted here and perhaps not in the mailbox yet.
	posting atomic.Int32

	mu sync.Mutex
	// Owner of the rest: mu.
	process  *actor.ActorProcess // nil: nobody yet
	box      mailbox
	marks    []mark // from first on, the oldest first
	first    int
	count    int
	bytes    uint64
	consumed uint64 // in total
	told     uint64
	listed   bool // in inflow.busy
}

// mark stands for messages that came one after the other.
type mark struct {
	count int
	bytes uint64
}

// markSize is how many bytes of small messages are given back together.
const markSize = 4 << 10

// given is what an inlet gives back.
type given struct {
	bytes uint64
	tell  uint64 // not 0: tell the peer this total
}

// take notes a message of that cost that is about to be posted to the actor's mailbox, and gives back what the actor has
// processed meanwhile. False: no actor has the name now, and nothing is noted. After true, posted follows.
func (l *inlet) take(cost uint64) (given, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.process
	if p == nil || toldToStop(p) {
		if p = actorOf(l.in.node.system, l.name); p == nil {
			return given{}, false
		}
	}
	var n uint64
	if l.process == p {
		n = l.settle()
	} else { // another actor has the name
		n = l.drop()
		l.process, l.box = p, mailboxOf(p)
	}
	l.push(cost)
	l.posting.Add(1)
	return l.give(n), true
}

// posted: the message of take is in the mailbox, or never will be.
func (l *inlet) posted() { l.posting.Add(-1) }

func (l *inlet) push(cost uint64) {
	if last := len(l.marks) - 1; last >= l.first && l.marks[last].bytes+cost <= markSize {
		l.marks[last].count++
		l.marks[last].bytes += cost
	} else {
		l.marks = append(l.marks, mark{1, cost})
	}
	l.count++
	l.bytes += cost
	l.in.held.Add(int64(cost))
	if !l.listed {
		l.listed = true
		l.in.list(l)
	}
}

// pass is take and give back at once: nobody queues the message.
func (l *inlet) pass(cost uint64) given {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.give(cost)
}

// look gives back what has been processed by now; idle: there is nothing left to look for.
func (l *inlet) look() (g given, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.settle()
	if l.count > 0 && toldToStop(l.process) {
		// A mailbox may be left as it is when its actor stops.
		if now, _ := l.in.node.system.ProcessRegistry.GetLocal(l.name); now != actor.Process(l.process) {
			n += l.drop()
		}
	}
	l.listed = l.count > 0
	return l.give(n), !l.listed
}

// settle takes out the messages that have been processed: of ours at most as many are left as the mailbox has in all.
func (l *inlet) settle() uint64 {
	if l.count == 0 {
		return 0
	}
	var n uint64
	// In this order: what is not being posted is in the mailbox, or was.
	left := int(l.posting.Load())
	left += l.box.unprocessed()
	for l.count > 0 && l.count-l.marks[l.first].count >= left {
		m := l.marks[l.first]
		l.count -= m.count
		n += m.bytes
		l.first++
	}
	switch {
	case l.first == len(l.marks):
		l.marks, l.first = l.marks[:0], 0
	case l.first >= 1024 && 2*l.first >= len(l.marks):
		l.marks, l.first = l.marks[:copy(l.marks, l.marks[l.first:])], 0
	}
	l.taken(n)
	return n
}

// drop takes all out: the actor is no more.
func (l *inlet) drop() uint64 {
	n := l.bytes
	l.marks, l.first, l.count = l.marks[:0], 0, 0
	l.taken(n)
	return n
}

func (l *inlet) taken(n uint64) {
	if n > 0 {
		l.bytes -= n
		l.in.held.Add(-int64(n))
	}
}

// give counts what goes back to the peer.
func (l *inlet) give(n uint64) given {
	g := given{bytes: n}
	l.consumed += n
	if l.interned && l.consumed-l.told >= l.in.tellEvery {
		l.told, g.tell = l.consumed, l.consumed
	}
	return g
}
