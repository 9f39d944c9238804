package railtest

import (
	"context"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/rail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a story between the hosts a, which dials, and b. Time is that of the bubble: it passes only while
// everybody waits.
func inBubble(t *testing.T, story func(t *testing.T, wire Wire, p *peers)) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(Buffer(10_000))
		f := Fixture{Kind: n.Kind(), Bind: "b:0", Local: "a"}
		p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: 1000, plain: true})
		p.run()
		story(t, n.Wire("a", "b:7"), p)
	})
}

// arrived lets everything happen that can happen now.
func arrived(l *streamLink) uint64 {
	synctest.Wait()
	return l.received.Load()
}

func TestStall(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		p.nearLink.produce(p.near, 100, true)
		assert.EqualValues(t, 100, arrived(p.farLink))
		wire.Stall(Forth)
		p.nearLink.produce(p.near, 200, true)
		p.farLink.produce(p.far, 300, true)
		assert.EqualValues(t, 100, arrived(p.farLink), "kept in the network")
		assert.EqualValues(t, 300, arrived(p.nearLink), "the way back is free")
		unacked, ok := p.near.Unacked()
		require.True(t, ok)
		assert.Equal(t, 200, unacked)
		time.Sleep(time.Hour)
		assert.EqualValues(t, 100, arrived(p.farLink), "for as long as it takes")
		wire.Heal()
		assert.EqualValues(t, 300, arrived(p.farLink))
		p.settle(t, 0, 0)
	})
}

// A stalled direction holds no more than its buffer: the writer waits.
func TestStallIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Stall(Forth)
		p.nearLink.produce(p.near, 1_000_000, true)
		synctest.Wait()
		unacked, _ := p.near.Unacked()
		assert.Equal(t, 10_000, unacked)
		wire.Heal()
		assert.EqualValues(t, 1_000_000, arrived(p.farLink))
		p.settle(t, 0, 0)
	})
}

func TestStallLetsResetsThrough(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Stall(Both)
		p.nearLink.produce(p.near, 100, true)
		p.near.Kill()
		require.ErrorIs(t, p.farEnd.cause(t), syscall.ECONNRESET)
		wire.Heal()
		assert.Zero(t, arrived(p.farLink), "what was in flight is lost")
		p.settle(t, 0, 1)
	})
}

func TestBlackHoleHidesResets(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.BlackHole(Both)
		p.near.Kill()
		p.farLink.produce(p.far, 100, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Zero(t, p.farEnd.calls.Load(), "nobody can tell")
		wire.Heal()
		require.ErrorIs(t, p.farEnd.cause(t), syscall.ECONNRESET)
		p.settle(t, 0, 1)
	})
}

// The bytes of a killed connection arrive after the heal, behind newer ones that went another way.
func TestZombie(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Zombie(true)
		wire.BlackHole(Forth)
		p.nearLink.produce(p.near, 500, true)
		p.near.Kill()
		time.Sleep(time.Minute)
		assert.Zero(t, arrived(p.farLink))
		assert.Zero(t, p.farEnd.calls.Load())
		wire.Heal()
		require.ErrorIs(t, p.farEnd.cause(t), io.EOF)
		assert.EqualValues(t, 500, arrived(p.farLink), "late bytes")
		p.settle(t, 0, 1)
	})
}

func TestDelay(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Delay(Forth, 40*time.Millisecond)
		p.nearLink.produce(p.near, 100, true)
		time.Sleep(20 * time.Millisecond)
		p.nearLink.produce(p.near, 10, true)
		time.Sleep(20*time.Millisecond - 1)
		assert.Zero(t, arrived(p.farLink))
		time.Sleep(time.Nanosecond)
		assert.EqualValues(t, 100, arrived(p.farLink))
		time.Sleep(20 * time.Millisecond)
		assert.EqualValues(t, 110, arrived(p.farLink))
		p.near.Kill()
		time.Sleep(40*time.Millisecond - 1)
		synctest.Wait()
		assert.Zero(t, p.farEnd.calls.Load(), "a reset takes its time as well")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.EqualValues(t, 1, p.farEnd.calls.Load())
		p.settle(t, 0, 1)
	})
}

func TestSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Slow(Back, 100_000)
		p.farLink.produce(p.far, 200_000, true)
		for second := uint64(1); second <= 2; second++ {
			time.Sleep(time.Second)
			assert.InDelta(t, 100_000*second, arrived(p.nearLink), 2000)
		}
		wire.Slow(Back, 0)
		p.farLink.produce(p.far, 200_000, true)
		time.Sleep(time.Second)
		assert.EqualValues(t, 400_000, arrived(p.nearLink))
		p.settle(t, 0, 0)
	})
}

func TestCut(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Stall(Both)
		p.nearLink.produce(p.near, 100, true)
		wire.Cut()
		require.ErrorIs(t, p.nearEnd.cause(t), syscall.ENETDOWN)
		require.ErrorIs(t, p.farEnd.cause(t), syscall.ENETDOWN)
		wire.Heal()
		assert.Zero(t, arrived(p.farLink), "what was in flight is lost")
		p.settle(t, 1, 1)
	})
}

func TestReset(t *testing.T) {
	inBubble(t, func(t *testing.T, wire Wire, p *peers) {
		wire.Reset()
		require.ErrorIs(t, p.nearEnd.cause(t), syscall.ECONNRESET)
		require.ErrorIs(t, p.farEnd.cause(t), syscall.ECONNRESET)
		p.settle(t, 1, 1)
	})
}

// Faults of one cable leave the others alone, and Back and Forth follow the names, not who dialed.
func TestWiresAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		f := Fixture{Kind: n.Kind(), Bind: "a:0", Local: "c"} // c dials a
		p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
		p.run()
		n.Wire("a", "b").Cut()
		n.Wire("a", "c").Stall(Forth)
		p.nearLink.produce(p.near, 100, true)
		p.farLink.produce(p.far, 100, true)
		assert.EqualValues(t, 100, arrived(p.farLink), "c to a")
		assert.Zero(t, arrived(p.nearLink), "a to c")
		n.Wire("c", "a").Heal()
		assert.EqualValues(t, 100, arrived(p.nearLink))
		p.settle(t, 0, 0)
	})
}

func TestDialsMeetFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		f := Fixture{Kind: n.Kind(), Bind: "b:0", Local: "a"}
		l := f.listen(t)
		wire := n.Wire("a", "b")
		dial := func() (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			c, err := f.Kind.Dial(ctx, "a", l.Addr())
			if err == nil {
				c.Close()
			}
			return time.Since(start), err
		}
		took, err := dial()
		require.NoError(t, err)
		assert.Zero(t, took)

		wire.Delay(Both, 50*time.Millisecond)
		took, err = dial()
		require.NoError(t, err)
		assert.Equal(t, 100*time.Millisecond, took, "one round trip")

		wire.RefuseDials()
		took, err = dial()
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.Zero(t, took)

		wire.Cut()
		_, err = dial()
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)

		wire.Heal()
		wire.BlackHole(Back)
		took, err = dial()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, took)

		time.AfterFunc(time.Millisecond, wire.Heal)
		took, err = dial()
		require.NoError(t, err)
		assert.Equal(t, time.Millisecond, took)
	})
}

// Whoever was never accepted is reset when the listener closes; a full backlog refuses.
func TestBacklog(t *testing.T) {
	n := NewNetwork()
	f := Fixture{Kind: n.Kind(), Bind: "b:0", Local: "a"}
	l := f.listen(t)
	var waiting []rail.Conn
	for range backlog {
		c, err := f.Kind.Dial(t.Context(), "a", l.Addr())
		require.NoError(t, err)
		t.Cleanup(c.Close)
		waiting = append(waiting, c)
	}
	_, err := f.Kind.Dial(t.Context(), "a", l.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, l.Close())
	_, err = waiting[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	cable, _ := n.cable("a", "b")
	for _, c := range waiting {
		c.Close()
	}
	assert.Empty(t, cable.pairs, "connections that are over at both ends are forgotten")
}
