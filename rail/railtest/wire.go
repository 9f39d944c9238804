package railtest

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Direction says which way of a Wire a fault is for.
type Direction uint8

const (
	// Both directions.
	Both Direction = iota
	// Forth is from the first host that Network.Wire was given to the second.
	Forth
	// Back is from the second to the first.
	Back
)

// Wire is the cable between two hosts as one of them sees it. Faults hold for the connections that are there and for
// those to come, until Heal.
type Wire struct {
	*cable
	flipped bool
}

// ways gives the cable's own indices for a direction.
func (w Wire) ways(d Direction) []int {
	forth := 0
	if w.flipped {
		forth = 1
	}
	switch d {
	case Forth:
		return []int{forth}
	case Back:
		return []int{1 - forth}
	case Both:
	}
	return []int{0, 1}
}

// Stall keeps all bytes in the network until Heal, when they arrive as if a kernel had gone on retransmitting. Resets
// still get through. Dials wait.
func (w Wire) Stall(d Direction) {
	w.change(w.ways(d), func(f *faults) { f.stalled = true })
}

// BlackHole is Stall, and resets are kept back as well: neither end can tell.
func (w Wire) BlackHole(d Direction) {
	w.change(w.ways(d), func(f *faults) { f.stalled, f.hidden = true, true })
}

// Slow limits the bytes per second of a direction, for all connections together. 0: no limit.
func (w Wire) Slow(d Direction, bytesPerSecond int) {
	w.change(w.ways(d), func(f *faults) { f.rate = bytesPerSecond })
}

// Delay makes bytes written from now on, and resets, arrive that much later.
func (w Wire) Delay(d Direction, delay time.Duration) {
	w.change(w.ways(d), func(f *faults) { f.delay = delay })
}

// Zombie makes the bytes of connections that are killed from now on go on to arrive at the peer, followed by the end
// of the stream, as a kernel does whose process died without resetting. It outlasts Heal.
func (w Wire) Zombie(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.zombie = on
}

// RefuseDials makes dials fail at once; connections that are there live on.
func (w Wire) RefuseDials() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dials = syscall.ECONNREFUSED
}

// Reset ends all connections at both ends; what was in flight is lost. New ones may be made at once.
func (w Wire) Reset() { w.cut(syscall.ECONNRESET, nil) }

// Cut is Reset by a pulled cable: until Heal dials fail at once, too.
func (w Wire) Cut() { w.cut(syscall.ENETDOWN, syscall.EHOSTUNREACH) }

// cable is what all views of a Wire share.
//
// Owner: mu guards all fields here and in the flows of the pairs.
type cable struct {
	mu     sync.Mutex
	way    [2]faults // from the lesser host to the greater, and back
	zombie bool
	dials  error // what a dial gets; nil: it is let through
	pairs  []*pair
	mended chan struct{} // closed and replaced when a stall may have ended
}

// faults are those of one direction.
type faults struct {
	stalled, hidden bool
	rate            int // bytes a second; 0: no limit
	delay           time.Duration
	// busy is until when the bytes accepted so far occupy a slow wire.
	busy time.Time
}

func (c *cable) change(ways []int, edit func(*faults)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, way := range ways {
		edit(&c.way[way])
	}
}

func (c *cable) cut(ends, dials error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dials = dials
	for _, p := range c.pairs {
		for _, f := range p.flows {
			f.lose()
			f.fail(ends, ends)
		}
	}
}

// Heal ends all faults. What was kept in the network arrives now, in order, then the resets that were kept back.
func (c *cable) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.way = [2]faults{}
	c.dials = nil
	close(c.mended)
	c.mended = make(chan struct{})
	for _, p := range c.pairs {
		for _, f := range p.flows {
			f.arriveAll()
		}
	}
}

// passable waits until a first packet and its answer would have passed.
func (c *cable) passable(ctx context.Context) error {
	for {
		c.mu.Lock()
		refused, mended := c.dials, c.mended
		stalled := c.way[0].stalled || c.way[1].stalled
		trip := c.way[0].delay + c.way[1].delay
		c.mu.Unlock()
		if refused != nil {
			return refused
		}
		if !stalled {
			return sleep(ctx, trip)
		}
		select {
		case <-mended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forget drops a pair of which both ends are gone. The caller holds mu.
func (c *cable) forget(p *pair) {
	if i := slices.Index(c.pairs, p); i >= 0 {
		c.pairs = slices.Delete(c.pairs, i, i+1)
	}
}
