package tcp

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"railyard/rail"
	"railyard/rma"
)

const patience = 30 * time.Second

// collector keeps what it reads, and writes the same bytes for ever once it is told to.
type collector struct {
	mu      sync.Mutex
	buf     [4096]byte
	got     []byte
	talking bool
	want    func() // runs in each Want
	// drained, where set, is signaled when a read found nothing.
	drained chan struct{}
}

func (c *collector) Fill(g *rma.Gather) bool {
	g.Add(make([]byte, 100))
	return c.talking
}

func (c *collector) Wrote(*rma.Gather, int) error { return nil }

func (c *collector) Want(s *rma.Scatter) error {
	if c.want != nil {
		c.want()
	}
	s.First = c.buf[:]
	return nil
}

func (c *collector) Got(s *rma.Scatter, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, s.First[:n]...)
	if n == 0 && c.drained != nil {
		select {
		case c.drained <- struct{}{}:
		default:
		}
	}
	return nil
}

func (c *collector) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got
}

// rawPair connects a plain socket to one of a Kind.
func rawPair(t *testing.T, k *Kind) (*net.TCPConn, *Conn) {
	t.Helper()
	l, err := k.Listen(t.Context(), rail.TCP("127.0.0.1:0"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	peer, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = peer.Close() })
	c, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return peer.(*net.TCPConn), c.(*Conn)
}

func await(t *testing.T, told <-chan error) error {
	t.Helper()
	select {
	case err := <-told:
		return err
	case <-time.After(patience):
		require.FailNow(t, "lost was not called")
		return nil
	}
}

// The end of the stream may come with the last bytes, in one segment and so in one event of the poller. A reader that
// took the short read for a drained socket would wait for ever.
func TestEndRightBehindBytes(t *testing.T) {
	k := New(Config{})
	for range 200 {
		peer, c := rawPair(t, k)
		link, told := &collector{drained: make(chan struct{}, 1)}, make(chan error, 1)
		c.Run(link, func(err error) { told <- err })
		<-link.drained // the reader parks: it has used up what the poller told it so far
		held, err := peer.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, held.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1)
		}))
		require.NoError(t, err)
		_, err = peer.Write([]byte("goodbye"))
		require.NoError(t, err)
		require.NoError(t, peer.Close())
		require.ErrorIs(t, await(t, told), io.EOF)
		assert.Equal(t, "goodbye", string(link.bytes()))
		c.Close()
	}
}

// What had arrived before a reset is delivered, even where a write meets the reset first.
func TestResetAfterGoodbye(t *testing.T) {
	k := New(Config{})
	for range 200 {
		peer, c := rawPair(t, k)
		_, err := peer.Write([]byte("goodbye"))
		require.NoError(t, err)
		waitQueued(t, c, 7)
		require.NoError(t, peer.SetLinger(0))
		require.NoError(t, peer.Close())
		link, told := &collector{talking: true}, make(chan error, 1)
		c.Kick()
		c.Run(link, func(err error) { told <- err })
		err = await(t, told)
		// The kernel tells of the reset once: who comes second finds an ordinary end.
		ended := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
		assert.True(t, ended, "%v", err)
		assert.Equal(t, "goodbye", string(link.bytes()))
		c.Close()
	}
}

// waitQueued waits until n bytes are in the receive queue.
func waitQueued(t *testing.T, c *Conn, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		queued, ok := ask(c, func(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
		return ok && queued == n
	}, patience, 100*time.Microsecond)
}

// A killed connection's bytes are dropped, and the peer is reset, though a call of the link keeps the descriptor open.
func TestKillDropsQueue(t *testing.T) {
	peer, c := rawPair(t, New(Config{}))
	require.NoError(t, peer.SetReadBuffer(4096))
	link, told := &collector{talking: true}, make(chan error, 1)
	inWant, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	link.want = func() { once.Do(func() { close(inWant); <-release }) }
	defer close(release)
	c.Run(link, func(err error) { told <- err })
	<-inWant
	c.Kick()
	require.Eventually(t, func() bool {
		n, ok := c.Unacked()
		return ok && n > 0
	}, patience, time.Millisecond, "the peer's window is full")
	c.Kill()
	_, ok := c.Unacked()
	assert.False(t, ok, "nothing is asked of a killed connection")
	require.NoError(t, peer.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, peer)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestBytesAcked(t *testing.T) {
	peer, c := rawPair(t, New(Config{}))
	before, ok := c.BytesAcked()
	require.True(t, ok)
	_, err := c.Write(make([]byte, 1000))
	require.NoError(t, err)
	_, err = io.ReadFull(peer, make([]byte, 1000))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, ok := c.BytesAcked()
		return ok && now == before+1000
	}, patience, time.Millisecond)
	c.Close()
	_, ok = c.BytesAcked()
	assert.False(t, ok)
}
