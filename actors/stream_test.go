package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
)

// overEach runs a test over TCP on loopback and over pipes in memory, two rails each.
func overEach(t *testing.T, f func(t *testing.T, change ...func(*Config))) {
	t.Run("tcp", func(t *testing.T) {
		f(t, func(c *Config) { c.Rails = append(c.Rails, rail.TCP("127.0.0.1:0")) })
	})
	t.Run("pipe", func(t *testing.T) {
		network := railtest.NewNetwork()
		hosts := 0
		f(t, func(c *Config) {
			hosts++
			c.Transports = []rail.Kind{network.Kind()}
			c.Rails = nil
			for i := range 2 {
				c.Rails = append(c.Rails, rail.Binding{Kind: railtest.KindPipe, Address: fmt.Sprintf("host%d-%d:0", hosts, i)})
			}
		})
	})
}

// openStream opens a stream between two nodes.
func openStream(t testing.TB, a, b testNode) (dialed, accepted net.Conn) {
	t.Helper()
	l, err := b.Listen("pair")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			got <- c
		}
	}()
	dialed, err = a.Dial(testContext(t), b.Address(), "pair")
	require.NoError(t, err)
	return dialed, next(t, got, "the accepted stream")
}

func TestStreamsAreConns(t *testing.T) {
	overEach(t, func(t *testing.T, change ...func(*Config)) {
		a, b := node(t, change...), node(t, change...)
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			c1, c2 = openStream(t, a, b)
			return c1, c2, func() {
				_ = c1.Close() // the test may have
				_ = c2.Close()
			}, nil
		})
		require.Empty(t, a.streams.byID)
		require.Empty(t, b.streams.byID)
		require.Empty(t, b.streams.accepted)
	})
}

// Bytes of writes of every size arrive in order, also where several reads and writes of different sizes meet.
func TestStreamOfAnySizes(t *testing.T) {
	overEach(t, func(t *testing.T, change ...func(*Config)) {
		a, b := node(t, change...), node(t, append(change, func(c *Config) { c.StreamWindow = 256 << 10 })...)
		from, to := openStream(t, a, b)
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		want := make([]byte, 8<<20)
		for i := range want {
			want[i] = byte(random.Uint32())
		}
		go func() {
			sizes := rand.New(rand.NewPCG(seed, 2))
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+sizes.IntN(1<<sizes.IntN(21)))
				k, err := from.Write(rest[:n])
				if err != nil || k != n {
					panic(fmt.Sprint(k, err))
				}
				rest = rest[n:]
			}
			if err := from.(*stream).CloseWrite(); err != nil {
				panic(err)
			}
		}()
		got, err := io.ReadAll(to)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		// The other direction is open still.
		_, err = to.Write([]byte("back"))
		require.NoError(t, err)
		back := make([]byte, 4)
		_, err = io.ReadFull(from, back)
		require.NoError(t, err)
		require.Equal(t, "back", string(back))
		_, err = from.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
	})
}

