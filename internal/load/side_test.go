package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/internal/clock"
	"railyard/rma"
)

func TestMain(m *testing.M) {
	// protoactor counts dead letters in a goroutine that ends by itself, a second later.
	const throttle = "github.com/asynkron/protoactor-go/actor."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle+"NewDeadLetter.NewThrottle.func4.1"),
		goleak.IgnoreAnyFunction(throttle+"NewThrottle.func1.1"))
}

const patience = 20 * time.Second

// host is a node's memory without a node.
type host struct{ table *rma.Table }

func (h host) Alloc(size int) ([]byte, error) { return make([]byte, size), nil }
func (h host) Register(b []byte, r rma.Rights) (*rma.Region, error) {
	return h.table.Register(b, r)
}

// wireless stands for an endpoint: it puts by copying, well or badly.
type wireless struct {
	table  *rma.Table // the target's
	system *actor.ActorSystem
	work   sync.WaitGroup

	puts    atomic.Int64
	corrupt atomic.Int64 // so many puts arrive with a byte changed
	late    atomic.Int64 // so many puts are written once more, later
	fail    atomic.Int64 // so many puts fail for good
	deaf    atomic.Int64 // so many notifies are lost
	twice   atomic.Int64 // so many notifies come twice
}

// flight is one put under way.
type flight struct {
	mu       sync.Mutex
	canceled bool
	done     bool
}

func (f *flight) CancelOp(_ context.Context, op *rma.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.canceled = true
	if !f.done {
		op.Complete(rma.ErrCanceled)
	}
	return nil
}

func (w *wireless) StartPut(key rma.Key, offset uint64, data []byte, opts ...rma.Option) *rma.Op {
	f := &flight{}
	op := rma.NewOp(rma.OpConfig{Kind: rma.PutOp, Key: key, Offset: offset, Data: data, Options: rma.Apply(opts), Canceler: f})
	w.puts.Add(1)
	w.work.Go(func() { w.carry(op, f) })
	return op
}

func (w *wireless) carry(op *rma.Op, f *flight) {
	time.Sleep(2 * time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.canceled {
		return
	}
	f.done = true
	claim := rma.Claim{Region: op.Key().Region(), Token: op.Key().Token(), Want: rma.RemoteWrite,
		Offset: op.Offset(), Length: op.Len()}
	region, code := w.table.Check(claim)
	data := append([]byte(nil), op.Data()...)
	notify := op.Options().NotifyPID
	if notify != nil && w.corrupt.Add(-1) >= 0 {
		data[0] ^= 1
	}
	if err := rma.CodeError(code); err != nil || !region.Write(op.Offset(), data) {
		op.Complete(rma.ErrRevoked)
		return
	}
	if notify != nil && w.fail.Add(-1) >= 0 {
		op.Complete(rma.ErrEndpointDown)
		return
	}
	if notify != nil {
		for range w.notifies() {
			w.system.Root.Send(notify.(*actor.PID), op.Options().NotifyMessage)
		}
		if w.late.Add(-1) >= 0 {
			w.work.Go(func() {
				time.Sleep(300 * time.Millisecond)
				region.Write(op.Offset(), data)
			})
		}
	}
	op.Complete(nil)
}

func (w *wireless) notifies() int {
	switch {
	case w.deaf.Add(-1) >= 0:
		return 0
	case w.twice.Add(-1) >= 0:
		return 2
	}
	return 1
}

// world is two sides in one actor system.
type world struct {
	t     *testing.T
	sys   *actor.ActorSystem
	sides [2]*Side
	air   [2]*wireless // air[i] carries what sides[i] puts
}

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, sys: actor.NewActorSystem(actor.WithLoggerFactory(
		func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))}
	t.Cleanup(w.sys.Shutdown)
	names := [2]string{"a", "b"}
	var tables [2]*rma.Table
	for i := range names {
		config := Config{
			Name: names[i], OtherName: names[1-i], Pairs: 3, Putters: 3, Slots: 6, SlotSize: 1<<20 + Scratch,
			MaxPut: 256 << 10, MessageRate: 500, PutRate: 20e6, CancelShare: 0.05, RevokeShare: 0.03,
			CancelWait: patience, Watch: 500 * time.Millisecond, Seed: uint64(i), Now: clock.Now,
		}
		if change != nil {
			change(&config)
		}
		tables[i] = newTable()
		var err error
		w.sides[i], err = NewSide(w.sys, host{tables[i]}, config)
		require.NoError(t, err)
	}
	for i := range w.air {
		w.air[i] = &wireless{table: tables[1-i], system: w.sys}
	}
	return w
}

