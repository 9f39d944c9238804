package perf

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/actors"
	"railyard/internal/hist"
	"railyard/rail"
)

func TestMain(m *testing.M) {
	// protoactor counts dead letters in a goroutine that ends by itself, a second later.
	const throttle = "github.com/asynkron/protoactor-go/actor."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle+"NewDeadLetter.NewThrottle.func4.1"),
		goleak.IgnoreAnyFunction(throttle+"NewThrottle.func1.1"))
}

const patience = 30 * time.Second

func good() Options {
	return Options{Test: "put-bw", Rails: 1, Time: 50 * time.Millisecond, Window: 4, Senders: 1, Err: io.Discard}
}

func TestOptionsAreChecked(t *testing.T) {
	o := good()
	_, err := o.test()
	require.NoError(t, err)
	assert.EqualValues(t, 4<<20, o.Size, "what suits the test")
	o = good()
	o.Test, o.Window = "put-lat", 99
	_, err = o.test()
	require.NoError(t, err)
	assert.Equal(t, 1, o.Window, "a latency has one operation at a time")

	seen := map[string]bool{}
	for word, harm := range map[string]func(*Options){
		"put-bw, put-lat, get-bw, msg-rate, msg-lat, msg-bw": func(o *Options) { o.Test = "fly" },
		"0 rails":        func(o *Options) { o.Rails = 0 },
		"17 rails":       func(o *Options) { o.Rails = 17 },
		"size -1":        func(o *Options) { o.Size = -1 },
		"size 20000000":  func(o *Options) { o.Test, o.Size = "msg-bw", 20_000_000 },
		"size 9":         func(o *Options) { o.Size = 9 << 30 },
		"time 0s":        func(o *Options) { o.Time = 0 },
		"time 1h0m0s":    func(o *Options) { o.Time = time.Hour },
		"window 0":       func(o *Options) { o.Window = 0 },
		"0 senders":      func(o *Options) { o.Senders = 0 },
		"memory":         func(o *Options) { o.Test, o.Size, o.Window, o.Senders = "get-bw", 1<<30, 2, 2 },
		"another":        func(o *Options) { o.Local = []string{"127.0.0.1"} },
		"10.0.0.1:99999": func(o *Options) { o.To, o.Local = "x", []string{"10.0.0.1:99999"} },
		"both use":       func(o *Options) { o.To, o.Local = "x", []string{"10.0.0.1:1", "10.0.0.1:1"} },
	} {
		o := good()
		harm(&o)
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, word)
		assert.Contains(t, err.Error(), word)
		assert.False(t, seen[err.Error()], "two errors share a message")
		seen[err.Error()] = true
	}
}

// target serves in this process until the test ends or stop is called.
func target(t *testing.T, o ServeOptions) (address string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	if o.Rails == nil {
		o.Rails = loopback(1)
	}
	o.Ready = func(a string) { ready <- a }
	go func() { ended <- Serve(ctx, o) }()
	var err error
	done := false
	stop = func() error {
		if cancel(); !done {
			done, err = true, <-ended
		}
		return err
	}
	t.Cleanup(func() { assert.NoError(t, stop()) })
	select {
	case address = <-ready:
	case err := <-ended:
		t.Fatalf("the target does not serve: %v", err)
	case <-time.After(patience):
		t.Fatal("the target does not come up")
	}
	return address, stop
}

