package main

import (
	"fmt"
	"slices"
	"time"
)

// entry is a read or a write of one block. Written values are all different; 0 is there from the beginning.
type entry struct {
	value      uint64
	write      bool
	begun, end time.Duration
	ended      bool // it was answered
	never      bool // it did not happen
}

type blockHistory struct{ entries []*entry }

func (w *world) history(block uint64) *blockHistory {
	if w.hist[block] == nil {
		w.hist[block] = &blockHistory{}
	}
	return w.hist[block]
}

func (h *blockHistory) wrote(value uint64, now time.Duration) *entry {
	e := &entry{value: value, write: true, begun: now}
	h.entries = append(h.entries, e)
	return e
}

func (h *blockHistory) reads(now time.Duration) *entry {
	e := &entry{begun: now}
	h.entries = append(h.entries, e)
	return e
}

// zone is a write with the reads that saw it: some order exists exactly if zones do not get in each other's way (Gibbons and Korach).
type zone struct {
	value    uint64
	write    *entry
	from, to time.Duration // the first end of one of them, the last beginning
	seen     bool
}

// forward: everything of the zone's value lies at least from its first end to its last beginning.
func (z *zone) forward() bool { return z.from < z.to }

const forever = time.Duration(1<<63 - 1)

// order tells why the history has no order; "": it has one.
func (h *blockHistory) order() string {
	zones := map[uint64]*zone{0: {write: &entry{write: true, ended: true, begun: -1, end: -1}, from: -1, to: -1}}
	values := []uint64{0}
	for _, e := range h.entries {
		if e.write && !e.never {
			end := forever
			if e.ended {
				end = e.end
			}
			zones[e.value] = &zone{value: e.value, write: e, from: end, to: e.begun, seen: e.ended}
			values = append(values, e.value)
		}
	}
	zones[0].seen = true
	for _, e := range h.entries {
		if e.write || !e.ended {
			continue
		}
		z := zones[e.value]
		if z == nil {
			return fmt.Sprintf("a read from %v to %v saw %d, which was not written", e.begun, e.end, e.value)
		}
		if e.end < z.write.begun {
			return fmt.Sprintf("a read that ended at %v saw %d, whose write began at %v", e.end, e.value, z.write.begun)
		}
		z.from, z.to, z.seen = min(z.from, e.end), max(z.to, e.begun), true
	}
	var all []*zone
	for _, v := range values {
		if zones[v].seen {
			all = append(all, zones[v])
		}
	}
	return clash(all)
}

// clash finds two zones that cannot both be: two forward ones that overlap, or one backward that lies within a forward one.
func clash(all []*zone) string {
	slices.SortStableFunc(all, func(a, b *zone) int { return int(min(a.from, a.to) - min(b.from, b.to)) })
	var open *zone // the forward zone that reaches furthest
	for _, z := range all {
		lo, hi := min(z.from, z.to), max(z.from, z.to)
		if open != nil && lo < open.to && (z.forward() || hi < open.to) {
			return fmt.Sprintf("%d is there from %v to %v, and %d (forward: %v) from %v to %v",
				open.value, open.from, open.to, z.value, z.forward(), lo, hi)
		}
		if z.forward() && (open == nil || z.to > open.to) {
			open = z
		}
	}
	return ""
}