// run lets the load run for a while and gives what both sides counted.
func (w *world) run(d time.Duration, meanwhile func()) (Counters, []string) {
	w.t.Helper()
	for i, s := range w.sides {
		require.NoError(w.t, s.Start(w.air[i], w.sys.Address()))
	}
	if meanwhile != nil {
		meanwhile()
	}
	time.Sleep(d)
	for _, s := range w.sides {
		s.Stop()
	}
	deadline := time.Now().Add(2 * time.Second)
	for time.Now().Before(deadline) && w.sides[0].Report(0, 0).Pending+w.sides[1].Report(0, 0).Pending > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	for _, a := range w.air {
		a.work.Wait()
	}
	var sum Counters
	var notes []string
	for _, s := range w.sides {
		require.NoError(w.t, s.Finish())
		r := s.Report(0, 0)
		sum = sum.Add(r.Counters)
		notes = append(notes, r.Notes...)
		s.Close()
	}
	return sum, notes
}

func TestLoadRunsCleanOnACleanWorld(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Filler = true })
	sum, notes := w.run(2*time.Second, nil)
	assert.Empty(t, sum.Broken(), "%+v", sum)
	assert.Empty(t, notes)
	assert.Greater(t, sum.Sent, uint64(1000))
	assert.Greater(t, sum.Puts, uint64(50))
	assert.Positive(t, sum.Canceled)
	assert.Positive(t, sum.Revoked)
	assert.Positive(t, sum.PutBytes)
}

// Each zero that the demo promises can become something else.
func TestLoadNoticesEachTrouble(t *testing.T) {
	forge := func(w *world, pair uint32, sequence uint64, from string) {
		m := &Numbered{Pair: pair, Sequence: sequence}
		m.Sum = sumOf(m)
		w.sys.Root.RequestWithCustomSender(w.sides[1].own(fmt.Sprintf("sink-%d", pair)), m, w.sides[0].own(from))
	}
	wait := func(w *world) { // until the numbers below have been used
		require.Eventually(t, func() bool { return w.sides[1].Report(0, 0).Counters.Delivered > 100 }, patience, time.Millisecond)
	}
	for word, harm := range map[string]func(*world){
		"lost": func(w *world) { _ = w.sys.Root.StopFuture(w.sides[1].own("sink-0")).Wait() },
		"doubled": func(w *world) {
			wait(w)
			forge(w, 1, 5, "source-1")
		},
		"reordered": func(w *world) {
			forge(w, 2, 1_000_000, "source-2")
		},
		"corrupted":   func(w *world) { forge(w, 1, 1, "source-2") },
		"corrupted: ": func(w *world) { w.air[0].corrupt.Store(5) },
		"late_writes": func(w *world) { w.air[1].late.Store(10) },
		"puts":        func(w *world) { w.air[0].fail.Store(1) },
		"notify":      func(w *world) { w.air[0].deaf.Store(1) },
		"doubled: ":   func(w *world) { w.air[0].twice.Store(1) },
		"endpoint_errors": func(w *world) {
			w.sides[0].Fault("endpoint down: %v", errors.New("made up"))
		},
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			// A revoke excuses whatever happens to its slot.
			w := newWorld(t, func(c *Config) { c.RevokeShare = 0 })
			sum, notes := w.run(time.Second, func() { harm(w) })
			assert.Contains(t, fmt.Sprint(sum.Broken()), word, "%+v", sum)
			if word != "lost" && word != "notify" {
				assert.NotEmpty(t, notes)
			}
		})
	}
}

func TestStandstillIsSeen(t *testing.T) {
	w := newWorld(t, nil)
	var from, to time.Duration
	w.run(300*time.Millisecond, func() {
		require.Eventually(t, func() bool { return w.sides[1].Report(0, 0).Counters.Delivered > 100 }, patience, time.Millisecond)
		from = clock.Now()
		w.sides[1].mu.Lock() // nothing is delivered meanwhile
		time.Sleep(200 * time.Millisecond)
		w.sides[1].mu.Unlock()
		to = clock.Now()
		require.Eventually(t, func() bool {
			worst := w.sides[1].Report(from, to).Worst
			return worst.Length() >= 150*time.Millisecond && worst.Length() < 5*time.Second
		}, patience, time.Millisecond)
	})
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Name: "a", OtherName: "b", Pairs: 1, Putters: 1, Slots: 2, SlotSize: 1000, MaxPut: 100,
		MessageRate: 1, PutRate: 1, CancelWait: 1, Watch: 1, Now: clock.Now}
	require.NoError(t, good.Validate())
	seen := map[string]bool{}
	for name, harm := range map[string]func(*Config){
		"name":    func(c *Config) { c.Name = "" },
		"pairs":   func(c *Config) { c.Pairs = 0 },
		"slots":   func(c *Config) { c.Slots = 1 },
		"put":     func(c *Config) { c.MaxPut = 1000 },
		"rate":    func(c *Config) { c.PutRate = 0 },
		"share":   func(c *Config) { c.CancelShare = 1.5 },
		"watch":   func(c *Config) { c.Watch = 0 },
		"too big": func(c *Config) { c.Pairs = 5000 },
	} {
		c := good
		harm(&c)
		err := c.Validate()
		require.ErrorIs(t, err, ErrConfig, name)
		assert.False(t, seen[err.Error()], "two errors share a message: %v", err)
		seen[err.Error()] = true
		_, err = NewSide(nil, nil, c)
		require.Error(t, err)
	}
}
