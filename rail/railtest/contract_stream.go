package railtest

import (
	"bytes"
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
)

var handshakeTests = []contractTest{
	{"both ends read and write", testHandshake},
	{"a deadline ends a read", testDeadline},
	{"a deadline does not outlast the handshake", testDeadlineLifted},
	{"nothing is read ahead of Run", testNoReadAhead},
	{"the stream refuses plain calls after Run", testPlainCallsRefused},
}

var streamTests = []contractTest{
	{"random plans, both ways", testRandomPlans},
	{"many writers, one token", testToken},
	{"WriteNow hands over when there is no room", testWriteNowFull},
	{"more vectors and bytes than one call carries", testLargePlan},
	{"few allocations", testAllocations},
	{"unacknowledged bytes are counted", testUnacked},
}

var regionTests = []contractTest{
	{"no byte lands after Revoke", testRevoke},
	{"a plan whose region is revoked before the read", testRevokedPlan},
	{"a revoked source goes as zeros", testRevokedSource},
}

func testHandshake(t *testing.T, f Fixture) {
	near, far := f.connect(t)
	for _, c := range []rail.Conn{near, far} {
		assert.NotEmpty(t, c.LocalAddr())
		assert.NotEmpty(t, c.RemoteAddr())
	}
	assert.Equal(t, near.RemoteAddr(), far.LocalAddr())
	assert.Equal(t, near.LocalAddr(), far.RemoteAddr())
	hello := make([]byte, 5)
	for _, way := range []struct{ from, to rail.Conn }{{near, far}, {far, near}} {
		_, err := way.from.Write([]byte("hello"))
		require.NoError(t, err)
		_, err = io.ReadFull(way.to, hello)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(hello))
	}
}

func testDeadline(t *testing.T, f Fixture) {
	near, _ := f.connect(t)
	require.NoError(t, near.SetDeadline(time.Now().Add(-time.Second)))
	_, err := near.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, near.SetDeadline(time.Time{}))
	failed := make(chan error, 1)
	go func() {
		_, err := near.Read(make([]byte, 1))
		failed <- err
	}()
	// Whether the read has begun or not, the deadline ends it.
	require.NoError(t, near.SetDeadline(time.Now().Add(10*time.Millisecond)))
	select {
	case err := <-failed:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(patience):
		require.FailNow(t, "the deadline did not end the read")
	}
}

func testDeadlineLifted(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	deadline := time.Now().Add(50 * time.Millisecond)
	require.NoError(t, p.near.SetDeadline(deadline))
	require.NoError(t, p.far.SetDeadline(deadline))
	p.run()
	time.Sleep(time.Until(deadline) + time.Millisecond)
	p.nearLink.produce(p.near, 1000, false)
	p.farLink.produce(p.far, 1000, true)
	receive(t, p.farLink, 1000)
	receive(t, p.nearLink, 1000)
	p.settle(t, 0, 0)
}

func testNoReadAhead(t *testing.T, f Fixture) {
	near, far := f.connect(t)
	link, end := newStreamLink(linkConfig{send: 1, expect: 2}), newEnding()
	stream := make([]byte, 5+10000)
	copy(stream, "hello")
	newPattern(2).fill(stream[5:], 0)
	wrote := make(chan error, 1)
	go func() {
		_, err := near.Write(stream)
		wrote <- err
	}()
	_, err := io.ReadFull(far, make([]byte, 5))
	require.NoError(t, err)
	far.Run(link, end.lost)
	receive(t, link, 10000)
	require.NoError(t, <-wrote)
	closeSoon(t, far)
	assert.Empty(t, link.all())
	assert.Zero(t, end.calls.Load())
}

func testPlainCallsRefused(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.run()
	_, err := p.near.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = p.near.Write(make([]byte, 1))
	require.Error(t, err)
	require.Error(t, p.near.SetDeadline(time.Now().Add(-time.Second)))
	p.farLink.produce(p.far, 1000, false)
	receive(t, p.nearLink, 1000)
	p.settle(t, 0, 0)
}

