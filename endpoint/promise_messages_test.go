package endpoint

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rail"
)

// trouble does to the cables whatever a seed says.
type trouble struct {
	cables []cable
	rnd    *rand.Rand
	resets int
	holes  int
}

// run makes trouble for a time, and heals everything.
func (tr *trouble) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		w := tr.cables[tr.rnd.IntN(len(tr.cables))]
		tr.one(w)
		if tr.rnd.IntN(4) > 0 { // else the next fault finds this one still there
			w.Heal()
		}
		tr.sleep(5, 80)
	}
	for _, w := range tr.cables {
		w.Heal()
	}
}

func (tr *trouble) one(w cable) {
	switch tr.rnd.IntN(8) {
	case 0, 1, 2:
		tr.resets++
		w.Reset()
	case 3:
		tr.holes++
		w.BlackHole(bothWays)
		tr.sleep(50, 500)
	case 4:
		tr.holes++
		w.BlackHole([]way{forth, back}[tr.rnd.IntN(2)])
		tr.sleep(50, 500)
	case 5:
		w.Cut()
		tr.resets++
		tr.sleep(10, 200)
	case 6: // flap
		for range 2 + tr.rnd.IntN(5) {
			w.Reset()
			tr.resets++
			tr.sleep(1, 40)
		}
	case 7: // a slow spell
		w.Slow(bothWays, 4<<20)
		tr.sleep(50, 300)
	}
}

// sleep lets a random number of milliseconds go by: the time between faults is part of what a seed chooses.
func (tr *trouble) sleep(least, most int) {
	time.Sleep(time.Duration(least+tr.rnd.IntN(most-least)) * time.Millisecond)
}

// P1: messages arrive exactly once and in order, both ways, whatever the rails do.
func TestPromise1MessagesExactlyOnceInOrder(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{rails: 3})
		there := startTalk(t, bd.a, bd.b, talkSpec{targets: 5, seed: rnd.Uint64()})
		back := startTalk(t, bd.b, bd.a, talkSpec{targets: 5, seed: rnd.Uint64()})
		tr := &trouble{cables: bd.cables, rnd: rnd}
		tr.run(time.Duration(sized(3, 60)) * time.Second)
		there.finish()
		back.finish()
		bd.nobodyDown()
		require.Greater(t, len(bd.a.events.of(rail.RailDown)), sized(0, 20), "the trouble broke something")
		require.Greater(t, there.total(), uint64(100))
		t.Logf("%d and %d messages, %d resets, %d black holes, %d rails down", there.total(), back.total(), tr.resets, tr.holes,
			len(bd.a.events.of(rail.RailDown)))
		bd.allUp()
	})
}
