//go:build guest

package verbs

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests run in the guest that test/rdma boots, where rxe0 and rxe0b are the two ends of one wire. An emulated processor is
// slow, so nothing is asserted about time but that things end.

// patience bounds every wait; only a failure meets it.
const patience = 60 * time.Second

// end is one card of a wire with a queue and memory that the other end may write and read.
type end struct {
	t     *testing.T
	card  *Card
	queue *Queue
	mem   *Memory
	buf   []byte
}

func openEnd(t *testing.T, device string) *end {
	t.Helper()
	port, err := Find(device, 1)
	require.NoError(t, err)
	e := &end{t: t}
	e.card, err = Open(port, 0)
	require.NoError(t, err)
	e.buf, err = syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	e.register()
	e.renew()
	t.Cleanup(func() {
		assert.NoError(t, e.queue.Destroy())
		assert.NoError(t, e.mem.Release())
		assert.NoError(t, e.card.Close())
		assert.Zero(t, e.card.Pinned())
	})
	return e
}

func (e *end) register() {
	var err error
	e.mem, err = e.card.Register(e.buf, RemoteWrite|RemoteRead)
	require.NoError(e.t, err)
}

// renew makes a fresh queue pair.
func (e *end) renew() {
	if e.queue != nil {
		require.NoError(e.t, e.queue.Destroy())
	}
	var err error
	e.queue, err = e.card.NewQueue(64, 4711)
	require.NoError(e.t, err)
}

func wire(t *testing.T) (a, b *end) {
	t.Helper()
	a, b = openEnd(t, "rxe0"), openEnd(t, "rxe0b")
	join(t, a, b)
	return a, b
}

func join(t *testing.T, a, b *end) {
	t.Helper()
	require.NoError(t, a.queue.Connect(b.queue.Local()))
	require.NoError(t, b.queue.Connect(a.queue.Local()))
}

// next waits for one completion.
func (e *end) next() Completion {
	e.t.Helper()
	var done [1]Completion
	n, err := e.queue.Wait(done[:], patience)
	require.NoError(e.t, err)
	require.Equal(e.t, 1, n)
	return done[0]
}

// fails waits for one completion, which is to be a failure of that status.
func (e *end) fails(want Status) {
	e.t.Helper()
	var failed *StatusError
	require.ErrorAs(e.t, e.next().Err, &failed)
	require.Equal(e.t, want, failed.Status, "%v", failed)
}

// to is a request from the start of e's memory to the start of the peer's.
func (e *end) to(peer *end, id uint64, length int) Request {
	return Request{ID: id, Memory: e.mem, Length: length, Address: peer.mem.Address(), Key: peer.mem.Key()}
}

