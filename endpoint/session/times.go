package session

import (
	"math/bits"
	"time"
)

// Times counts how long things took.
type Times struct {
	// Buckets[i] holds those of less than 2^i microseconds and at least half of that; the last one holds all that took longer, too.
	Buckets [24]uint64
	// Sum is of all.
	Sum time.Duration
}

// add counts one.
func (t *Times) add(d time.Duration) {
	d = max(d, 0)
	t.Buckets[min(bits.Len64(uint64(d/time.Microsecond)), len(t.Buckets)-1)]++
	t.Sum += d
}

// Add gives both together.
func (t Times) Add(o Times) Times {
	for i, n := range o.Buckets {
		t.Buckets[i] += n
	}
	t.Sum += o.Sum
	return t
}

// time measures one message at a time on each generation, from when it is queued until it is acknowledged: all of them would cost
// more than they tell.
func (g *Generation) time() {
	if g.timed == 0 {
		g.timed, g.timedAt = g.queued, g.s.now
	}
}

// timeAcked ends the measurement once its message is acknowledged.
func (g *Generation) timeAcked() {
	if g.timed != 0 && g.qAcked >= g.timed {
		g.s.stats.MessageTimes.add(g.s.now - g.timedAt)
		g.timed = 0
	}
}

// timeDone counts an operation that has ended well.
func (s *Session) timeDone(o *Op) {
	switch o.Kind {
	case Get:
		s.stats.GetTimes.add(s.now - o.startedAt)
	case Put:
		s.stats.PutTimes.add(s.now - o.startedAt)
	default: // a flush says how long others took
	}
}
