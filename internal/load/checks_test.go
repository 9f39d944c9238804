package load

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"railyard/rma"
)

const ms = time.Millisecond

func TestLedgerTellsEachTroubleApart(t *testing.T) {
	for name, c := range map[string]struct {
		in   []uint64
		want Ledger
		last Arrival
	}{
		"in order":         {[]uint64{1, 2, 3}, Ledger{Delivered: 3}, InOrder},
		"one missing":      {[]uint64{1, 3}, Ledger{Delivered: 2}, Ahead},
		"the first is not": {[]uint64{2}, Ledger{Delivered: 1}, Ahead},
		"swapped":          {[]uint64{1, 3, 2}, Ledger{Delivered: 3, Reordered: 1}, Reordered},
		"twice":            {[]uint64{1, 1}, Ledger{Delivered: 1, Doubled: 1}, Doubled},
		"late and twice":   {[]uint64{2, 1, 1}, Ledger{Delivered: 2, Reordered: 1, Doubled: 1}, Doubled},
		"number 0":         {[]uint64{0}, Ledger{Doubled: 1}, Doubled},
	} {
		var l Ledger
		var last Arrival
		for _, s := range c.in {
			last = l.Take(s)
		}
		assert.Equal(t, c.last, last, name)
		assert.Equal(t, c.want.Delivered, l.Delivered, name)
		assert.Equal(t, c.want.Doubled, l.Doubled, name)
		assert.Equal(t, c.want.Reordered, l.Reordered, name)
	}
}

func TestLedgerCountsWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.Uint64Range(1, 40)).Draw(t, "sequence")
		var l Ledger
		distinct := map[uint64]bool{}
		for _, s := range in {
			l.Take(s)
			distinct[s] = true
		}
		assert.EqualValues(t, len(distinct), l.Delivered)
		assert.EqualValues(t, len(in)-len(distinct), l.Doubled)
	})
}

func TestLedgerIsBounded(t *testing.T) {
	var l Ledger
	l.Take(1 << 40)
	assert.LessOrEqual(t, len(l.missing), maxMissing)
}

func TestGapsFindTheWorst(t *testing.T) {
	var g Gaps
	g.Wait("put 1", 100*ms)
	g.Progress("put 1", 400*ms) // 300 ms, the last 200 of them behind the cut at 200
	g.Beat("pair 0", 190*ms)
	g.Beat("pair 0", 195*ms)
	g.Beat("pair 0", 450*ms)
	g.Wait("put 2", 460*ms)

	assert.Equal(t, Span{"pair 0", 200 * ms, 450 * ms}, g.Worst(200*ms, 500*ms, 500*ms))
	assert.Equal(t, 200*ms, g.Worst(300*ms, 460*ms, 650*ms).Length(), "one that is still open counts until now")
	g.Progress("pair 0", 451*ms)
	assert.Equal(t, Span{"put 2", 460 * ms, 650 * ms}, g.Worst(300*ms, 460*ms, 650*ms))
	assert.Zero(t, g.Worst(50*ms, 90*ms, 500*ms), "before anything stood still")
	g.Progress("nobody", 700*ms)
	g.Rest()
	assert.Zero(t, g.Worst(455*ms, 900*ms, 900*ms))
}

func TestGapsAreBounded(t *testing.T) {
	var g Gaps
	for i := range 3 * maxSpans {
		at := time.Duration(i) * time.Second
		g.Wait("x", at)
		g.Progress("x", at+time.Duration(20+i%7)*ms)
	}
	assert.Len(t, g.spans, maxSpans)
	last := time.Duration(3*maxSpans-1) * time.Second
	assert.Positive(t, g.Worst(last, last+time.Second, last+time.Second).Length(), "the latest are kept")
	assert.Zero(t, g.Worst(0, time.Second, last).Length(), "the oldest are gone")
}

func TestGround(t *testing.T) {
	memory := make([]byte, 200<<10)
	g := NewGround(memory)
	require.Zero(t, g.Sweep())

	data := make([]byte, 5000)
	scribble(data, 1)
	write := func(offset int) { copy(memory[offset:], data) }

	write(100)
	assert.Equal(t, Good, g.Landed(1, 100, 5000, Sum(data)))
	assert.Zero(t, g.Sweep(), "a checked put is painted over")
	assert.Equal(t, Again, g.Landed(1, 100, 5000, Sum(data)))

	write(100)
	assert.Equal(t, 1, g.Sweep(), "written after it had been given back")
	assert.Zero(t, g.Sweep(), "and painted over")

	write(70_000)
	memory[70_123] ^= 1
	assert.Equal(t, Corrupt, g.Landed(2, 70_000, 5000, Sum(data)))
	assert.Equal(t, Corrupt, g.Landed(3, 1<<40, 5000, Sum(data)))
	assert.Equal(t, Corrupt, g.Landed(4, 100, ^uint64(0), Sum(data)))

	g.Begin()
	write(70_000)
	assert.Equal(t, Good, g.TookBack(5, 70_000, 5000))
	assert.Zero(t, g.Sweep())
	assert.Equal(t, Undead, g.Landed(5, 70_000, 5000, Sum(data)))
	write(0)
	assert.Equal(t, Good, g.Landed(6, 0, 5000, Sum(data)))
	assert.Equal(t, Undead, g.TookBack(6, 0, 5000))
	assert.Equal(t, Corrupt, g.TookBack(7, 1<<40, 1))

	memory[10], memory[199<<10] = 0, 0
	assert.Equal(t, 2, g.Sweep())
}

