package endpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
)

// Sizes of the storm.
const (
	stormRound = 32
	// stormWatch is how long nothing may land after the last operation of a round was taken back.
	stormWatch = 2 * time.Second
	// stormLimit is when those of a round that have not come far enough are taken back all the same.
	stormLimit = 20 * time.Second
	// stormRate, in bytes a second and rail, makes a put last long enough to be taken back in its middle.
	stormRate = 192 << 20
)

// storm takes back many large puts while they are under way, and uses their memory at once for something else.
type storm struct {
	t   testing.TB
	bd  *bed
	rnd *rand.Rand
	// source and target memory of each put of a round; the next round uses the same.
	source, target [stormRound][]byte
	size           int
	number         uint64

	mu                   sync.Mutex
	none, partial, whole int
	canceled, revoked    int
}

// victim is one put of a round.
type victim struct {
	source, target []byte
	region         *rma.Region
	op             *rma.Op
	word           uint64 // what it carries
	revoke         bool
	after          int // of peeks samples: so many let land before it is taken back
	reused         [peeks]bool
}

// P3 and P4: what was canceled or revoked in the middle never lands in memory that is used again, costs no rail and no
// endpoint, and disturbs nothing else.
func TestPromise3And4TakenBackInFlight(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{rails: 2, both: func(c *Config) {
			// Here a rail that breaks is a failure.
			c.Health = patientHealth
		}})
		for _, c := range bd.cables {
			c.Slow(forth, stormRate)
		}
		s := &storm{t: t, bd: bd, rnd: rnd, size: 4 << 20}
		all := sized(100, 1000)
		if raced && !full { // fresh memory is very slow then
			s.size, all = 1<<20, 2*stormRound
		}
		for i := range stormRound {
			s.source[i], s.target[i] = make([]byte, s.size), make([]byte, s.size)
			fill(s.target[i], 1)
		}
		generations := bd.generations()
		// So small that they go ahead of the bulk.
		small := startPuts(t, bd.ab, bd.b, putSpec{workers: 2, largest: 2 << 10, pause: time.Millisecond, seed: rnd.Uint64()})
		there := startTalk(t, bd.a, bd.b, talkSpec{targets: 2, pause: time.Millisecond, large: 64 << 10, seed: rnd.Uint64()})
		back := startTalk(t, bd.b, bd.a, talkSpec{targets: 2, pause: time.Millisecond, large: 64 << 10, seed: rnd.Uint64()})

		// On a busy machine more of them end before they are taken back: then it takes more of them.
		inPart := all * 30 / 100
		for done := 0; done < 5*all && (done < all || s.partial < inPart); {
			n := min(max(all-done, inPart-s.partial), stormRound)
			s.round(n)
			done += n
			if t.Failed() {
				return
			}
		}
		t.Logf("taken back: %d by cancel, %d by revoke; landed: %d not at all, %d in part, %d whole; %d small puts, %d messages",
			s.canceled, s.revoked, s.none, s.partial, s.whole, small.finish(), there.total())
		there.finish()
		back.finish()
		require.GreaterOrEqual(t, s.partial, inPart, "puts that were taken back in their middle")
		require.Equal(t, generations, bd.generations(), "generations of the rails")
		require.Empty(t, bd.a.events.of(rail.RailDown))
		bd.nobodyDown()
	})
}

func (s *storm) round(n int) {
	victims := make([]*victim, n)
	for i := range victims {
		s.number++
		v := &victim{source: s.source[i], target: s.target[i], revoke: s.rnd.IntN(2) == 0,
			word: hash(fmt.Sprint("victim", s.number)), after: 1 + s.rnd.IntN(peeks*9/10)}
		fill(v.source, v.word)
		region, err := s.bd.b.Regions().Register(v.target, rma.RemoteWrite)
		require.NoError(s.t, err)
		v.region = region
		victims[i] = v
	}
	for _, v := range victims {
		v.op = s.bd.ab.StartPut(v.region.Key(), 0, v.source)
	}
	var work sync.WaitGroup
	waiting := append([]*victim(nil), victims...)
	for end := time.Now().Add(stormLimit); len(waiting) > 0; time.Sleep(100 * time.Microsecond) {
		late := time.Now().After(end)
		waiting = slices.DeleteFunc(waiting, func(v *victim) bool {
			due := late || v.op.Finished() || v.peek() >= v.after
			if due {
				work.Go(func() { s.takeBack(v) })
			}
			return due
		})
	}
	work.Wait()
	time.Sleep(stormWatch)
	for i, v := range victims {
		if at := foreign(v.target, ^v.word); at >= 0 {
			s.t.Errorf("put %d of the round (revoked: %v): byte %d landed after it was taken back", i, v.revoke, at)
		}
		require.NoError(s.t, v.region.Revoke())
	}
}

// peeks is how many places of its target a victim is looked at, to see how far it has landed.
const peeks = 64

// peek counts the places that have landed. It looks at memory that is being written to: that is not for the race detector,
// and a wrong answer does no harm.
//
//go:norace
func (v *victim) peek() int {
	n := 0
	for k := range peeks {
		i := k * (len(v.target) / peeks)
		if *(*uint64)(unsafe.Pointer(&v.target[i])) == v.word+uint64(i) {
			n++
		}
	}
	return n
}

// takeBack cancels or revokes, and writes over the memory at both ends as soon as it is free.
func (s *storm) takeBack(v *victim) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	if v.revoke {
		if err := v.region.Revoke(); err != nil {
			s.t.Error(err)
		}
		v.reuse()
		s.count(v)
		fill(v.target, ^v.word)
		if err := v.op.Wait(ctx); err != nil && outcome(s.t, err) != "revoked" {
			s.t.Errorf("a revoked put ended with %v", err)
		}
		fill(v.source, ^v.word<<1)
		return
	}
	if err := v.op.Cancel(ctx); err != nil {
		s.t.Errorf("cancel: %v", err)
	}
	fill(v.source, ^v.word<<1)
	v.reuse()
	s.count(v)
	if err := v.op.Err(); err != nil && outcome(s.t, err) != "canceled" {
		s.t.Errorf("a canceled put ended with %v", err)
	}
	fill(v.target, ^v.word)
}

// reuse writes over the places where a chunk was landing: what a call still in progress would write there comes after.
func (v *victim) reuse() {
	piece := len(v.target) / peeks
	var landed [peeks]bool
	for k := range landed {
		i := k * piece
		landed[k] = binary.LittleEndian.Uint64(v.target[i:]) == v.word+uint64(i)
	}
	for k := range landed {
		if landed[k] && (k+1 == peeks || !landed[k+1]) {
			v.reused[k] = true
			for i := k*piece + 8; i < (k+1)*piece; i += 8 {
				binary.LittleEndian.PutUint64(v.target[i:], ^v.word+uint64(i))
			}
		}
	}
}

// count looks at how much had landed.
func (s *storm) count(v *victim) {
	landed := 0
	for i := 0; i < len(v.target); i += 8 {
		reused := v.reused[i/(len(v.target)/peeks)] && i%(len(v.target)/peeks) != 0
		if reused || binary.LittleEndian.Uint64(v.target[i:]) == v.word+uint64(i) {
			landed += 8
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case landed == 0:
		s.none++
	case landed == len(v.target):
		s.whole++
	default:
		s.partial++
	}
	if v.revoke {
		s.revoked++
	} else {
		s.canceled++
	}
	if v.op.Finished() && v.op.Err() == nil && landed != len(v.target) {
		s.t.Errorf("a put that went well has only %d of %d bytes in place", landed, len(v.target))
	}
}
