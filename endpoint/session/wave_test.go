package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

func TestWaves(t *testing.T) {
	var w waves
	require.True(t, w.past(w.part()), "nothing was sent")
	a := w.join()
	first := w.part()
	require.False(t, w.past(first))
	require.Equal(t, first, w.part(), "nothing was sent between")
	b := w.join()
	second := w.part()
	require.False(t, w.leave(b), "one before it is under way")
	require.False(t, w.past(first))
	require.True(t, w.leave(a))
	require.True(t, w.past(first))
	require.True(t, w.past(second), "what was sent between has arrived before")
	require.Equal(t, 1, w.open.len())
}

// Whatever the order in which messages arrive, somebody's turn comes exactly when all before have.
func TestWavesInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var w waves
		type turn struct {
			wave uint64
			sent int
		}
		var under []int // messages by their number
		var wave []uint64
		var turns []turn
		for len(wave) < 100 || len(under) > 0 {
			switch {
			case len(wave) < 100 && r.IntN(3) > 0:
				under = append(under, len(wave))
				wave = append(wave, w.join())
			case len(under) > 0 && r.IntN(2) > 0:
				k := r.IntN(len(under))
				w.leave(wave[under[k]])
				under = slices.Delete(under, k, k+1)
			case len(turns) < 50:
				turns = append(turns, turn{w.part(), len(wave)})
			}
			require.LessOrEqual(t, w.open.len(), len(turns)+1)
			require.True(t, len(under) == 0 || *w.open.front() > 0)
			for _, x := range turns {
				open := slices.ContainsFunc(under, func(n int) bool { return n < x.sent })
				require.Equal(t, !open, w.past(x.wave))
			}
		}
	}
}

// A flush, and what is fenced, waits for the messages before it, small or large, and for none behind it.
func TestAFlushWaitsForMessages(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 3 * wire.MaxInline} {
		t.Run(name, func(t *testing.T) {
			p := newTwo(t, newTable())
			s := p.s[0]
			send := func() {
				require.NoError(t, s.Send(p.now, &Message{Target: s.Intern("t"), Type: s.Intern("k"), Payload: make([]byte, size)}))
			}
			send()
			flush := &Op{Kind: Flush}
			s.Start(p.now, flush)
			send()
			require.False(t, flush.done)
			p.settle()
			p.now += time.Second
			p.s[1].Tick(p.now)
			p.settle()
			require.True(t, flush.done)
			require.NoError(t, flush.err)
			s.Start(p.now, &Op{Kind: Flush})
			require.Zero(t, s.OpenOps(), "nothing is under way")
		})
	}
}

// Who begins flushes and gives them up again, while a message does not arrive, is stopped at a bound.
func TestWavesAreBounded(t *testing.T) {
	p := newTwo(t, newTable())
	s := p.s[0]
	s.cfg.MaxOpen = 10
	for range 100 {
		require.NoError(t, s.Send(p.now, &Message{Target: s.Intern("t"), Type: s.Intern("k")}))
		flush := &Op{Kind: Flush}
		s.Start(p.now, flush)
		s.Cancel(p.now, flush)
		require.True(t, flush.done)
	}
	require.Equal(t, 11, s.waves.open.len())
	refused := &Op{Kind: Flush}
	s.Start(p.now, refused)
	require.ErrorIs(t, refused.err, rma.ErrWindowFull)
}

// What will never be sent again holds nobody up.
func TestAMessageThatIsGivenUpHoldsNoFlush(t *testing.T) {
	for name, large := range map[string]*Op{"small": nil, "large": {Kind: LargeMessage, ID: 7, Data: make([]byte, 1<<20), out: 1}} {
		t.Run(name, func(t *testing.T) {
			s := newTwo(t, newTable()).s[0]
			q := queued{target: s.Intern("t"), typ: s.Intern("k"), wave: s.waves.join(), large: large}
			if large != nil {
				large.wave, large.envelope = q.wave, &q
				s.ops[large.ID] = large
				s.addBody(large)
			}
			flush := &Op{Kind: Flush}
			s.Start(0, flush)
			require.False(t, flush.done)
			s.giveUp(&q, ErrProtocol)
			require.True(t, flush.done)
			require.False(t, s.Open(), "it is no work of ours any more")
		})
	}
}
