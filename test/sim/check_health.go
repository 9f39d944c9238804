package main

import (
	"errors"
	"time"

	"railyard/rail"
)

// healthCheck knows what really lies between the two ends of a connection, and holds the health machine to it: a lane that
// brings no answer while it has work is suspected in time, a suspicion ends by an answer alone, and a node that was stopped
// accuses nobody for the time that it missed.
type healthCheck struct {
	c   *carrier
	due time.Duration // when the next look is to come
	// answered and acked are what was answered at the last look; moved is when that was last seen to grow.
	answered time.Duration
	acked    uint64
	moved    time.Duration
	// lates counts looks that came late since then; late is the last of them, calm since when none was late at all.
	lates      int
	late, calm time.Duration
	busy       time.Duration // since when there was work at each look; 0: there is none
	limit      time.Duration // the longest silence limit since both
	suspectAt  time.Duration
}

// The times of the machine that the check relies on: its defaults.
const (
	healthLate   = 50 * time.Millisecond
	healthGlance = 10 * time.Millisecond
	healthFloor  = 120 * time.Millisecond
	healthBeat   = 50 * time.Millisecond
	healthLates  = 5
	healthStall  = 4
)

func newHealthCheck(c *carrier) healthCheck {
	now := c.e.now()
	return healthCheck{c: c, due: now, moved: now, calm: now}
}

// look checks one look of the machine's, at the node's time now.
func (h *healthCheck) look(now time.Duration, v rail.Vitals, a rail.Assessment) {
	lateness := now - h.due
	h.due = a.Next
	if v.Answered > h.answered || v.Acked != h.acked {
		h.answered, h.acked, h.moved, h.lates = max(h.answered, v.Answered), v.Acked, now, 0
		h.limit = 0
	}
	if lateness > healthGlance {
		h.calm = now
	}
	if lateness > healthLate {
		if h.lates++; h.lates <= healthLates {
			h.late = now
		}
	}
	switch {
	case !v.Busy:
		h.busy = 0
	case h.busy == 0:
		h.busy, h.limit = now, 0
	}
	h.limit = max(h.limit, a.Limit)
	if a.Verdict == rail.Unhealthy {
		h.accused(now, a.Cause)
	} else {
		h.trusted(now, v.Heard)
	}
}

// accused: the machine suspects the lane, now or still.
func (h *healthCheck) accused(now time.Duration, cause error) {
	if h.suspectAt != 0 {
		return
	}
	h.suspectAt = now
	var silence *rail.SilenceError
	if !errors.As(cause, &silence) || silence.Symptom == rail.NoCarrier {
		return
	}
	if h.late != 0 && now-h.late < healthFloor {
		h.c.e.w.violate("%s suspects rail %d %s after its own process has come late: %v", h.c.e, h.c.r.id, now-h.late, cause)
	}
}

// trusted: the machine does not suspect the lane.
func (h *healthCheck) trusted(now, heard time.Duration) {
	e := h.c.e
	if h.suspectAt != 0 && h.moved < h.suspectAt {
		e.w.violate("%s trusts rail %d again; nothing was answered since the suspicion", e, h.c.r.id)
	}
	h.suspectAt = 0
	since, silent := h.c.r.path.silentSince()
	if !silent || h.busy == 0 {
		return
	}
	since = max(e.node.at(since), h.moved, h.calm, h.busy)
	may := 2*h.limit + 3*healthBeat
	if heard > since { // an answer may wait behind the bytes that come
		may += (healthStall - 1) * h.limit
	}
	if now-since > may {
		e.w.violate("%s trusts rail %d, which has answered nothing for %s; that may last %s", e, h.c.r.id, now-since, may)
	}
}

// witnessed: a generation that was retired for its silence was outlived by another lane, which has been heard since.
func (c *carrier) witnessed(cause error) {
	var silence *rail.SilenceError
	if !errors.As(cause, &silence) {
		return
	}
	for _, other := range c.e.rails {
		if other != c.r && other.heard >= c.health.suspectAt {
			return
		}
	}
	c.e.w.violate("%s retires rail %d for its silence; no other lane has been heard since the suspicion", c.e, c.r.id)
}
