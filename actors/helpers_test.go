package actors

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
)

// patience bounds every wait of these tests. It is no expectation of speed.
const patience = 20 * time.Second

// testContext ends after patience.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), patience)
	t.Cleanup(done)
	return ctx
}

// quietSystem is an actor system that logs nothing.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Millisecond), actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// testLogger logs where TEST_LOG is set.
func testLogger() *zap.Logger {
	if os.Getenv("TEST_LOG") == "" {
		return zap.NewNop()
	}
	l, err := zap.NewDevelopment()
	if err != nil {
		panic(err)
	}
	return l
}

// loopback is a Config of n rails over loopback.
func loopback(n int) Config {
	cfg := Config{Logger: testLogger(), Secret: []byte("a secret for tests only")}
	for range n {
		cfg.Rails = append(cfg.Rails, rail.TCP("127.0.0.1:0"))
	}
	return cfg
}

// testNode is a node that ends with its test.
type testNode struct {
	*Node
	sys *actor.ActorSystem
}

// node starts a node, which ends with the test.
func node(t testing.TB, change ...func(*Config)) testNode {
	t.Helper()
	cfg := loopback(1)
	for _, f := range change {
		f(&cfg)
	}
	sys := quietSystem()
	n, err := Start(sys, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		assert.NoError(t, n.Shutdown(ctx), "shutting down %s", n.Address())
		sys.Shutdown()
	})
	return testNode{n, sys}
}

// received is one message as an actor saw it.
type received struct {
	message any
	sender  *actor.PID
	headers map[string]string
}

// inbox spawns an actor that hands everything but lifecycle messages over, and answers a
// StringValue with it.
func (n testNode) inbox(t testing.TB, name string) (*actor.PID, <-chan received) {
	t.Helper()
	to := make(chan received, 4096)
	pid, err := n.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
		default:
			got := received{message: m, sender: ctx.Sender()}
			if h := ctx.MessageHeader(); h != nil && h.Length() > 0 {
				got.headers = h.ToMap()
			}
			to <- got
		}
	}), name)
	require.NoError(t, err)
	return pid, to
}

// echo spawns an actor that answers every protobuf message with itself.
func (n testNode) echo(t testing.TB, name string) *actor.PID {
	t.Helper()
	pid, err := n.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(proto.Message); ok && ctx.Sender() != nil {
			ctx.Respond(m)
		}
	}), name)
	require.NoError(t, err)
	return pid
}

// at is the PID of an actor of n, as another node makes it.
func (n testNode) at(id string) *actor.PID { return actor.NewPID(n.Address(), id) }

// next waits for one element.
func next[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v, ok := <-from:
		require.True(t, ok, "%s: the channel is closed", what)
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came", what)
	}
	panic("not reached")
}

// events collects what the system's event stream says that match wants.
func events[T any](t testing.TB, sys *actor.ActorSystem) <-chan T {
	t.Helper()
	to := make(chan T, 4096)
	sub := sys.EventStream.Subscribe(func(e any) {
		if m, ok := e.(T); ok {
			to <- m
		}
	})
	t.Cleanup(func() { sys.EventStream.Unsubscribe(sub) })
	return to
}

func text(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }

func textOf(t testing.TB, m any) string {
	t.Helper()
	s, ok := m.(*wrapperspb.StringValue)
	require.True(t, ok, "%T is no text", m)
	return s.GetValue()
}
