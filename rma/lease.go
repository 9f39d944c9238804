package rma

import (
	"math"
	"sync/atomic"
)

// lease lets many users at a region's memory for one short call each, until it is closed for good.
//
// It is not a sync.RWMutex, because entering must never wait: a plan holds the leases of several
// regions at once, and two plans that each waited for a region whose owner waits for the other plan
// would never end.
//
// Invariant: drained is closed exactly when closed is set and the count of users has reached zero
// since; no enter succeeds after closed is set.
type lease struct {
	// state is the count of users in its low half, and the two flags above.
	state atomic.Uint64
	// drained is closed when the last user has left a closed lease.
	drained chan struct{}
}

const (
	leaseClosed  = 1 << 63
	leaseDrained = 1 << 62
)

func (l *lease) init() { l.drained = make(chan struct{}) }

func (l *lease) closed() bool { return l.state.Load()&leaseClosed != 0 }

// enter is false when the lease is closed; else leave must follow.
func (l *lease) enter() bool {
	// Looking first keeps those who come too late from disturbing those whom close waits for.
	return !l.closed() && l.join()
}

// join counts a user in; one who finds the lease closed goes out again, having counted for a
// moment.
func (l *lease) join() bool {
	if l.state.Add(1)&leaseClosed == 0 {
		return true
	}
	l.leave()
	return false
}

func (l *lease) leave() {
	state := l.state.Add(^uint64(0))
	if uint32(state) == math.MaxUint32 {
		panic("rma: a region's lease was given back more often than taken")
	}
	if state == leaseClosed {
		l.drain()
	}
}

// drain closes drained if nobody is in and nobody else has.
func (l *lease) drain() {
	if l.state.CompareAndSwap(leaseClosed, leaseClosed|leaseDrained) {
		close(l.drained)
	}
}

// close closes the lease and waits for the users that are in. Any number of callers, each of whom
// waits.
func (l *lease) close() {
	if l.state.Or(leaseClosed) == 0 {
		l.drain()
	}
	<-l.drained
}
