package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// What a long run may keep in memory: the later half no more than this beside twice what the first half had.
const soakSlack = 64 << 20

// soak plays all profiles in turn, from a seed that nobody has chosen, until the time is over or a world fails.
func soak(s *settings, out, errOut io.Writer) int {
	names := slices.Sorted(maps.Keys(profiles))
	first := rand.Uint64() >> 24 // short enough to be typed again
	fmt.Fprintf(out, "soak: %s under each of %d profiles, from seed %d\n", s.soak, len(names), first)
	begun := time.Now()
	b := &batch{play: Play, until: begun.Add(s.soak), verbose: s.verbose, recipe: func(i uint64) recipe {
		r := s.recipe
		r.profile = names[i%uint64(len(names))]
		r.seed = first + i/uint64(len(names))
		return r
	}}
	heap := &heapWatch{begun: begun, half: s.soak / 2}
	plain := b.play
	b.play = func(opt Options) (*World, *Failure) {
		defer heap.look()
		return plain(opt)
	}
	line := showProgress(errOut, func() string {
		return fmt.Sprintf("%d worlds, %s of %s, heap %d MiB", b.soFar(), time.Since(begun).Round(time.Second), s.soak, heap.now()>>20)
	})
	sum, failed := b.run()
	line.stop()
	if failed != nil {
		return s.report(failed, out)
	}
	sum.print(out, time.Since(begun))
	early, late := heap.most()
	fmt.Fprintf(out, "\nlive heap: at most %d MiB in the first half of the time, %d MiB in the second\n", early>>20, late>>20)
	if late > 2*early+soakSlack {
		fmt.Fprintln(out, "memory does not stay flat: something in the simulator or the session keeps what is over")
		return codeViolated
	}
	return codeHeld
}

// heapWatch looks at the live heap now and then.
type heapWatch struct {
	begun time.Time
	half  time.Duration

	mu     sync.Mutex
	looked time.Time
	last   uint64
	halves [2]uint64 // the most in each half of the time
}

// look measures, at most once a second.
func (h *heapWatch) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) < time.Second {
		return
	}
	h.looked = time.Now()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.last = m.HeapAlloc
	which := 0
	if time.Since(h.begun) > h.half {
		which = 1
	}
	h.halves[which] = max(h.halves[which], h.last)
}

func (h *heapWatch) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

func (h *heapWatch) most() (early, late uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.halves[0], h.halves[1]
}
