package discovery_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"railyard/actors"
	"railyard/discovery"
	"railyard/rail"
)

const patience = 20 * time.Second

// throttle is protoactor's: a goroutine that lives for a second after a dead letter has been logged, and ends by itself.
const throttle = "github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle)) }

func start(t *testing.T, address string) *actors.Node {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	node, err := actors.Start(system, actors.Config{
		Rails: []rail.Binding{rail.TCP(address)}, Secret: []byte("for tests"),
		OutageLimit: 2 * time.Second, // a keeper may dial a node that is just ending, and has no time to say so
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.NoError(t, node.Shutdown(ctx))
		system.Shutdown()
	})
	return node
}

func keep(t *testing.T, node *actors.Node, f discovery.Finder) *discovery.Keeper {
	t.Helper()
	k, err := discovery.Keep(discovery.Config{Node: node, Finder: f, Interval: 20 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(k.Close)
	return k
}

func knows(t *testing.T, k *discovery.Keeper, nodes ...*actors.Node) {
	t.Helper()
	var want []string
	for _, n := range nodes {
		want = append(want, n.Address())
	}
	slices.Sort(want)
	require.Eventually(t, func() bool { return slices.Equal(want, k.Peers()) }, patience, time.Millisecond, "%q", want)
}

// A list with this node in it, one that is not there, and one that ends and comes back.
func TestStatic(t *testing.T) {
	a, b, c := start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0")
	k := keep(t, a, discovery.Static(a.Address(), b.Address(), c.Address(), "127.0.0.1:1"))
	knows(t, k, b, c)
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	require.NoError(t, c.Shutdown(ctx))
	knows(t, k, b)
	knows(t, k, b, start(t, c.Address()))
	k.Close() // before the node that was started last
}

// script is a Finder that a test changes.
type script struct {
	mu    sync.Mutex
	asked int
	found []string
	err   error
}

func (s *script) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *script) set(err error, found ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.err = found, err
}

func (s *script) Find(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.found, s.err
}

func TestWhatIsFoundMayChange(t *testing.T) {
	a, b, c := start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0")
	s := new(script)
	k := keep(t, a, s)
	knows(t, k)
	s.set(nil, b.Address(), b.Address())
	knows(t, k, b)
	s.set(errors.New("nobody answers"))
	before := s.times()
	require.Eventually(t, func() bool { return s.times() > before+2 }, patience, time.Millisecond, "it is asked again")
	knows(t, k, b)
	s.set(nil, c.Address())
	knows(t, k, c)
}

func TestSettingsAreRefused(t *testing.T) {
	a := start(t, "127.0.0.1:0")
	for _, cfg := range []discovery.Config{
		{Finder: discovery.Static()}, {Node: a}, {Node: a, Finder: discovery.Static(), Interval: -1},
	} {
		_, err := discovery.Keep(cfg)
		require.ErrorIs(t, err, discovery.ErrConfig)
	}
	_, err := discovery.DNS{}.Find(t.Context())
	require.ErrorIs(t, err, discovery.ErrNoName)
}

// resolver is one that asks a server of this test, which knows the nodes' port.
func resolver(t *testing.T, port uint16) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			h := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET}
			if kind := m.Questions[0].Type; kind == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
			} else if kind == dnsmessage.TypeSRV {
				m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.SRVResource{Port: port,
					Target: dnsmessage.MustNewName("localhost.")}}}
			}
			out, err := m.Pack()
			if err == nil {
				_, _ = server.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func TestDNS(t *testing.T) {
	a, b := start(t, "127.0.0.1:0"), start(t, "127.0.0.1:0")
	address, err := net.ResolveTCPAddr("tcp", b.Address())
	require.NoError(t, err)
	port := uint16(address.Port)
	r := resolver(t, port)
	knows(t, keep(t, a, discovery.DNS{Name: "nodes.example.org", Port: port, Resolver: r}), b)
	knows(t, keep(t, a, discovery.DNS{Name: "_railyard._tcp.example.org", Resolver: r}), b)
}
