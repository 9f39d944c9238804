package cell

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBetween(t *testing.T) {
	s := Spec{Load: Put, Size: 1000}
	before := [2]Mark{{At: 1e9, Now: 1e9, Bytes: 1e6, CPU: 1}, {Now: 5e9, CPU: 10}}
	after := [2]Mark{{At: 2e9, Now: 3e9, Bytes: 5e6, CPU: 1.5, P50: 7, P99: 8}, {Now: 7e9, CPU: 11.5}}
	r, err := between(s, before, after)
	require.NoError(t, err)
	assert.Equal(t, uint64(4e6), r.Bytes)
	assert.InDelta(t, 4, r.MBps, 1e-9, "until the last operation's end, not until the mark")
	assert.InDelta(t, 4000, r.OpsPerS, 1e-9)
	assert.InDelta(t, 7, r.P50, 0)
	assert.InDelta(t, 2.0/(4e6*2)*1e9, r.CPUPerGB, 1e-6, "both ends' CPU, over what two seconds move")

	// Where the driver counts nothing, the server does.
	r, err = between(s, [2]Mark{before[1], before[0]}, [2]Mark{after[1], after[0]})
	require.NoError(t, err)
	assert.InDelta(t, 4, r.MBps, 1e-9)

	_, err = between(s, before, before)
	require.ErrorIs(t, err, ErrNothing)
	s.Beside = 1
	_, err = between(s, before, after)
	require.ErrorIs(t, err, ErrNothing)
	after[0].Beside = 6e6
	r, err = between(s, before, after)
	require.NoError(t, err)
	assert.InDelta(t, 3, r.Beside, 1e-9)
}

func TestRest(t *testing.T) {
	r := rest([2]Mark{{Now: 1e9, CPU: 1}, {Now: 1e9, CPU: 2}}, [2]Mark{{Now: 3e9, CPU: 1.5}, {Now: 5e9, CPU: 3}}, [2]Mark{{Weight: 5}, {Weight: 6}})
	assert.InDelta(t, 0.5, r.Cores, 1e-9)
	assert.InDelta(t, 6, r.Weight, 0)
	assert.InDelta(t, 2, r.Seconds, 1e-9)
}

func TestWeightIsWhatHasCome(t *testing.T) {
	tally := newTally()
	assert.Zero(t, tally.weight(), "nobody asked")
	tally.Weigh(64)
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = 1
	}
	assert.InEpsilon(t, 1<<20, tally.weight(), 0.2)
	runtime.KeepAlive(held)
}

func TestTallyAddsUp(t *testing.T) {
	tally := newTally()
	a, b, exact, beside := tally.Counter(8), tally.Counter(8), tally.Counter(exactFrom), tally.Beside()
	a.Add(1)
	b.Add(2)
	beside.Add(100)
	for range 100 {
		tally.Took(time.Millisecond)
	}
	m := tally.mark()
	assert.Equal(t, uint64(3), m.Bytes)
	assert.Equal(t, uint64(100), m.Beside)
	assert.Equal(t, m.Now, m.At)
	assert.InEpsilon(t, 1000, m.P50, 0.04)
	assert.Zero(t, tally.mark().Times, "times are those since the mark before")

	exact.Add(exactFrom)
	only := newTally()
	counter := only.Counter(exactFrom)
	counter.Add(exactFrom)
	last := counter.last.Load()
	for m = only.mark(); m.Now == last; m = only.mark() {
	}
	assert.Equal(t, last, m.At, "the time of what is large is that of its end")
}

func TestCreditsHoldBack(t *testing.T) {
	c := NewCredits(2)
	c.Take()
	c.Take()
	took := make(chan struct{})
	go func() {
		c.Take()
		close(took)
	}()
	select {
	case <-took:
		t.Fatal("a third message went out of a window of two")
	case <-time.After(10 * time.Millisecond):
	}
	c.Give(1)
	<-took
}

func TestSpecIsWhole(t *testing.T) {
	s := Spec{Size: 3 << 20}
	assert.Equal(t, int64(63<<20), s.Region(), "operations go round in it without a rest")
	assert.Equal(t, int64(1<<30), Spec{Size: 1 << 30}.Region())
	assert.Equal(t, 1, Spec{Window: 4}.AckEach())
	assert.Equal(t, 1024, Spec{Window: 8192}.AckEach())
	assert.Equal(t, "ping 64 B, GOMAXPROCS 1, beside puts of 4 MiB", Spec{Load: Ping, Size: 64, Procs: 1, Beside: 4 << 20}.String())
}

func TestPapersAreGood(t *testing.T) {
	p, err := NewPapers()
	require.NoError(t, err)
	cert, pool, err := p.Pair()
	require.NoError(t, err)
	assert.NotEmpty(t, cert.Certificate)
	assert.NotNil(t, pool)
	p.Authority = nil
	_, _, err = p.Pair()
	require.Error(t, err)
}
