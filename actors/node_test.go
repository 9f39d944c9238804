package actors

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
	"railyard/rma"
)

func TestBadConfigsAreRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	rails := func(list ...rail.Binding) func(*Config) { return func(c *Config) { c.Rails = list } }
	seen := map[string]string{}
	for name, c := range map[string]struct {
		change func(*Config)
		says   []string
	}{
		"two rails with one address": {rails(rail.TCP("127.0.0.1:7999"), rail.TCP("127.0.0.1:7999")), []string{"Rails", "127.0.0.1:7999"}},
		"every address":              {rails(rail.TCP("0.0.0.0:7400")), []string{"Rails", "0.0.0.0:7400"}},
		"no address":                 {rails(rail.TCP("")), []string{"Rails", "Address"}},
		"a name":                     {rails(rail.TCP("localhost:7400")), []string{"Rails", "localhost:7400"}},
		"a port in use":              {rails(rail.TCP(taken.Addr().String())), []string{"Rails", taken.Addr().String()}},
		"no such card":               {rails(rail.TCP("203.0.113.7:0")), []string{"Rails", "203.0.113.7"}},
		"verbs":                      {rails(rail.Verbs("mlx5_0", 1)), []string{"Rails[0]", "mlx5_0/1"}},
		"unknown kind":               {rails(rail.Binding{Kind: "pigeon", Address: "x"}), []string{"Rails", "pigeon"}},
		"advertise without a port":   {func(c *Config) { c.Advertise = "example.org" }, []string{"Advertise", "example.org"}},
		"advertise port 0":           {func(c *Config) { c.Advertise = "example.org:0" }, []string{"Advertise", "example.org:0"}},
		"advertise everything":       {func(c *Config) { c.Advertise = "0.0.0.0:1" }, []string{"Advertise", "0.0.0.0:1"}},
		"outage limit":               {func(c *Config) { c.OutageLimit = -time.Second }, []string{"OutageLimit", "-1s"}},
		"cancel wait":                {func(c *Config) { c.CancelWait = -2 * time.Second }, []string{"CancelWait", "-2s"}},
		"send wait":                  {func(c *Config) { c.SendWait = -3 * time.Second }, []string{"SendWait", "-3s"}},
		"health":                     {func(c *Config) { c.Health.Beat = -4 * time.Second }, []string{"Health", "-4s"}},
		"TLS":                        {func(c *Config) { c.TLS = &tls.Config{} }, []string{"TLS"}},
		"require TLS":                {func(c *Config) { c.RequireTLS = true }, []string{"RequireTLS", "true"}},
		"old TLS": {func(c *Config) {
			c.TLS = &tls.Config{Certificates: make([]tls.Certificate, 1), MaxVersion: tls.VersionTLS12}
		}, []string{"TLS", "MaxVersion"}},
		"TLS that trusts everybody": {func(c *Config) {
			c.TLS = &tls.Config{Certificates: make([]tls.Certificate, 1), InsecureSkipVerify: true}
		}, []string{"TLS", "InsecureSkipVerify"}},
		"kinds":           {func(c *Config) { c.Kinds = map[string]*actor.Props{"k": nil} }, []string{"Kinds", `"k"`}},
		"allow":           {func(c *Config) { c.Allow = []string{"a", ""} }, []string{"Allow[1]"}},
		"max spawned":     {func(c *Config) { c.MaxSpawned = -8 }, []string{"MaxSpawned", "-8"}},
		"max open":        {func(c *Config) { c.MaxOpen = -5 }, []string{"MaxOpen", "-5"}},
		"max regions":     {func(c *Config) { c.MaxRegions = -6 }, []string{"MaxRegions", "-6"}},
		"max peers":       {func(c *Config) { c.MaxPeers = -7 }, []string{"MaxPeers", "-7"}},
		"max message":     {func(c *Config) { c.MaxMessage = 1 << 40 }, []string{"MaxMessage", "1099511627776"}},
		"window":          {func(c *Config) { c.Window = 1000 }, []string{"Window", "1000", "MaxMessage"}},
		"a nil transport": {func(c *Config) { c.Transports = []rail.Kind{nil} }, []string{"Transports[0]"}},
		"a second tcp":    {func(c *Config) { c.Transports = []rail.Kind{secondTCP{}} }, []string{"Transports[0]", "tcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := loopback(1)
			c.change(&cfg)
			sys := quietSystem()
			n, err := Start(sys, cfg)
			require.Nil(t, n)
			require.ErrorIs(t, err, ErrConfig)
			for _, s := range c.says {
				assert.Contains(t, err.Error(), s)
			}
			require.Empty(t, seen[err.Error()], "two errors share a message")
			seen[err.Error()] = name
			require.Equal(t, protoactorLocal, sys.Address(), "the system is as it was")
		})
	}
	_, err = Start(nil, loopback(1))
	require.ErrorIs(t, err, ErrConfig)
}

