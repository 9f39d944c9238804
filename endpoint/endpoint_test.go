package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/tcp"
	"railyard/rma"
)

// throttle is protoactor's: a goroutine that lives for a second after a dead letter has been logged, and ends by itself.
const throttle = "github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"

func TestMain(m *testing.M) {
	if order := os.Getenv(idleEnv); order != "" {
		idleClient(order)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle))
}

// host is a Host that keeps what it is given.
type host struct {
	mu    sync.Mutex
	got   []string
	lost  []string
	downs []error
	more  chan struct{}
}

func newHost() *host { return &host{more: make(chan struct{}, 1<<16)} }

func (h *host) Deliver(e *Endpoint, d *session.Delivery) {
	h.mu.Lock()
	h.got = append(h.got, fmt.Sprintf("%s %s %s", d.Target, d.Type, short(d.Payload)))
	h.mu.Unlock()
	e.Consumed(d.Cost)
	h.more <- struct{}{}
}

func short(b []byte) string {
	if len(b) > 16 {
		return fmt.Sprintf("%d bytes", len(b))
	}
	return string(b)
}

func (h *host) Marshal(pid rma.PID, message any) (*Outgoing, error) {
	return &Outgoing{Target: NewRef(pid.GetId()), Type: NewRef("text"), Payload: []byte(message.(string))}, nil
}

func (h *host) Undelivered(_ *Endpoint, m *Outgoing, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = append(h.lost, fmt.Sprintf("%s: %v", m.Target.S, err))
}

func (h *host) EndpointUp(*Endpoint) {}

func (h *host) EndpointDown(_ *Endpoint, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.downs = append(h.downs, cause)
}

func (h *host) wait(t testing.TB, n int) []string {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for range n {
		select {
		case <-h.more:
		case <-deadline:
			require.FailNow(t, "messages are missing", "%d of %d came", len(h.got), n)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

type node struct {
	*Manager
	host *host
}

func startNode(t testing.TB, rails int, change ...func(*Config)) node {
	t.Helper()
	h := newHost()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
	cfg := Config{System: system, Host: h, Kinds: map[string]rail.Kind{"tcp": tcp.New(tcp.Config{})}}
	for range rails {
		cfg.Bindings = append(cfg.Bindings, rail.TCP("127.0.0.1:0"))
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		require.NoError(t, m.Shutdown(ctx))
		system.Shutdown()
	})
	return node{m, h}
}

func connect(t testing.TB, a, b node) *Endpoint {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	e, err := a.Connect(ctx, b.Address())
	require.NoError(t, err)
	return e
}

func railsUp(t testing.TB, e *Endpoint, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		up := 0
		for _, r := range e.Rails() {
			if r.State == rail.Up {
				up++
			}
		}
		return up == n
	}, 10*time.Second, 2*time.Millisecond, "%+v", e.Rails())
}

func TestMessagesAndOperations(t *testing.T) {
	a, b := startNode(t, 3), startNode(t, 3)
	e := connect(t, a, b)
	railsUp(t, e, 3)
	ctx := context.Background()

	route := a.Route(b.Address())
	for i := range 100 {
		require.NoError(t, route.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("text"), Payload: fmt.Appendf(nil, "m%d", i)}))
	}
	got := b.host.wait(t, 100)
	for i := range 100 {
		require.Equal(t, fmt.Sprintf("x text m%d", i), got[i])
	}

	buf := make([]byte, 8<<20)
	region, err := b.Regions().Register(buf, rma.RemoteWrite|rma.RemoteRead)
	require.NoError(t, err)
	for _, size := range []int{0, 8, 3000, 64 << 10, 1 << 20, 5<<20 + 7} {
		data := bytes.Repeat([]byte{byte(size), 2, 3}, size/3+1)[:size]
		require.NoError(t, e.Put(ctx, region.Key(), 5, data, rma.Notify(actor.NewPID(b.Address(), "n"), "landed")))
		require.True(t, bytes.Equal(data, buf[5:5+size]), "put of %d", size)
		b.host.wait(t, 1)
		dst := make([]byte, size)
		require.NoError(t, e.Get(ctx, region.Key(), 5, dst))
		require.True(t, bytes.Equal(data, dst), "get of %d", size)
	}
	require.NoError(t, e.Flush(ctx))

	err = e.Put(ctx, region.Key(), uint64(len(buf)), []byte{1})
	require.ErrorIs(t, err, rma.ErrBounds)
	require.NoError(t, region.Revoke())
	require.ErrorIs(t, e.Put(ctx, region.Key(), 0, []byte{1}), rma.ErrRevoked)
	require.ErrorIs(t, e.Get(ctx, region.Key(), 0, make([]byte, 3<<20)), rma.ErrRevoked)

	for i := range 20 {
		require.NoError(t, route.Send(ctx, &Outgoing{Target: NewRef("big"), Type: NewRef("t"), Payload: make([]byte, 1<<20+i)}))
	}
	b.host.wait(t, 20)
	require.Empty(t, a.host.downs)
}

func TestNobodyThere(t *testing.T) {
	a := startNode(t, 1, func(c *Config) { c.OutageLimit = 300 * time.Millisecond })
	_, err := a.Connect(context.Background(), "127.0.0.1:1")
	require.ErrorIs(t, err, rma.ErrNoRoute)
	require.NoError(t, a.Route("127.0.0.1:1").TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t")}))
	require.Eventually(t, func() bool {
		a.host.mu.Lock()
		defer a.host.mu.Unlock()
		return len(a.host.lost) == 1
	}, 10*time.Second, time.Millisecond)
}

func BenchmarkPut(bm *testing.B) {
	for _, rails := range []int{1, 3} {
		for _, size := range []int{8, 64 << 10, 4 << 20} {
			bm.Run(fmt.Sprintf("rails=%d/size=%d", rails, size), func(bm *testing.B) {
				a, b := startNode(bm, rails), startNode(bm, rails)
				e := connect(bm, a, b)
				railsUp(bm, e, rails)
				region, err := b.Regions().Register(make([]byte, 64<<20), rma.RemoteWrite)
				require.NoError(bm, err)
				data := make([]byte, size)
				ops := make(chan *rma.Op, 16)
				bm.SetBytes(int64(size))
				bm.ReportAllocs()
				for bm.Loop() {
					if len(ops) == cap(ops) {
						op := <-ops
						<-op.Done()
						if op.Err() != nil {
							bm.Fatal(op.Err())
						}
					}
					ops <- e.StartPut(region.Key(), 0, data)
				}
				require.NoError(bm, e.Flush(context.Background()))
			})
		}
	}
}
