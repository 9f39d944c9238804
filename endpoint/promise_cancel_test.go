package endpoint

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
)

// soon bounds what must need no network: generous, as the machine may be busy.
const soon = 5 * time.Second

// within runs f and fails the test where it takes too long.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	require.Less(t, time.Since(begin), limit, what)
}

// stuck begins a large put and makes the network swallow it once it is under way.
func stuck(bd *bed, cut func(c cable)) (*rma.Op, *rma.Region, []byte) {
	region := bd.b.register(bd.t, 16<<20, rma.RemoteWrite)
	source := make([]byte, 16<<20)
	fill(source, 7)
	fill(region.Bytes(), 1)
	for _, c := range bd.cables {
		c.Slow(forth, 16<<20)
	}
	before := bd.back().Stats().BytesIn
	op := bd.ab.StartPut(region.Key(), 0, source)
	eventually(bd.t, "the put is under way", func() (bool, any) {
		n := bd.back().Stats().BytesIn - before
		return n > 1<<20, n
	})
	for _, c := range bd.cables {
		cut(c)
	}
	return op, region, source
}

var outages = []struct {
	name string
	cut  func(c cable)
}{
	{"black-holed", func(c cable) { c.BlackHole(bothWays) }},
	{"cut", func(c cable) { c.Cut() }},
}

// P3: where the peer cannot be asked, Cancel frees the source at its deadline and says that the outcome is unknown.
func TestPromise3CancelWithoutAnyRail(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		for _, outage := range outages {
			t.Run(outage.name, func(t *testing.T) {
				bd := newBed(t, kind, bedSpec{})
				op, region, source := stuck(bd, outage.cut)
				ctx, done := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer done()
				within(t, soon, "Cancel ends at its deadline", func() {
					require.ErrorIs(t, op.Cancel(ctx), rma.ErrOutcomeUnknown)
				})
				require.True(t, op.Finished())
				require.ErrorIs(t, op.Err(), rma.ErrOutcomeUnknown)
				fill(source, 99) // the source is free

				bd.heal()
				bd.allUp()
				ctx, done = context.WithTimeout(context.Background(), patience)
				defer done()
				require.NoError(t, bd.ab.Put(ctx, region.Key(), 0, []byte{1}))
				require.NoError(t, bd.ab.Flush(ctx))
				require.NoError(t, region.Revoke()) // until here some of the put may still have landed
				old, blank := 0, 0
				for i := 8; i < len(region.Bytes()); i += 8 {
					switch word := binary.LittleEndian.Uint64(region.Bytes()[i:]) - uint64(i); word {
					case 7:
						old++
					case 1:
						blank++
					default:
						require.FailNow(t, "the source's new bytes were sent", "at %d: %x", i, word)
					}
				}
				require.NotZero(t, old)
				require.NotZero(t, blank)
				bd.nobodyDown()
			})
		}
	})
}

// P3: a put that no lane has taken yet is taken back at once, without any rail.
func TestPromise3CancelBeforeTheFirstByte(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{})
		region := bd.b.register(t, 1<<20, rma.RemoteWrite)
		for _, c := range bd.cables {
			c.Cut()
		}
		eventually(t, "all rails are lost", func() (bool, any) {
			bd.ab.mu.Lock()
			defer bd.ab.mu.Unlock()
			return bd.ab.s.Silent(), nil
		})
		op := bd.ab.StartPut(region.Key(), 0, make([]byte, 1<<20))
		within(t, soon, "Cancel needs no network", func() {
			require.NoError(t, op.Cancel(context.Background()))
		})
		require.ErrorIs(t, op.Err(), rma.ErrCanceled)
	})
}

// P3: a put whose own context ends is canceled within Config.CancelWait.
func TestPromise3ContextEndsWithoutAnyRail(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		bd := newBed(t, kind, bedSpec{a: func(c *Config) { c.CancelWait = 50 * time.Millisecond }})
		region := bd.b.register(t, 1<<20, rma.RemoteWrite)
		for _, c := range bd.cables {
			c.BlackHole(bothWays)
		}
		ctx, done := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer done()
		within(t, soon, "Put ends at its deadline", func() {
			err := bd.ab.Put(ctx, region.Key(), 0, make([]byte, 1<<20))
			require.ErrorIs(t, err, rma.ErrOutcomeUnknown)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

// P4: Revoke is local. It waits for no peer, and what the network still holds never lands.
func TestPromise4RevokeWithoutAnyRail(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		for _, outage := range outages {
			t.Run(outage.name, func(t *testing.T) {
				bd := newBed(t, kind, bedSpec{})
				op, region, source := stuck(bd, outage.cut)
				within(t, soon, "Revoke is local", func() { require.NoError(t, region.Revoke()) })
				fill(region.Bytes(), 42)
				require.False(t, op.Finished())
				bd.heal()
				ctx, done := context.WithTimeout(context.Background(), patience)
				defer done()
				require.ErrorIs(t, op.Wait(ctx), rma.ErrRevoked)
				fill(source, 99)
				bd.allUp()
				require.NoError(t, bd.ab.Flush(ctx))
				require.Equal(t, -1, foreign(region.Bytes(), 42))
				bd.nobodyDown()
			})
		}
	})
}