// A reader that stalls stalls its stream alone, and takes nothing of the window for messages.
func TestAStalledReaderStallsItsStreamAlone(t *testing.T) {
	overEach(t, func(t *testing.T, change ...func(*Config)) {
		a, b := node(t, change...), node(t, append(change, narrow)...)
		stalled, unread := openStream(t, a, b)
		require.NoError(t, stalled.SetWriteDeadline(time.Now().Add(2*time.Second)))
		n, err := stalled.Write(make([]byte, 16<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		require.LessOrEqual(t, n, DefaultStreamWindow)
		require.Greater(t, n, DefaultStreamWindow/2)

		c, d := openStream(t, a, b)
		go func() {
			_, _ = io.Copy(d, d) // until it is closed
		}()
		for range 10 {
			_, err = c.Write(make([]byte, 100<<10))
			require.NoError(t, err)
			_, err = io.ReadFull(c, make([]byte, 100<<10))
			require.NoError(t, err)
		}
		_, got := b.inbox(t, "inbox")
		for range 20 {
			require.NoError(t, a.Send(testContext(t), b.at("inbox"), wrapperspb.Bytes(make([]byte, 50<<10))))
			next(t, got, "a message beside the streams")
		}
		// The stalled one goes on where it was.
		require.NoError(t, stalled.SetWriteDeadline(time.Time{}))
		go func() {
			_, _ = stalled.Write([]byte("end"))
			_ = stalled.Close()
		}()
		all, err := io.ReadAll(unread)
		require.NoError(t, err)
		require.Len(t, all, n+3)
		for _, conn := range []net.Conn{unread, c, d} {
			require.NoError(t, conn.Close())
		}
	})
}

// Rails that die in the middle of a stream are not noticed by it.
func TestStreamsSurviveRails(t *testing.T) {
	network := railtest.NewNetwork()
	side := func(host string) func(*Config) {
		return func(c *Config) {
			c.Transports, c.Rails = []rail.Kind{network.Kind()}, nil
			for i := range 2 {
				c.Rails = append(c.Rails, rail.Binding{Kind: railtest.KindPipe, Address: fmt.Sprintf("%s%d:0", host, i)})
			}
		}
	}
	a, b := node(t, side("a")), node(t, side("b"))
	from, to := openStream(t, a, b)
	e, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	bothUp := func() bool {
		for _, r := range e.Rails() {
			if r.State != rail.Up && r.State != rail.Probation {
				return false
			}
		}
		return len(e.Rails()) == 2
	}
	// The stream goes on until three rails have died in its middle, and have come back.
	written := make(chan []byte, 1)
	stop := make(chan struct{})
	go func() {
		hash := sha256.New()
		random := rand.New(rand.NewPCG(7, 7))
		for !isClosed(stop) {
			part := make([]byte, 1+random.IntN(300<<10))
			for i := range part {
				part[i] = byte(random.Uint32())
			}
			hash.Write(part)
			if _, err := from.Write(part); err != nil {
				panic(err)
			}
		}
		_ = from.Close() // what was written still arrives
		written <- hash.Sum(nil)
	}()
	read := make(chan []byte, 1)
	go func() {
		hash := sha256.New()
		if _, err := io.Copy(hash, to); err != nil {
			panic(err)
		}
		read <- hash.Sum(nil)
	}()
	for i := range 3 {
		settled(t, "both rails are up", bothUp)
		w := network.Wire(fmt.Sprintf("a%d", i%2), fmt.Sprintf("b%d", i%2))
		w.Cut()
		settled(t, "a rail is down", func() bool { return !bothUp() })
		w.Heal()
	}
	settled(t, "both rails are up again", bothUp)
	close(stop)
	require.Equal(t, next(t, written, "the end of writing"), next(t, read, "the end of reading"))
	require.NoError(t, to.Close())
	require.GreaterOrEqual(t, e.Stats().Retired, uint64(3))
}

func TestListenAndDialErrors(t *testing.T) {
	a, b := node(t), node(t)
	_, err := a.Dial(testContext(t), b.Address(), "nothing")
	require.ErrorIs(t, err, ErrNoService)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, b.Address()+"/nothing", op.Addr.String())
	_, err = b.Listen("")
	require.ErrorIs(t, err, ErrServiceName)
	_, err = a.Dial(testContext(t), b.Address(), string(make([]byte, maxService+1)))
	require.ErrorIs(t, err, ErrServiceName)
	l, err := b.Listen("s")
	require.NoError(t, err)
	_, err = b.Listen("s")
	require.ErrorIs(t, err, ErrServiceInUse)
	c, err := a.Dial(testContext(t), b.Address(), "s")
	require.NoError(t, err, "it waits in the queue")
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Close(), net.ErrClosed)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the listener has closed what nobody accepted")
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Close(), net.ErrClosed)
	l, err = b.Listen("s")
	require.NoError(t, err, "the name is free again")
	var waiting []net.Conn
	for range backlog {
		c, err := a.Dial(testContext(t), b.Address(), "s")
		require.NoError(t, err)
		waiting = append(waiting, c)
	}
	_, err = a.Dial(testContext(t), b.Address(), "s")
	require.ErrorIs(t, err, ErrServiceBusy)
	for _, c := range waiting {
		require.NoError(t, c.Close())
	}
	require.NoError(t, l.Close())
	ctx, done := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer done()
	_, err = a.Dial(ctx, "127.0.0.1:1", "s")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorAs(t, err, &op)
	require.True(t, op.Timeout())
	require.Empty(t, a.streams.byID)
}

// What one end does is what the other one sees.
func TestStreamEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end         func(t *testing.T, near net.Conn, a testNode)
		read, write error
	}{
		"close":    {func(t *testing.T, near net.Conn, _ testNode) { require.NoError(t, near.Close()) }, io.EOF, ErrStreamClosed},
		"shutdown": {func(t *testing.T, _ net.Conn, a testNode) { require.NoError(t, a.Shutdown(testContext(t))) }, io.EOF, ErrStreamClosed},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := node(t), node(t)
			near, far := openStream(t, a, b)
			_, err := near.Write([]byte("last words"))
			require.NoError(t, err)
			c.end(t, near, a)
			got := make([]byte, 10)
			_, err = io.ReadFull(far, got)
			require.NoError(t, err)
			require.Equal(t, "last words", string(got))
			_, err = far.Read(got)
			require.ErrorIs(t, err, c.read)
			settled(t, "writes are refused", func() bool {
				_, err = far.Write(make([]byte, 1<<20))
				return err != nil
			})
			if !errors.Is(err, rma.ErrEndpointDown) {
				require.ErrorIs(t, err, c.write)
			}
			require.NoError(t, far.Close())
			_, err = near.Read(got)
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
	t.Run("the peer is lost", func(t *testing.T) {
		network := railtest.NewNetwork()
		side := func(host string) func(*Config) {
			return func(c *Config) {
				c.OutageLimit = 300 * time.Millisecond
				c.Transports, c.Rails = []rail.Kind{network.Kind()}, []rail.Binding{{Kind: railtest.KindPipe, Address: host + ":0"}}
			}
		}
		a, b := node(t, side("a")), node(t, side("b"))
		near, far := openStream(t, a, b)
		network.Wire("a", "b").Cut()
		for _, c := range []net.Conn{near, far} {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, rma.ErrEndpointDown)
			_, err = c.Write(make([]byte, 1<<20))
			require.ErrorIs(t, err, rma.ErrEndpointDown)
			require.NoError(t, c.Close())
		}
	})
}
