package endpoint

import (
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
)

func TestLinesOfStrangersAreFew(t *testing.T) {
	l := &lines{}
	now := 5 * time.Second
	let := 0
	for range 1000 {
		if _, ok := l.allow(now); ok {
			let++
		}
	}
	require.Equal(t, linesAtOnce, let)
	_, ok := l.allow(now + lineEvery/2)
	require.False(t, ok)
	hushed, ok := l.allow(now + lineEvery)
	require.True(t, ok)
	require.EqualValues(t, 1000-linesAtOnce+1, hushed, "the next line says how many were left out")
	_, ok = l.allow(now + lineEvery)
	require.False(t, ok)
}

// Strangers that call, say what is no hello, and hang up, take little of a load's rate, and nothing of them stays.
func TestStrangersHarmNoLoad(t *testing.T) {
	noDescriptorLeft(t)
	strangers := sized(300, 10_000)
	bd := newBed(t, rail.KindTCP, bedSpec{rails: 1, both: func(c *Config) { c.Secret, c.Health = callerSecret, patientHealth }})
	region := bd.b.register(t, 1<<20, rma.RemoteWrite)
	data := make([]byte, 1<<20)
	var puts atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if !assert.NoError(t, bd.ab.Put(t.Context(), region.Key(), 0, data)) {
				return
			}
			puts.Add(1)
		}
	})
	rate := func(f func()) float64 {
		before, since := puts.Load(), time.Now()
		f()
		return float64(puts.Load()-before) / time.Since(since).Seconds()
	}
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := memory()
	// The strangers run on this machine too: what they take is measured against a bare listener.
	bare := bareListener(t)
	var calls sync.WaitGroup
	strangersTo := func(n int, dial func() net.Conn) func() {
		return func() {
			next := time.NewTicker(2 * time.Millisecond)
			defer next.Stop()
			for range n {
				<-next.C
				calls.Go(func() {
					conn := dial()
					defer func() { _ = conn.Close() }()
					_, _ = conn.Write([]byte("not a word of a hello, however long one waits for it to make any sense at all"))
					_, _ = io.Copy(io.Discard, conn)
				})
			}
		}
	}
	to := func(address string) func() net.Conn {
		return func() net.Conn {
			conn, err := net.Dial("tcp", address)
			if !assert.NoError(t, err) {
				runtime.Goexit()
			}
			return conn
		}
	}
	quiet := rate(strangersTo(strangers/2, to(bare)))
	busy := rate(strangersTo(strangers, to(bd.b.Listening()[0].Address)))
	calls.Wait()
	close(stop)
	load.Wait()
	t.Logf("%.0f puts a second while strangers call a bare listener, %.0f while %d call the node", quiet, busy, strangers)
	if full {
		require.Greater(t, busy, 0.9*quiet)
	}
	eventually(t, "strangers are forgotten", func() (bool, any) {
		n := bd.b.pendingHandshakes()
		return n == 0, n
	})
	eventually(t, "memory comes back down", func() (bool, any) {
		now := memory()
		return now < before+16<<20, []uint64{before, now}
	})
	bd.nobodyDown()
}

// bareListener takes calls, reads something, and closes them.
func bareListener(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}