func TestEveryTestMeasuresAndVerifies(t *testing.T) {
	address, _ := target(t, ServeOptions{})
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			o := good()
			o.Test, o.To, o.Local, o.Verify, o.Senders = k.name, address, []string{"127.0.0.1"}, true, 2
			o.Size = min(k.size, 64<<10)
			for range 40 { // a busy machine may end no operation in the time
				watched := 0
				o.Progress = func(string) { watched++ }
				r, err := Run(t.Context(), o)
				if errors.Is(err, ErrFailed) && r.Ops == 0 && r.Errors == 0 && r.Bad == 0 {
					o.Time = min(2*o.Time, 5*time.Second)
					continue
				}
				require.NoError(t, err)
				assert.Equal(t, k.name, r.Test)
				assert.Positive(t, r.Ops)
				assert.Equal(t, r.Ops*uint64(o.Size), r.Bytes)
				assert.Positive(t, r.Seconds)
				assert.Positive(t, r.OpsPerS)
				assert.Equal(t, 1, r.Rails)
				assert.Positive(t, r.Verified)
				assert.Zero(t, r.Bad)
				assert.Zero(t, r.Lost)
				assert.Zero(t, r.Doubled)
				assert.Zero(t, r.Errors)
				assert.Positive(t, watched)
				assert.Equal(t, k.stream(), r.P50 == nil)
				assert.Contains(t, r.Text(), "0 of them wrong")
				return
			}
			t.Fatal("not one operation in any time")
		})
	}
}

func TestTargetThatLeavesIsAnErrorAndNoHang(t *testing.T) {
	for _, name := range []string{"put-bw", "msg-rate", "msg-lat"} {
		t.Run(name, func(t *testing.T) {
			address, stop := target(t, ServeOptions{})
			o := good()
			o.Test, o.To, o.Local, o.Time = name, address, []string{"127.0.0.1"}, time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			o.Progress = func(string) { _ = stop() }
			began := time.Now()
			_, err := Run(ctx, o)
			require.Error(t, err)
			assert.Less(t, time.Since(began), 2*time.Minute)
		})
	}
}

func TestNobodyThereIsSaid(t *testing.T) {
	o := good()
	o.To, o.Local = "127.0.0.1:1", []string{"127.0.0.1"}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := Run(ctx, o)
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorContains(t, err, "perf serve")
}

func TestTimelineHasRunningTotals(t *testing.T) {
	ports := freePorts(t, 2)
	path := filepath.Join(t.TempDir(), "timeline")
	rails := []rail.Binding{rail.TCP(ports[0]), rail.TCP(ports[1])}
	address, stop := target(t, ServeOptions{Rails: rails, Timeline: path})
	o := good()
	o.To, o.Local, o.Time, o.Size = address, []string{"127.0.0.1", "127.0.0.1"}, time.Second, 64<<10
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	time.Sleep(5 * sampleEvery)
	require.NoError(t, stop())

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var before []int64
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Greater(t, len(lines), 20)
	for _, line := range lines {
		var row []int64
		for _, word := range strings.Fields(line) {
			n, err := strconv.ParseInt(word, 10, 64)
			require.NoError(t, err)
			row = append(row, n)
		}
		require.Len(t, row, 4, "unix_ns total rail0 rail1")
		for i := range before {
			require.GreaterOrEqual(t, row[i], before[i], "totals only grow")
		}
		before = row
	}
	assert.GreaterOrEqual(t, before[1], int64(r.Bytes))
	assert.Positive(t, before[2])
	assert.Positive(t, before[3])
	assert.InDelta(t, before[1], before[2]+before[3], float64(before[1])/2)
}

func freePorts(t *testing.T, n int) (addresses []string) {
	t.Helper()
	for range n {
		system := quietSystem()
		node, err := actors.Start(system, actors.Config{Rails: loopback(1)})
		require.NoError(t, err)
		addresses = append(addresses, node.Address())
		defer func() {
			require.NoError(t, node.Shutdown(context.Background()))
			system.Shutdown()
		}()
	}
	return addresses
}

