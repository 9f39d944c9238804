package session

import "time"

// This file: which lane takes the next piece of an operation that several lanes could carry.

// takeBulk lets each offered operation give a chunk while the lane has room for it and would not be the last to finish.
//
// What it leaves to another lane is in that lane's way from then on: so a slow lane takes a part of what the fast one would only
// come to later, and goes on being measured.
//
// Invariant: a lane that leaves an operation to another one wakes it, where it has room; one that becomes full wakes those
// that had left something to it. So no operation waits for a lane that has no reason to look.
func (f *filler) takeBulk() {
	g := f.g
	limit := g.lane.bulkLimit()
	took, passed := false, 0
	g.s.forgetPromises()
	for i := 0; i < g.offers.len() && !f.full() && g.bulk < limit && g.chunks < maxChunksOut && passed < maxPassed; {
		o := *g.offers.at(i)
		if !o.unsent() {
			if i > 0 { // only the front can be popped; what is behind waits its turn
				i++
				continue
			}
			g.offers.pop()
			o.off(g)
			continue
		}
		if other := g.sooner(o); other != nil {
			if other.bulk < other.lane.bulkLimit() {
				g.s.wake(other)
			}
			i++
			continue
		}
		switch way, m := f.wayOf(o); way {
		case byFrames:
			f.takeChunk(o, true)
			took = true
		case byPlace:
			f.takePlace(o, m)
			took = true
		case waiting:
			i++
			passed++
		case byNone:
		}
	}
	if took && g.bulk >= limit {
		g.share()
	}
}

// forgetPromises begins a new look at what each lane is left.
func (s *Session) forgetPromises() {
	for _, l := range s.lanes {
		if l != nil && l.current != nil {
			l.current.promised = 0
		}
	}
}

// share wakes the lanes that may take what this one, now full, has left.
func (g *Generation) share() {
	for _, o := range g.offers.all() {
		if !o.unsent() {
			continue
		}
		for _, other := range o.on {
			if other != g && other.Usable() && other.bulk < other.lane.bulkLimit() {
				g.s.wake(other)
			}
		}
		return
	}
}

// bulkLimit is how many bulk bytes may be under way on the lane: a few milliseconds of its rate, so that what is stuck with it
// is little and what is urgent waits briefly.
func (l *Lane) bulkLimit() int {
	cfg := &l.s.cfg
	n := l.Rate * max(20*time.Millisecond, 2*l.MinRoundTrip).Seconds()
	return int(min(max(n, float64(4*cfg.MinChunk)), float64(cfg.LaneBulk)))
}

// chunk is the size of one chunk on the lane: the largest where it is fast, a few milliseconds where it is slow. A lane that
// was never measured may be slow: a chunk that takes longer than the silence limit would be cut off each time.
func (l *Lane) chunk() uint64 {
	cfg := &l.s.cfg
	n := uint64(l.Rate*0.004) &^ 4095
	return min(max(n, uint64(cfg.MinChunk)), uint64(cfg.MaxChunk))
}

// sooner gives another lane that knows of the operation and would be through with all that is left of it, and with what was
// left to it before, when this one were through with one more chunk; nil: there is none. The lane that would be first never
// gives one, so somebody always goes on.
func (g *Generation) sooner(o *Op) *Generation {
	if len(o.on) < 2 {
		return nil
	}
	left := o.left()
	mine := g.lane.finish(min(left, g.lane.chunk()))
	for _, other := range o.on {
		if other != g && other.Usable() && other.lane.finish(other.promised+left) < mine {
			other.promised += left
			return other
		}
	}
	return nil
}

// left is how many bytes wait to be taken.
func (o *Op) left() uint64 {
	n := uint64(len(o.Data)) - o.next
	for _, r := range o.returned {
		n += r.n
	}
	return n
}

// take cuts the next chunk of at most limit bytes off the operation.
func (o *Op) take(limit uint64) span {
	if k := len(o.returned); k > 0 {
		r := &o.returned[k-1]
		p := span{r.at, min(r.n, limit)}
		r.at, r.n = r.at+p.n, r.n-p.n
		if r.n == 0 {
			o.returned = o.returned[:k-1]
		}
		return p
	}
	p := span{o.next, min(uint64(len(o.Data))-o.next, limit)}
	o.next += p.n
	if len(o.Data) == 0 {
		o.zeroSent = true
	}
	return p
}