// Random bytes hold guard bytes by chance: one late put is one place, whatever it looks like.
func TestOneLatePutIsOnePlace(t *testing.T) {
	memory := make([]byte, 64<<10)
	g := NewGround(memory)
	for seed := range uint64(50) {
		scribble(memory[1000:9000], seed)
		assert.Equal(t, 1, g.Sweep())
	}
}

func keyOf(region uint64) rma.Key {
	return rma.NewKey(rma.KeyConfig{Region: region, Len: 1 << 20, Rights: rma.RemoteWrite})
}

func TestLayoutFillsHandsBackAndStartsAgain(t *testing.T) {
	l := NewLayout(2, 1000)
	_, _, ok := l.Take(10)
	require.False(t, ok, "nothing is known yet")
	require.True(t, l.Introduce(0, 1, keyOf(7)))
	require.True(t, l.Introduce(1, 1, keyOf(8)))
	require.False(t, l.Introduce(1, 1, keyOf(8)), "old news")
	require.False(t, l.Introduce(2, 1, keyOf(9)), "no such slot")

	a, full, ok := l.Take(600)
	require.True(t, ok)
	require.Nil(t, full)
	assert.EqualValues(t, 0, a.Offset)
	b, _, ok := l.Take(100)
	require.True(t, ok)
	assert.EqualValues(t, 640, b.Offset, "64 bytes apart")
	assert.Equal(t, a.Slot, b.Slot)

	c, full, ok := l.Take(500)
	require.True(t, ok)
	require.Nil(t, full, "two puts are still under way in it")
	assert.NotEqual(t, a.Slot, c.Slot)

	require.Nil(t, l.Settle(a.Slot, a.Life))
	full = l.Settle(b.Slot, b.Life)
	require.NotNil(t, full)
	assert.Equal(t, a.Slot, full.Slot)
	require.Nil(t, l.Settle(b.Slot, b.Life), "once")

	require.Nil(t, l.Settle(c.Slot, c.Life))
	_, full, ok = l.Take(900)
	require.False(t, ok, "both are being watched")
	require.NotNil(t, full, "the second one had come to rest before it was full")
	assert.Equal(t, c.Slot, full.Slot)

	require.True(t, l.Introduce(a.Slot, 2, keyOf(7)))
	d, _, ok := l.Take(900)
	require.True(t, ok)
	assert.EqualValues(t, 2, d.Life)
	require.Nil(t, l.Settle(a.Slot, 1), "an earlier life is nobody's business")
}

func TestLayoutAbandons(t *testing.T) {
	l := NewLayout(2, 1000)
	l.Introduce(0, 1, keyOf(1))
	l.Introduce(1, 1, keyOf(2))
	a, _, _ := l.Take(100)
	require.False(t, l.Abandon(a.Slot, 9))
	require.True(t, l.Abandon(a.Slot, a.Life))
	require.False(t, l.Abandon(a.Slot, a.Life), "once")
	b, _, ok := l.Take(100)
	require.True(t, ok)
	assert.NotEqual(t, a.Slot, b.Slot)
	require.Nil(t, l.Settle(a.Slot, a.Life), "an abandoned slot is not handed back")
	key, ok := l.Known(int(a.Slot))
	require.True(t, ok)
	assert.Equal(t, a.Key, key)
	_, ok = NewLayout(2, 1000).Known(1)
	require.False(t, ok)
}

// newTable gives regions with a fixed source of tokens.
func newTable() *rma.Table {
	return rma.NewTable(rand.NewChaCha8([32]byte{9}), 1000)
}

func newTestTarget(t *testing.T, slots, size int) (*Target, [][]byte) {
	t.Helper()
	table := newTable()
	var memory [][]byte
	for range slots {
		memory = append(memory, make([]byte, size))
	}
	target, err := NewTarget(memory, time.Second, func(b []byte) (*rma.Region, error) {
		return table.Register(b, rma.RemoteWrite)
	})
	require.NoError(t, err)
	return target, memory
}

