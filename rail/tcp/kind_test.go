package tcp

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"railyard/rail"
)

func congestionOf(t *testing.T, c *Conn) string {
	t.Helper()
	name, ok := ask(c, func(fd uintptr) (string, error) {
		return unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	require.True(t, ok)
	return name
}

// dialed gives both ends of a connection of one kind.
func dialed(t *testing.T, k *Kind) (near, far *Conn) {
	t.Helper()
	l, err := k.Listen(t.Context(), rail.TCP("127.0.0.1:0"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	a, err := k.Dial(t.Context(), "127.0.0.1:7", l.Addr())
	require.NoError(t, err)
	t.Cleanup(a.Close)
	b, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return a.(*Conn), b.(*Conn)
}

func TestCongestion(t *testing.T) {
	system, _ := dialed(t, New(Config{Congestion: KeepSystem}))
	want := congestionOf(t, system)
	if want == "bbr" {
		want = "cubic"
	}
	near, far := dialed(t, New(Config{}))
	assert.Equal(t, want, congestionOf(t, near))
	assert.Equal(t, want, congestionOf(t, far), "accepted sockets inherit it")
	near, far = dialed(t, New(Config{Congestion: "reno"}))
	assert.Equal(t, "reno", congestionOf(t, near))
	assert.Equal(t, "reno", congestionOf(t, far))
}

func TestCongestionRefused(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	k := New(Config{Logger: zap.New(core), Congestion: "nonsense"})
	for range 3 {
		dialed(t, k)
	}
	assert.Len(t, logged.All(), 1, "one line for the kind, not one for each socket")
}

func notSentOf(t *testing.T, c *Conn) int {
	t.Helper()
	n, ok := ask(c, func(fd uintptr) (int, error) {
		return unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
	})
	require.True(t, ok)
	return n
}

func TestNotSentInherited(t *testing.T) {
	near, far := dialed(t, New(Config{NotSent: 12345}))
	for _, c := range []*Conn{near, far} {
		assert.Equal(t, 12345, notSentOf(t, c))
	}
	require.True(t, near.SetNotSent(54321))
	assert.Equal(t, 54321, notSentOf(t, near))
	near.Close()
	assert.False(t, near.SetNotSent(1))
}

// Rails are plain TCP: a multipath connection would hide which card carries it.
func TestPlainTCP(t *testing.T) {
	near, far := dialed(t, New(Config{}))
	for _, c := range []*Conn{near, far} {
		protocol, ok := ask(c, func(fd uintptr) (int, error) {
			return unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL)
		})
		require.True(t, ok)
		assert.Equal(t, unix.IPPROTO_TCP, protocol)
	}
}

func TestDialBlamesTheRightAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	tests := []struct {
		name, local, remote, says string
		is                        error
	}{
		// 192.0.2.0/24 is for documentation: no card has it.
		{"local gone", "192.0.2.1", l.Addr().String(), "local address 192.0.2.1", syscall.EADDRNOTAVAIL},
		{"local is no address", "eth0", l.Addr().String(), `from "eth0"`, nil},
		{"remote refuses", "127.0.0.1", "127.0.0.1:1", "cannot reach 127.0.0.1:1", syscall.ECONNREFUSED},
		{"remote without port", "127.0.0.1", "127.0.0.1", "cannot reach 127.0.0.1", nil},
		{"families differ", "127.0.0.1", "[::1]:1", "cannot reach [::1]:1", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(Config{}).Dial(t.Context(), test.local, test.remote)
			require.ErrorContains(t, err, test.says)
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
		})
	}
}

func TestDialFromAnywhere(t *testing.T) {
	l, err := New(Config{}).Listen(t.Context(), rail.TCP("127.0.0.1:0"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for _, local := range []string{"", "0.0.0.0", "0.0.0.0:0", "127.0.0.2", "127.0.0.2:99"} {
		c, err := New(Config{}).Dial(t.Context(), local, l.Addr())
		require.NoError(t, err, local)
		c.Close()
	}
}

func TestListenErrors(t *testing.T) {
	k := New(Config{})
	_, err := k.Listen(t.Context(), rail.TCP("192.0.2.1:0"))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "192.0.2.1")
	_, err = k.Listen(t.Context(), rail.Binding{Kind: rail.KindTCP, Address: "127.0.0.1:port"})
	require.ErrorContains(t, err, "127.0.0.1:port")
	assert.Equal(t, rail.KindTCP, k.Name())
}