type secondTCP struct{ rail.Kind }

func (secondTCP) Name() string { return rail.KindTCP }

func TestAPortInUseSaysSo(t *testing.T) {
	a := node(t)
	cfg := loopback(0)
	cfg.Rails = []rail.Binding{rail.TCP(a.Address())}
	sys := quietSystem()
	_, err := Start(sys, cfg)
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	// The same system starts with a better config, and not twice.
	n, err := Start(sys, loopback(1))
	require.NoError(t, err)
	require.Equal(t, n.Address(), sys.Address())
	_, err = Start(sys, loopback(1))
	require.ErrorIs(t, err, ErrSystemInUse)
	require.NoError(t, n.Shutdown(testContext(t)))
	_, err = Start(sys, loopback(1))
	require.ErrorIs(t, err, ErrSystemInUse)
}

func TestAdvertise(t *testing.T) {
	b := node(t, func(c *Config) { c.Advertise = "localhost:7999" })
	require.Equal(t, "localhost:7999", b.Address())
	require.Equal(t, "localhost:7999", b.inboxAddress(t))
}

// inboxAddress is the address in the PIDs of actors.
func (n testNode) inboxAddress(t *testing.T) string {
	pid, _ := n.inbox(t, "inbox")
	return pid.Address
}

func TestRailsAreDiscovered(t *testing.T) {
	n, err := Start(quietSystem(), Config{})
	require.NoError(t, err, "the zero Config is usable")
	require.NotEmpty(t, n.Address())
	require.NoError(t, n.Shutdown(testContext(t)))
}

func TestAlloc(t *testing.T) {
	n, err := Start(quietSystem(), loopback(1))
	require.NoError(t, err)
	for _, size := range []int{1, os.Getpagesize(), 3*os.Getpagesize() + 5} {
		mem, err := n.Alloc(size)
		require.NoError(t, err)
		require.Len(t, mem, size)
		require.Zero(t, uintptr(unsafe.Pointer(&mem[0]))%uintptr(os.Getpagesize()))
		for i := range mem {
			require.Zero(t, mem[i])
			mem[i] = 0xff
		}
	}
	for _, size := range []int{0, -1, int(^uint(0) >> 1)} {
		_, err := n.Alloc(size)
		require.ErrorIs(t, err, ErrAlloc, "%d", size)
	}
	mapped := n.memory.maps
	require.Len(t, mapped, 3)
	require.NoError(t, n.Shutdown(testContext(t)))
	require.Empty(t, n.memory.maps)
	_, err = n.Alloc(1)
	require.ErrorIs(t, err, ErrAlloc)
	require.ErrorIs(t, err, rma.ErrShutdown)
}