func TestTimelineThatCannotBeWritten(t *testing.T) {
	err := Serve(t.Context(), ServeOptions{Timeline: filepath.Join(t.TempDir(), "no", "such", "place")})
	require.ErrorContains(t, err, "timeline")
	err = writeSample(bufio.NewWriterSize(broken{}, 16), time.Unix(1, 0), 5, []uint64{6, 7, 8, 9, 10})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	require.NoError(t, writeSample(w, time.Unix(1, 5), 30, []uint64{10, 20}))
	require.NoError(t, w.Flush())
	assert.Equal(t, "1000000005 30 10 20\n", b.String())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// asker asks a control actor without a network. The target watches the initiators that are given.
func asker(t *testing.T, initiators ...string) (*server, func(any) any) {
	t.Helper()
	system := quietSystem()
	node, err := actors.Start(system, actors.Config{Rails: loopback(1)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, node.Shutdown(context.Background()))
		system.Shutdown()
	})
	s := &server{node: node, system: system}
	require.NoError(t, s.spawn())
	for _, name := range initiators {
		_, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), name)
		require.NoError(t, err)
	}
	return s, func(m any) any {
		answer, err := system.Root.RequestFuture(actor.NewPID(system.Address(), controlName), m, patience).Result()
		require.NoError(t, err)
		return answer
	}
}

func TestTargetFindsWrongBytes(t *testing.T) {
	_, ask := asker(t, "i")
	require.Empty(t, ask(&Prepare{Initiator: "i", Region: 4096}).(*Ready).Refused)
	expected := make([]byte, 4096)
	Fill(expected)
	inspect := func(size, count uint64, sum uint32) *Inspected {
		return ask(&Inspect{Initiator: "i", Size: size, Count: count, Sum: sum}).(*Inspected)
	}
	assert.Zero(t, inspect(4096, 1, sumOf(expected)).Bad)
	assert.EqualValues(t, 1, inspect(4096, 1, 1).Bad)
	assert.EqualValues(t, 3, inspect(1024, 4, sumOf(expected[:1024])).Bad, "only the first is like the first")
	for _, m := range []*Inspected{inspect(0, 1, 0), inspect(8192, 1, 0), inspect(1024, 5, 0), inspect(1024, 1<<62, 0)} {
		assert.Contains(t, m.Refused, "are not in a region")
	}
	assert.Contains(t, ask(&Inspect{Initiator: "j", Size: 1, Count: 1}).(*Inspected).Refused, "prepared")
}

func TestTargetLendsMemoryWithinBounds(t *testing.T) {
	names := []string{"i"}
	for i := range maxPrepared {
		names = append(names, strconv.Itoa(i))
	}
	s, ask := asker(t, names...)
	spare := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.spare)
	}
	assert.Contains(t, ask(&Prepare{Initiator: "i", Region: MaxSize + 1}).(*Ready).Refused, "more than")
	first := ask(&Prepare{Initiator: "i", Region: 4096}).(*Ready)
	second := ask(&Prepare{Initiator: "i", Region: 4096, Readable: true}).(*Ready)
	assert.NotEqual(t, first.Key, second.Key, "a new test has a new key")
	assert.Zero(t, spare(), "and the memory of the one before")
	for i := range maxPrepared - 1 {
		require.Empty(t, ask(&Prepare{Initiator: strconv.Itoa(i)}).(*Ready).Refused)
	}
	last := &Prepare{Initiator: strconv.Itoa(maxPrepared - 1)}
	assert.Contains(t, ask(last).(*Ready).Refused, "limit")
	ask(&Prepare{Initiator: "nobody"}) // refused, so nothing is left behind

	_ = s.system.Root.StopFuture(actor.NewPID(s.system.Address(), "i")).Wait()
	require.Eventually(t, func() bool { return spare() == 1 }, patience, time.Millisecond, "its end gives the memory back")
	require.Empty(t, ask(last).(*Ready).Refused)
}

func TestResultOfNothing(t *testing.T) {
	r := Result{Settings: Settings{Verify: true}}
	r.rates()
	r.times(&hist.Histogram{})
	assert.Nil(t, r.P50)
	require.ErrorContains(t, r.verdict(), "not one operation")
	r.Ops, r.Bad = 1, 1
	require.ErrorContains(t, r.verdict(), "not what was sent")
	r.Errors, r.FirstErr = 3, "oops"
	require.ErrorContains(t, r.verdict(), "oops")
	require.ErrorIs(t, r.verdict(), ErrFailed)
	assert.InDelta(t, 1.23, round(1.2345, 2), 1e-9)
}
