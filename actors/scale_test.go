package actors

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// This file: numbers as they are in the field. Each test takes a smaller one unless its variable asks for more:
//
//	RAILYARD_RESTARTS=1000 RAILYARD_FLOOD=16384 go test ./actors -run 'Restarts|Flood' -timeout 1h -v

// many is a test's number, or the one that the variable says.
func many(t *testing.T, variable string, usual int) (n int, full bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual, false
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n, true
}

// 10 000 watches of one peer: its death is told 10 000 times, each once, and all within 2 s.
func TestThousandsOfWatches(t *testing.T) {
	const watchers = 100 // each watches as many
	c := startChild(t, "127.0.0.1:0")
	a := node(t)
	type pair struct{ watcher, watched int }
	var mu sync.Mutex
	told := make(map[pair]int)
	count := func(at pair) {
		mu.Lock()
		defer mu.Unlock()
		told[at]++
	}
	reasons := make(chan actor.TerminatedReason, 2*watchers*childActors)
	ready := make(chan struct{}, watchers)
	for i := range watchers {
		names := make(map[string]int, childActors)
		_, err := a.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for k := range childActors {
					names[childActor(k)] = k
					ctx.Watch(actor.NewPID(c.address, childActor(k)))
				}
				ready <- struct{}{}
			case *actor.Terminated:
				count(pair{i, names[m.Who.Id]})
				reasons <- m.Why
			}
		}), fmt.Sprint("watcher", i))
		require.NoError(t, err)
	}
	for range watchers {
		next(t, ready, "a watcher that watches")
	}
	require.Equal(t, watchers*childActors, a.watches.count())
	_, err := a.sys.Root.RequestFuture(actor.NewPID(c.address, "echo"), text("all have come"), patience).Result()
	require.NoError(t, err)
	e, err := a.Connect(testContext(t), c.address)
	require.NoError(t, err)
	c.kill()
	startChild(t, c.address) // another incarnation: its predecessor is gone for certain
	next(t, whenClosed(e.Done()), "the peer's end")
	known := time.Now()
	for range watchers * childActors {
		require.Equal(t, actor.TerminatedReason_AddressTerminated, next(t, reasons, "a Terminated"))
	}
	took := time.Since(known)
	t.Logf("%d watches told within %v", watchers*childActors, took)
	require.Less(t, took, 2*time.Second)
	require.Zero(t, a.watches.count())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, told, watchers*childActors)
	for at, n := range told {
		require.Equal(t, 1, n, "%v", at)
	}
	require.Empty(t, reasons)
}

// A peer that is killed and started again, over and over, at one address: each time its watcher is told, the same PID finds
// its successor, and nothing is kept of it.
func TestRestartsOfAPeer(t *testing.T) {
	rounds, _ := many(t, "RAILYARD_RESTARTS", 8)
	a := node(t)
	w := newWatcher(a)
	c := startChild(t, "127.0.0.1:0")
	address := c.address
	echo, silent := actor.NewPID(address, "echo"), actor.NewPID(address, "silent")
	talk := func() {
		t.Helper()
		// What is sent before the restart is noticed belongs to the peer that is gone, and fails with it.
		require.Eventually(t, func() bool {
			answer, err := a.sys.Root.RequestFuture(echo, text("x"), patience).Result()
			return err == nil && answer.(*wrapperspb.StringValue).GetValue() == "x"
		}, patience, time.Millisecond)
	}
	talk()
	var heap []uint64
	var goroutines []int
	for range rounds {
		w.order(t, silent, false)
		_, err := a.sys.Root.RequestFuture(echo, text("the Watch may have come"), patience).Result()
		require.NoError(t, err)
		c.kill()
		c = startChild(t, address)
		w.once(t, silent, actor.TerminatedReason_AddressTerminated)
		talk()
		heap, goroutines = append(heap, heapInUse()), append(goroutines, runtime.NumGoroutine())
	}
	w.nothing(t)
	require.Zero(t, a.watches.count())
	n := 0
	a.inflows.Range(func(any, any) bool { n++; return true })
	require.LessOrEqual(t, n, 1, "records of ended sessions")
	half := len(heap) / 2
	before, after := slices.Min(heap[:half]), slices.Min(heap[half:])
	t.Logf("%d restarts: heap %d KiB at the least in the first half, %d in the second; goroutines %d, %d", rounds,
		before>>10, after>>10, slices.Min(goroutines[:half]), slices.Min(goroutines[half:]))
	require.LessOrEqual(t, after, before+before/4+256<<10, "the heap grows")
	require.LessOrEqual(t, slices.Min(goroutines[half:]), slices.Min(goroutines[:half])+4)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Messages of 64 KiB, as fast as they go, to an actor that takes a millisecond for each: nothing is lost, memory stays
// bounded at both ends, and another actor of that node is served meanwhile.
func TestFloodOfLargeMessages(t *testing.T) {
	const size, limit = 64 << 10, 200 << 20
	count, full := many(t, "RAILYARD_FLOOD", 512)
	late := 2 * time.Second
	if full {
		late = 20 * time.Millisecond
	}
	from, to := startChild(t, "127.0.0.1:0"), startChild(t, "127.0.0.1:0")
	a := node(t)
	flood := actor.NewPID(from.address, "flood")
	began := time.Now()
	done := a.sys.Root.RequestFuture(flood, text(fmt.Sprintf("%s %d %d", to.address, count, size)), time.Hour)
	ended := make(chan error, 1)
	go func() { ended <- done.Wait() }()
	var waits []time.Duration
	echo := actor.NewPID(to.address, "echo")
	for over := false; !over; {
		asked := time.Now()
		_, err := a.sys.Root.RequestFuture(echo, text("meanwhile"), patience).Result()
		require.NoError(t, err)
		waits = append(waits, time.Since(asked))
		select {
		case err := <-ended:
			require.NoError(t, err)
			over = true
		case <-time.After(time.Millisecond):
		}
	}
	answer, err := done.Result()
	require.NoError(t, err)
	require.EqualValues(t, count, answer.(*wrapperspb.UInt64Value).GetValue(), "what the slow actor has processed, in order")
	slices.Sort(waits)
	p99 := waits[len(waits)*99/100]
	sender, receiver := peak(t, from.cmd.Process.Pid), peak(t, to.cmd.Process.Pid)
	t.Logf("%d messages of 64 KiB in %v; resident at most: sender %d MiB, receiver %d MiB; another actor: %d requests, p99 %v",
		count, time.Since(began).Round(time.Millisecond), sender>>20, receiver>>20, len(waits), p99)
	require.Less(t, p99, late)
	require.Less(t, sender, uint64(limit))
	require.Less(t, receiver, uint64(limit))
}

// peak is the most memory that a process has had resident, in bytes.
func peak(t *testing.T, pid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(b), "VmHWM:")
	require.True(t, found)
	var kib uint64
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib << 10
}