func testRandomPlans(t *testing.T, f Fixture) {
	const total = 8 << 20
	for seed := range uint64(4) {
		// From plans of a few bytes to plans above what one call reads.
		chunk := 64 << (5 * seed)
		amount := min(total, chunk<<12)
		t.Run("chunk "+strconv.Itoa(chunk), func(t *testing.T) {
			p := f.connectPeers(t, linkConfig{send: 2 * seed, expect: 2*seed + 1, chunk: chunk})
			p.run()
			together(2, func(i int) {
				link, conn := p.nearLink, p.near
				if i == 1 {
					link, conn = p.farLink, p.far
				}
				rng := mathrand.New(mathrand.NewPCG(seed, uint64(i)))
				for left := amount; left > 0; {
					n := min(left, 1+rng.IntN(2*chunk))
					left -= n
					link.produce(conn, n, rng.IntN(2) == 0)
				}
			})
			receive(t, p.nearLink, uint64(amount))
			receive(t, p.farLink, uint64(amount))
			p.settle(t, 0, 0)
			assert.Equal(t, uint64(amount), p.nearLink.received.Load())
			assert.Equal(t, uint64(amount), p.farLink.received.Load())
		})
	}
}

func testToken(t *testing.T, f Fixture) {
	const writers, rounds, size = 8, 2000, 33
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: 4096})
	p.run()
	together(writers, func(i int) {
		for round := range rounds {
			p.nearLink.produce(p.near, size, (i+round)%3 != 0)
		}
	})
	receive(t, p.farLink, writers*rounds*size)
	p.settle(t, 0, 0)
}

// testWriteNowFull writes inline to a peer that does not read yet: WriteNow must return, and the rest must follow.
func testWriteNowFull(t *testing.T, f Fixture) {
	const total = 16 << 20
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2, plain: true})
	p.near.Run(p.nearLink, p.nearEnd.lost)
	soon(t, "WriteNow", func() { p.nearLink.produce(p.near, total, true) })
	p.far.Run(p.farLink, p.farEnd.lost)
	receive(t, p.farLink, total)
	p.settle(t, 0, 0)
}

func testLargePlan(t *testing.T, f Fixture) {
	near, far := f.connect(t)
	want := make([]byte, 5<<20)
	newPattern(7).fill(want, 0)
	var pieces []piece
	rest := want
	for range 3000 { // more vectors than a call takes, then more bytes
		pieces = append(pieces, piece{buf: rest[:100]})
		rest = rest[100:]
	}
	pieces = append(pieces, piece{buf: rest})
	from, to := newScriptLink(pieces...), newScriptLink()
	near.Run(from, newEnding().lost)
	far.Run(to, newEnding().lost)
	near.Kick()
	receiveScript(t, to, len(want))
	assert.True(t, bytes.Equal(want, to.bytes()))
}

// receiveScript waits until a scriptLink has read n bytes.
func receiveScript(t *testing.T, l *scriptLink, n int) {
	t.Helper()
	limit := time.After(patience)
	for l.length() < n {
		select {
		case <-l.progress:
		case <-limit:
			require.FailNowf(t, "the stream stopped", "%d of %d bytes", l.length(), n)
		}
	}
}

func testAllocations(t *testing.T, f Fixture) {
	const total, step = 64 << 20, 1 << 20
	perMiB := f.Allocations
	if perMiB == 0 {
		perMiB = 8
	}
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: step, plain: true})
	p.run()
	p.nearLink.produce(p.near, step, false) // what is made once
	receive(t, p.farLink, step)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range total / step {
		p.nearLink.produce(p.near, step, false)
	}
	receive(t, p.farLink, step+total)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.Mallocs-before.Mallocs, uint64(perMiB)*total>>20, "allocations for %d MiB", total>>20)
	p.settle(t, 0, 0)
}

func testUnacked(t *testing.T, f Fixture) {
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2, plain: true})
	p.near.Run(p.nearLink, p.nearEnd.lost)
	if _, known := p.near.Unacked(); !known {
		return // this kind cannot tell, and says so
	}
	const total = 1 << 20
	p.nearLink.produce(p.near, total, false)
	p.far.Run(p.farLink, p.farEnd.lost)
	receive(t, p.farLink, total)
	require.Eventually(t, func() bool {
		n, ok := p.near.Unacked()
		return ok && n == 0
	}, patience, time.Millisecond, "all bytes have arrived")
	p.settle(t, 0, 0)
}