func rails(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("rails", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestGuestSeesItsPorts(t *testing.T) {
	ports, err := Look()
	require.NoError(t, err)
	require.Len(t, ports, 4)
	p := ports[0]
	assert.Equal(t, "rxe0/1", p.String())
	require.NoError(t, p.Usable())
	assert.Equal(t, GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 15: 1}, p.GID)
	assert.Equal(t, "rail0a", p.Netdev)
	require.NoError(t, Available())
}

func TestGuestSendWriteRead(t *testing.T) {
	a, b := wire(t)
	require.NoError(t, b.queue.PostReceive(7, b.mem, 4096, 4096))
	copy(a.buf, "a message")
	require.NoError(t, a.queue.Send(a.to(b, 1, 9)))
	got := b.next()
	require.NoError(t, got.Err)
	assert.Equal(t, Completion{ID: 7, Received: true, Length: 9}, got)
	assert.Equal(t, "a message", string(b.buf[4096:4105]))
	assert.Equal(t, uint64(1), a.next().ID)

	for i := range a.buf {
		a.buf[i] = byte(i * 7)
	}
	require.NoError(t, a.queue.Write(a.to(b, 2, len(a.buf))))
	done := a.next()
	require.NoError(t, done.Err)
	assert.Equal(t, uint64(2), done.ID)
	assert.Equal(t, a.buf, b.buf)

	copy(b.buf, "what is read")
	require.NoError(t, a.queue.Read(a.to(b, 3, 12)))
	require.NoError(t, a.next().Err)
	assert.Equal(t, "what is read", string(a.buf[:12]))
	sends, receives := a.queue.Open()
	assert.Zero(t, sends)
	assert.Zero(t, receives)
}

func TestGuestWaitEndsInTime(t *testing.T) {
	a, _ := wire(t)
	_, err := a.queue.Wait(make([]Completion, 1), 50*time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestGuestBadKey(t *testing.T) {
	a, b := wire(t)
	r := a.to(b, 1, 8)
	r.Key ^= 0x5500
	require.NoError(t, a.queue.Write(r))
	a.fails(RemoteAccess)
	assert.Equal(t, make([]byte, 8), b.buf[:8])
}

func TestGuestNoReceivePosted(t *testing.T) {
	a, b := wire(t)
	require.NoError(t, a.queue.Send(a.to(b, 1, 8)))
	a.fails(NotReadyOver)
}

func TestGuestLimits(t *testing.T) {
	a, b := wire(t)
	for i := range 64 {
		require.NoError(t, b.queue.PostReceive(uint64(i), b.mem, 0, 64))
	}
	require.ErrorIs(t, b.queue.PostReceive(64, b.mem, 0, 64), ErrQueueFull)
	require.ErrorIs(t, a.queue.Write(Request{Memory: a.mem, Offset: 1, Length: len(a.buf)}), ErrRange)

	small, err := Open(a.card.port, 8192)
	require.NoError(t, err)
	defer func() { assert.NoError(t, small.Close()) }()
	_, err = small.Register(make([]byte, 8193), RemoteRead)
	require.ErrorIs(t, err, ErrPinned)
	m, err := small.Register(make([]byte, 8192), RemoteRead)
	require.NoError(t, err)
	require.NoError(t, m.Release())
	require.NoError(t, m.Release(), "again")

	// The error state gives back everything that is posted, once each.
	require.NoError(t, b.queue.Fail())
	seen := make(map[uint64]bool)
	for range 64 {
		c := b.next()
		require.Error(t, c.Err)
		require.True(t, c.Received)
		require.False(t, seen[c.ID])
		seen[c.ID] = true
	}
	_, receives := b.queue.Open()
	assert.Zero(t, receives)
}

func TestGuestCutAndNewQueuePair(t *testing.T) {
	a, b := wire(t)
	rails(t, "drop", "0")
	require.NoError(t, a.queue.Write(a.to(b, 1, 8)))
	a.fails(RetriesOver)
	rails(t, "undrop", "0")
	a.renew()
	b.renew()
	join(t, a, b)
	copy(a.buf, "mended")
	require.NoError(t, a.queue.Write(a.to(b, 2, 6)))
	require.NoError(t, a.next().Err)
	assert.Equal(t, "mended", string(b.buf[:6]))
}

func TestGuestPortDown(t *testing.T) {
	rails(t, "cut", "1")
	p, err := Find("rxe1", 1)
	require.NoError(t, err)
	require.ErrorIs(t, p.Usable(), ErrPortDown)
	_, err = Open(p, 0)
	require.ErrorIs(t, err, ErrPortDown)
	_, err = Find("mlx5_9", 1)
	require.ErrorIs(t, err, ErrNoDevice)
	rails(t, "mend", "1")
}

// Each packet of a write carries the write's number, so that a part that came too late is seen.
const (
	packetSize = 4096
	writeSize  = 4 * packetSize
	deep       = 16
	barriers   = 20 // storms of each kind
)

// storm keeps writes under way from a to b until one fails, and tells when the first ones have landed.
func (e *end) storm(peer *end, begun chan<- struct{}) (failed error) {
	number, open := uint64(0), 0
	done := make([]Completion, deep)
	for {
		for ; open < deep; open++ {
			number++
			slot := int(number%deep) * writeSize
			for p := 0; p < writeSize; p += packetSize {
				binary.NativeEndian.PutUint64(e.buf[slot+p:], number)
			}
			r := e.to(peer, number, writeSize)
			r.Offset = slot
			if err := e.queue.Write(r); err != nil {
				return err
			}
		}
		n, err := e.queue.Wait(done, patience)
		if err != nil {
			return err
		}
		open -= n
		for _, c := range done[:n] {
			if c.Err != nil {
				return c.Err
			}
		}
		if number >= 4*deep && begun != nil {
			close(begun)
			begun = nil
		}
	}
}

// still fails where a byte of the end's memory changes after this call. That nothing comes can only be watched for a while: far longer
// than the writes under way took to land.
func (e *end) still(what string) {
	e.t.Helper()
	before := append([]byte(nil), e.buf[:writeSize]...)
	for limit := time.Now().Add(200 * time.Millisecond); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		require.Equal(e.t, before, e.buf[:writeSize], "a byte landed after %s", what)
	}
}

// TestGuestNothingLandsAfterABarrier ends a target in the middle of a stream of writes, in both ways that the protocol relies on.
func TestGuestNothingLandsAfterABarrier(t *testing.T) {
	a, b := wire(t)
	for _, barrier := range []struct {
		name string
		end  func() error
	}{
		{"the queue pair was destroyed", func() error { return b.queue.Destroy() }},
		{"the memory was released", func() error { return b.mem.Release() }},
	} {
		for range barriers {
			begun, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- a.storm(b, begun) }()
			select {
			case <-begun:
			case err := <-ended:
				t.Fatalf("the writes ended before the barrier: %v", err)
			}
			require.NoError(t, barrier.end())
			require.NotZero(t, binary.NativeEndian.Uint64(b.buf), "nothing had landed before the barrier")
			b.still(barrier.name)
			var failed *StatusError
			if err := <-ended; !errors.As(err, &failed) {
				t.Fatalf("the writes went on after %s: %v", barrier.name, err)
			}
			require.NoError(t, b.mem.Release())
			b.register()
			a.renew()
			b.renew()
			join(t, a, b)
		}
	}
}