func TestTargetsSlotLivesAgainAfterAWatch(t *testing.T) {
	target, memory := newTestTarget(t, 2, 4096)
	data := make([]byte, 1000)
	scribble(data, 3)
	copy(memory[0], data)
	answer := target.Landed(&Landed{Put: 1, Slot: 0, Life: 1, Length: 1000, Sum: Sum(data)})
	assert.False(t, answer.Void)
	target.Full(&Full{Slot: 0, Life: 1}, 5*time.Second)

	plots, err := target.Due(5900 * ms)
	require.NoError(t, err)
	require.Empty(t, plots)
	memory[0][7] = 1                   // too late for a put
	memory[0][len(memory[0])-1] = 0xFF // but this part is free
	plots, err = target.Due(6 * time.Second)
	require.NoError(t, err)
	require.Len(t, plots, 1)
	assert.EqualValues(t, 2, plots[0].Life)
	assert.EqualValues(t, 1, target.LateWrites)
	assert.Zero(t, target.Corrupted)

	assert.True(t, target.Landed(&Landed{Put: 1, Slot: 0, Life: 1, Length: 1000}).Void)
	memory[1][7] = 1
	target.Finish()
	assert.EqualValues(t, 2, target.LateWrites)
}

func TestTargetRevokesAndRegistersAnew(t *testing.T) {
	target, memory := newTestTarget(t, 1, 4096)
	before, err := target.Plots()
	require.NoError(t, err)
	require.NoError(t, target.Revoke(&Revoke{Slot: 0, Life: 1}, 0))
	require.NoError(t, target.Revoke(&Revoke{Slot: 0, Life: 1}, 0), "twice is once")
	assert.True(t, target.slots[0].region.Revoked())
	memory[0][9] = 1
	plots, err := target.Due(time.Second)
	require.NoError(t, err)
	require.Len(t, plots, 1)
	assert.NotEqual(t, before.Plots[0].Key, plots[0].Key)
	assert.EqualValues(t, 1, target.LateWrites)
	assert.False(t, target.slots[0].region.Revoked())
}

func TestTargetNotesWhatIsWrong(t *testing.T) {
	target, memory := newTestTarget(t, 1, 4096)
	target.Landed(&Landed{Put: 1, Slot: 0, Life: 1, Length: 100, Sum: 1})
	target.TookBack(&TookBack{Put: 1, Slot: 0, Life: 1, Length: 100})
	target.Landed(&Landed{Put: 2, Slot: 5, Life: 1})
	sum := Sum(memory[0][:10])
	target.Landed(&Landed{Put: 3, Slot: 0, Life: 1, Length: 10, Sum: sum})
	target.Landed(&Landed{Put: 3, Slot: 0, Life: 1, Length: 10, Sum: sum})
	assert.EqualValues(t, 3, target.Corrupted)
	assert.EqualValues(t, 1, target.Doubled)
	assert.Len(t, target.Notes, 4)
	for range 100 {
		target.Landed(&Landed{Put: 3, Slot: 9})
	}
	assert.Len(t, target.Notes, maxNotes)
}

func TestTargetRefusesTinyMemory(t *testing.T) {
	_, err := NewTarget([][]byte{make([]byte, Scratch)}, time.Second, nil)
	require.ErrorContains(t, err, "too small")
	_, err = NewTarget([][]byte{make([]byte, 100)}, time.Second, func([]byte) (*rma.Region, error) {
		return nil, os.ErrPermission
	})
	require.ErrorIs(t, err, os.ErrPermission)
}

func TestBrokenNamesEachPromise(t *testing.T) {
	good := Counters{Sent: 10, Delivered: 10, Puts: 6, Completed: 3, Canceled: 2, Revoked: 1, Checked: 3}
	require.Empty(t, good.Broken())
	for word, harm := range map[string]func(*Counters){
		"lost":            func(c *Counters) { c.Delivered-- },
		"invented":        func(c *Counters) { c.Delivered++ },
		"doubled":         func(c *Counters) { c.Doubled++ },
		"reordered":       func(c *Counters) { c.Reordered++ },
		"corrupted":       func(c *Counters) { c.Corrupted++ },
		"late_writes":     func(c *Counters) { c.LateWrites++ },
		"endpoint_errors": func(c *Counters) { c.EndpointErrors++ },
		"puts":            func(c *Counters) { c.Puts++ },
		"notify":          func(c *Counters) { c.Checked-- },
		"load":            func(c *Counters) { *c = Counters{} },
	} {
		c := good
		harm(&c)
		broken := c.Broken()
		if assert.Len(t, broken, 1, word) {
			assert.Contains(t, broken[0], word+":")
		}
	}
	sum := good.Add(good)
	assert.EqualValues(t, 20, sum.Sent)
	assert.EqualValues(t, 2, sum.Revoked)
	assert.Empty(t, sum.Broken())
}