// testRevoke takes the memory back again and again in mid-stream, and uses it for something else at once. Each round
// the stream must go on in step, and the memory must stay as its new user left it.
func testRevoke(t *testing.T, f Fixture) {
	const rounds, regionSize = 30, 256 << 10
	table := rma.NewTable(rand.Reader, rounds)
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2, chunk: 64 << 10})
	p.run()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for total := uint64(0); ; total += 64 << 10 {
			select {
			case <-stop:
				return
			default:
			}
			p.nearLink.produce(p.near, 64<<10, false)
			for total > p.farLink.received.Load()+(4<<20) { // no further ahead than a few buffers
				runtime.Gosched()
				select {
				case <-stop:
					return
				default:
				}
			}
		}
	}()
	reused := bytes.Repeat([]byte{0xEE}, regionSize)
	memories := make([][]byte, rounds)
	for round := range rounds {
		memories[round] = make([]byte, regionSize)
		region, err := table.Register(memories[round], rma.RemoteWrite)
		require.NoError(t, err)
		p.farLink.region.Store(region)
		landed := p.farLink.inRegion.Load()
		receive(t, p.farLink, p.farLink.received.Load()+(128<<10))
		require.NoError(t, region.Revoke())
		copy(memories[round], reused)
		assert.Greater(t, p.farLink.inRegion.Load(), landed, "the round proves nothing")
	}
	receive(t, p.farLink, p.farLink.received.Load()+(1<<20))
	close(stop)
	<-stopped
	p.settle(t, 0, 0)
	for round, memory := range memories {
		assert.True(t, bytes.Equal(reused, memory), "bytes landed in memory that was revoked in round %d", round)
	}
}

// lateRevoke revokes a region when a plan into it has been made, which is the last moment at which the memory is free.
type lateRevoke struct {
	*streamLink
	plans int
}

func (l *lateRevoke) Want(s *rma.Scatter) error {
	err := l.streamLink.Want(s)
	if s.Region != nil {
		l.plans++
		_ = s.Region.Revoke()
	}
	return err
}

func testRevokedPlan(t *testing.T, f Fixture) {
	const total = 1 << 20
	memory := make([]byte, 64<<10)
	region, err := rma.NewTable(rand.Reader, 1).Register(memory, rma.RemoteWrite)
	require.NoError(t, err)
	p := f.connectPeers(t, linkConfig{send: 1, expect: 2})
	p.farLink.region.Store(region)
	late := &lateRevoke{streamLink: p.farLink}
	p.nearLink.produce(p.near, total, false)
	p.near.Run(p.nearLink, p.nearEnd.lost)
	p.far.Run(late, p.farEnd.lost)
	receive(t, p.farLink, total)
	p.settle(t, 0, 0)
	assert.Equal(t, 1, late.plans)
	assert.Zero(t, p.farLink.inRegion.Load())
	assert.True(t, bytes.Equal(make([]byte, len(memory)), memory), "bytes landed in revoked memory")
}

func testRevokedSource(t *testing.T, f Fixture) {
	near, far := f.connect(t)
	table := rma.NewTable(rand.Reader, 2)
	alive, dead := bytes.Repeat([]byte{1}, 1000), bytes.Repeat([]byte{2}, 1000)
	kept, err := table.Register(alive, rma.RemoteRead)
	require.NoError(t, err)
	revoked, err := table.Register(dead, rma.RemoteRead)
	require.NoError(t, err)
	require.NoError(t, revoked.Revoke())
	from, to := newScriptLink(piece{alive, kept}, piece{dead, revoked}, piece{[]byte("end"), nil}), newScriptLink()
	near.Run(from, newEnding().lost)
	far.Run(to, newEnding().lost)
	near.Kick()
	receiveScript(t, to, 2003)
	want := append(append(bytes.Repeat([]byte{1}, 1000), make([]byte, 1000)...), "end"...)
	assert.Equal(t, want, to.bytes())
	require.NoError(t, kept.Revoke(), "the lease was given back")
}
