package supervision

import "time"

const (
	// MaxRecent is how many of a rail's failures are remembered.
	MaxRecent = 64
	// RecentSpan is how far back flaps count.
	RecentSpan = time.Minute
)

// History is a rail's past as a policy sees it, the failure that is being judged included.
type History struct {
	// Failures counts failures in a row without a healthy spell between them, this one included: 1
	// right after a healthy spell, and for a rail's very first failure.
	Failures int
	// UpAt is when the rail last came up; EverUp is false where it never did.
	UpAt   time.Duration
	EverUp bool
	// Lived is how long the life lasted that this failure ended; 0 where the failure is of an
	// attempt.
	Lived time.Duration
	// Healthy tells whether that life was a healthy spell: no shorter than the probation that it
	// began with.
	Healthy bool
	// Recent are the newest failures, oldest first, MaxRecent at most, whatever their age.
	Recent []Lapse
	// Flaps counts the lives among Recent that were lost within the last RecentSpan, this one
	// included.
	Flaps int
	// Reachable tells whether the peer is up on another rail. The rail fills it in.
	Reachable bool
}

// Lapse is one failure of the past.
type Lapse struct {
	At    time.Duration
	Class Class
	// Lived is how long the life had lasted that it ended; WasUp is false where it ended none.
	Lived time.Duration
	WasUp bool
}

// Within counts the failures of a class in the span before now.
func (h History) Within(class Class, span, now time.Duration) int {
	n := 0
	for _, lapse := range h.Recent {
		if lapse.Class == class && now-lapse.At <= span {
			n++
		}
	}
	return n
}

// Record keeps the history of one rail. Its zero value is that of a new rail.
//
// Owner: the rail actor.
//
// Invariant: len(recent) <= MaxRecent; up is true from Up to the next Failed.
type Record struct {
	failures int
	up       bool
	everUp   bool
	upAt     time.Duration
	recent   []Lapse
}

// Up notes that a generation is connected. The history that it gives is for Probation.
func (r *Record) Up(now time.Duration) History {
	r.up, r.everUp, r.upAt = true, true, now
	return r.history(now)
}

// Failed notes a failure, and gives the history by which it is to be judged.
func (r *Record) Failed(f Failure, now time.Duration) History {
	lapse := Lapse{At: now, Class: f.Class, WasUp: r.up}
	if r.up {
		lapse.Lived = max(0, now-r.upAt)
	}
	// The probation is the one that this life began with.
	healthy := r.up && lapse.Lived >= Probation(r.history(r.upAt))
	if healthy {
		r.failures = 0
	}
	r.failures++
	r.up = false
	if len(r.recent) == MaxRecent {
		copy(r.recent, r.recent[1:])
		r.recent = r.recent[:MaxRecent-1]
	}
	r.recent = append(r.recent, lapse)
	h := r.history(now)
	h.Lived, h.Healthy = lapse.Lived, healthy
	return h
}

// history is a copy: a policy may keep it.
func (r *Record) history(now time.Duration) History {
	h := History{
		Failures: r.failures,
		UpAt:     r.upAt,
		EverUp:   r.everUp,
		Recent:   append([]Lapse(nil), r.recent...),
	}
	for _, lapse := range r.recent {
		if lapse.WasUp && now-lapse.At <= RecentSpan {
			h.Flaps++
		}
	}
	return h
}