// What was sent before Shutdown arrives, and what comes after is refused.
func TestShutdownDrains(t *testing.T) {
	const count = 2000
	a, b := node(t), node(t)
	_, got := b.inbox(t, "inbox")
	region, err := b.Register(make([]byte, 1<<20), rma.RemoteWrite)
	require.NoError(t, err)
	e, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	for range count {
		a.sys.Root.Send(b.at("inbox"), text("x"))
	}
	src := make([]byte, 1<<20)
	src[len(src)-1] = 1
	op := e.StartPut(region.Key(), 0, src)
	require.NoError(t, a.Shutdown(testContext(t)))
	for range count {
		next(t, got, "what was sent before the end")
	}
	require.True(t, op.Finished())
	require.NoError(t, op.Err())
	require.EqualValues(t, 1, region.Bytes()[len(src)-1])

	require.NoError(t, a.Shutdown(context.Background()), "again")
	ctx := testContext(t)
	require.ErrorIs(t, a.Send(ctx, b.at("inbox"), text("late")), rma.ErrShutdown)
	_, err = a.Connect(ctx, b.Address())
	require.ErrorIs(t, err, rma.ErrShutdown)
	_, err = a.Register(make([]byte, 1), rma.RemoteRead)
	require.ErrorIs(t, err, rma.ErrShutdown)
	undelivered := events[*MessageUndelivered](t, a.sys)
	a.sys.Root.Send(b.at("inbox"), text("late"))
	require.ErrorIs(t, next(t, undelivered, "the cause").Cause, rma.ErrShutdown)
	_, local := a.inbox(t, "local")
	a.sys.Root.Send(a.at("local"), text("the system goes on"))
	next(t, local, "a local message")
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// Each round makes two nodes with two rails, uses everything, and leaves no descriptor, mapping or
// goroutine (which TestMain looks for).
func TestShutdownLeaksNothing(t *testing.T) {
	round := func() {
		systems := [2]*actor.ActorSystem{quietSystem(), quietSystem()}
		var nodes [2]testNode
		for i := range nodes {
			n, err := Start(systems[i], loopback(2))
			require.NoError(t, err)
			nodes[i] = testNode{n, systems[i]}
			nodes[i].echo(t, "echo")
		}
		a, b := nodes[0], nodes[1]
		ctx := testContext(t)
		mem, err := b.Alloc(1 << 20)
		require.NoError(t, err)
		region, err := b.Register(mem, rma.RemoteWrite|rma.RemoteRead)
		require.NoError(t, err)
		e, err := a.Connect(ctx, b.Address())
		require.NoError(t, err)
		require.NoError(t, e.Put(ctx, region.Key(), 0, make([]byte, 1<<20)))
		require.NoError(t, e.Get(ctx, region.Key(), 0, make([]byte, 1<<20)))
		_, err = a.sys.Root.RequestFuture(b.at("echo"), text("x"), patience).Result()
		require.NoError(t, err)
		a.sys.Root.Send(actor.NewPID("127.0.0.1:1", "nobody"), text("x"))
		events := a.Events().Subscribe(context.Background())
		require.NoError(t, a.Shutdown(ctx))
		require.NoError(t, b.Shutdown(ctx))
		for range events { // ends
		}
		for _, sys := range systems {
			sys.Shutdown()
		}
	}
	round() // what the runtime and the libraries keep is there after this
	before := descriptors(t)
	mapped := mappings(t)
	for range 5 {
		round()
	}
	eventually(t, func() bool { return descriptors(t) <= before }, "descriptors are closed")
	require.LessOrEqual(t, mappings(t), mapped+20, "mappings are gone (some are the runtime's own)")
}

func mappings(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

// An impatient Shutdown says that it was one, and what was open has an outcome.
func TestShutdownWithoutTime(t *testing.T) {
	c := startChild(t, "127.0.0.1:0")
	n, err := Start(quietSystem(), loopback(1))
	require.NoError(t, err)
	e, err := n.Connect(testContext(t), c.address)
	require.NoError(t, err)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	op := e.StartPut(c.key, 0, make([]byte, 1<<20))
	ctx, done := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer done()
	require.ErrorIs(t, n.Shutdown(ctx), context.DeadlineExceeded)
	next(t, whenClosed(op.Done()), "the outcome")
	require.ErrorIs(t, op.Err(), rma.ErrShutdown)
	require.Equal(t, n.Shutdown(context.Background()), n.err, "the same again")
}

// Users add middleware to the framework's actors, and a panic in there is judged, rerouted and
// forgotten.
func TestRailsAndTransportsTakeMiddleware(t *testing.T) {
	var rails, transports atomic.Int64
	var broken atomic.Bool
	count := func(n *atomic.Int64, panics bool) func(*actor.Props) *actor.Props {
		return func(p *actor.Props) *actor.Props {
			return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
				return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
					n.Add(1)
					if panics && broken.CompareAndSwap(true, false) {
						panic(errors.New("a bug in a transport"))
					}
					next(ctx, env)
				}
			}))
		}
	}
	a := node(t, func(c *Config) { c.RailProps, c.TransportProps = count(&rails, false), count(&transports, true) })
	b := node(t)
	b.echo(t, "echo")
	region, err := b.Register(make([]byte, 1<<20), rma.RemoteWrite)
	require.NoError(t, err)
	e, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	failures := events[*actor.SupervisorEvent](t, a.sys)
	facts := a.Events().Subscribe(testContext(t))
	broken.Store(true)
	require.NoError(t, e.Put(testContext(t), region.Key(), 0, make([]byte, 1<<20)))
	next(t, failures, "the judgement")
	for next(t, facts, "the rail's return").Kind != rail.RailRejoined {
	}
	_, err = a.sys.Root.RequestFuture(b.at("echo"), wrapperspb.Bool(true), patience).Result()
	require.NoError(t, err)
	require.NoError(t, e.Err())
	require.Positive(t, rails.Load())
	require.Positive(t, transports.Load())
}
