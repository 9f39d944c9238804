package rma

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/wire"
)

const patience = 20 * time.Second

// within fails the test if done is not closed in time.
func within(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
	}
}

// started runs f and gives a channel that is closed when it has returned.
func started(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func TestRegionWriteAndRead(t *testing.T) {
	_, r := registered(t, 8, allRights)
	require.True(t, r.Write(2, []byte("abc")))
	require.Equal(t, []byte("\x00\x00abc\x00\x00\x00"), r.Bytes())
	got := make([]byte, 3)
	require.True(t, r.Read(2, got))
	require.Equal(t, "abc", string(got))
	require.True(t, r.Write(8, nil), "nothing, at the very end")

	require.False(t, r.Write(6, []byte("abc")), "over the end")
	require.False(t, r.Write(^uint64(0), []byte("ab")), "wraps round")
	require.False(t, r.Read(6, got))
	require.Equal(t, "abc", string(got))

	require.NoError(t, r.Revoke())
	require.False(t, r.Write(0, []byte("z")))
	require.False(t, r.Read(0, got))
	require.False(t, r.Enter())
	require.True(t, r.Revoked())
	require.Equal(t, []byte("\x00\x00abc\x00\x00\x00"), r.Bytes(), "the owner still has its memory")
	require.Equal(t, wire.CodeRevoked, r.Check(claimOn(r)))
}

func TestRevokeWaitsForWhoIsIn(t *testing.T) {
	table, r := registered(t, 8, allRights)
	require.True(t, r.Enter())
	require.True(t, r.Enter())
	first := started(func() { _ = r.Revoke() })
	for !r.Revoked() {
		runtime.Gosched()
	}
	second := started(func() { _ = r.Revoke() })
	require.False(t, r.Enter(), "a revoke that waits is not to be kept waiting by new ones")
	_, code := table.Check(claimOn(r))
	require.Equal(t, wire.CodeRevoked, code, "a revoke that waits is known already")

	r.Leave()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-first:
		t.Fatal("the first revoke returned while a call was in")
	case <-second:
		t.Fatal("the second revoke returned while a call was in")
	default:
	}
	require.Equal(t, 1, table.Live())
	r.Leave()
	within(t, first, "the first revoke's return")
	within(t, second, "the second revoke's return")
	require.Zero(t, table.Live())
}

func TestLeaveWithoutEnterPanics(t *testing.T) {
	_, r := registered(t, 8, allRights)
	require.Panics(t, r.Leave)
}

// P4: not one byte changes after Revoke has returned. The race detector watches the same.
func TestNothingLandsAfterRevoke(t *testing.T) {
	table := NewTable(rand.Reader, 0)
	const size, writers = 64 << 10, 4
	for range 30 {
		r, err := table.Register(make([]byte, size), allRights)
		require.NoError(t, err)
		var landed atomic.Int64
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				// Each its own quarter: overlapping puts race by nature, which is not what is
				// tested.
				p := make([]byte, size/writers)
				for v := byte(1); r.Write(uint64(w*len(p)), p); v++ {
					landed.Add(1)
					for i := range p {
						p[i] = v
					}
				}
			})
		}
		for landed.Load() < writers {
			runtime.Gosched()
		}
		require.NoError(t, r.Revoke())
		then := bytes.Clone(r.Bytes())
		for i := range r.Bytes() {
			r.Bytes()[i] = 0xEE
		}
		all.Wait()
		for i, b := range r.Bytes() {
			if b != 0xEE {
				t.Fatalf("byte %d was written after the revoke (it held %d then)", i, then[i])
			}
		}
	}
}

func TestRevokeIsNotStarved(t *testing.T) {
	_, r := registered(t, 64, allRights)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !r.Enter() {
					return
				}
				runtime.Gosched()
				r.Leave()
			}
		})
	}
	within(t, started(func() { _ = r.Revoke() }), "the revoke")
	close(stop)
	all.Wait()
}

// The moment between an enterer's look and its count, in which the lease is closed.
func TestEnterThatIsOvertakenByAClose(t *testing.T) {
	var l lease
	l.init()
	require.True(t, l.join())
	closing := started(l.close)
	for !l.closed() {
		runtime.Gosched()
	}
	require.False(t, l.join())
	l.leave()
	within(t, closing, "the close")
	require.False(t, l.join(), "after the close has ended")
	require.Equal(t, uint64(leaseClosed|leaseDrained), l.state.Load())
}

// Enterers that fail pass through the count of users for a moment; none may make the revoke's end
// be missed.
func TestRevokeAgainstEnterersManyTimes(t *testing.T) {
	table := NewTable(rand.Reader, 0)
	done := started(func() {
		for range 2000 {
			r, err := table.Register(make([]byte, 1), allRights)
			if err != nil {
				t.Error(err)
				return
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					for r.Enter() {
						r.Leave()
					}
				})
			}
			_ = r.Revoke()
			all.Wait()
		}
	})
	within(t, done, "2000 revokes")
}

func TestScatterBracketsTheRead(t *testing.T) {
	_, r := registered(t, 8, allRights)
	chunk, ok := r.Slice(0, 4)
	require.True(t, ok)
	s := Scatter{First: chunk, Region: r}
	require.True(t, s.Acquire())
	revoke := started(func() { _ = r.Revoke() })
	for !r.Revoked() {
		runtime.Gosched()
	}
	select {
	case <-revoke:
		t.Fatal("revoked during a read call")
	default:
	}
	s.Release()
	within(t, revoke, "the revoke")
	require.False(t, s.Acquire())

	plain := Scatter{First: make([]byte, 1)}
	require.True(t, plain.Acquire())
	plain.Release()
}

func TestGatherPadsWhatIsRevoked(t *testing.T) {
	_, kept := registered(t, 8, allRights)
	_, gone := registered(t, 8, allRights)
	copy(kept.Bytes(), "kept....")
	copy(gone.Bytes(), "secret..")

	var g Gather
	g.Add([]byte("head"))
	g.AddPinned(kept.Bytes(), kept)
	g.Add(nil)
	g.AddPinned(gone.Bytes()[:6], gone)
	g.AddPinned(gone.Bytes()[6:], gone)
	g.AddPinned(nil, gone)
	require.Equal(t, 20, g.Size())
	require.Len(t, g.Bufs, 4)
	require.Len(t, g.Pins, 3)

	g.Acquire()
	require.Equal(t, "headkept....secret..", string(bytes.Join(g.Bufs, nil)))
	revoke := started(func() { _ = gone.Revoke() })
	for !gone.Revoked() {
		runtime.Gosched()
	}
	select {
	case <-revoke:
		t.Fatal("revoked during a write call")
	default:
	}
	g.Release()
	within(t, revoke, "the revoke of a region that is pinned twice")

	g.Acquire()
	require.Equal(t, "headkept....\x00\x00\x00\x00\x00\x00\x00\x00", string(bytes.Join(g.Bufs, nil)))
	require.Equal(t, []bool{false, true, true}, []bool{g.Pins[0].Padded, g.Pins[1].Padded, g.Pins[2].Padded})
	require.Equal(t, 20, g.Size())
	g.Release()
	g.Release()
	g.Acquire()
	g.Release()
	require.NoError(t, kept.Revoke(), "a lease was kept, or given back twice")
	require.Equal(t, "secret..", string(gone.Bytes()))
}

// Two plans that hold each other's regions, whose owners revoke both: nobody may wait for anybody.
func TestGathersOfTheSameRegionsDoNotDeadlock(t *testing.T) {
	for range 200 {
		_, a := registered(t, 8, allRights)
		_, b := registered(t, 8, allRights)
		done := started(func() {
			var all sync.WaitGroup
			for _, order := range [][2]*Region{{a, b}, {b, a}} {
				all.Go(func() {
					var g Gather
					for range 20 {
						g.Reset()
						g.AddPinned(order[0].Bytes(), order[0])
						g.AddPinned(order[1].Bytes(), order[1])
						g.AddPinned(order[0].Bytes(), order[0])
						g.Acquire()
						runtime.Gosched()
						g.Release()
					}
				})
			}
			all.Go(func() { _ = a.Revoke() })
			all.Go(func() { _ = b.Revoke() })
			all.Wait()
		})
		within(t, done, "the plans' end")
	}
}

func TestGatherLimitsAndReuse(t *testing.T) {
	_, r := registered(t, MaxPinned+1, allRights)
	var g Gather
	require.Panics(t, func() { g.AddPinned(r.Bytes(), r) })
	g.AddPinned(r.Bytes()[:MaxPinned], r)
	require.NoError(t, r.Revoke())
	g.Acquire()
	require.Len(t, g.Bufs[0], MaxPinned)
	require.Equal(t, MaxPinned, cap(g.Bufs[0]))
	g.Release()

	g.Reset()
	require.Zero(t, g.Size())
	require.Empty(t, g.Bufs)
	require.Empty(t, g.Pins)
	require.Nil(t, g.Pins[:1][0].Region, "a reset plan keeps a region alive")
	require.Nil(t, g.Bufs[:1][0], "a reset plan keeps a buffer alive")
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	table, r := registered(t, 4096, allRights)
	claim := claimOn(r)
	wrong := claim
	wrong.Region = 12345
	p := make([]byte, 64)
	head := make([]byte, 64)
	g := new(Gather)
	for name, f := range map[string]func(){
		"Check": func() {
			if _, code := table.Check(claim); code != wire.CodeOK {
				panic(code)
			}
		},
		"Check, no region": func() { table.Check(wrong) },
		"Region.Check":     func() { r.Check(claim) },
		"Enter, Leave":     func() { r.Enter(); r.Leave() },
		"Write":            func() { r.Write(8, p) },
		"Read":             func() { r.Read(8, p) },
		"Gather": func() {
			g.Reset()
			g.Add(head)
			g.AddPinned(r.Bytes()[:64], r)
			g.Acquire()
			g.Release()
		},
		"Apply nothing": func() { Apply(nil) },
		"Fence":         func() { _ = Fence() },
	} {
		f()
		assert.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

func TestOptions(t *testing.T) {
	pid := fakePID("node/actor")
	o := Apply([]Option{Notify(pid, "first"), nil, Fence(), Notify(pid, "last")})
	assert.Equal(t, Options{NotifyPID: pid, NotifyMessage: "last", Fence: true}, o)
	assert.Equal(t, Options{}, Apply(nil))
	assert.Equal(t, Options{}, Apply([]Option{}))
}

type fakePID string

func (p fakePID) GetAddress() string { return "node" }
func (p fakePID) GetId() string      { return string(p) }

func BenchmarkCheck(b *testing.B) {
	for _, regions := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("regions=%d", regions), func(b *testing.B) {
			table := NewTable(rand.Reader, 0)
			var claim Claim
			for range regions {
				r, err := table.Register(make([]byte, 8), allRights)
				require.NoError(b, err)
				claim = claimOn(r)
			}
			b.ReportAllocs()
			for b.Loop() {
				table.Check(claim)
			}
		})
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	_, r := registered(b, 8, allRights)
	b.ReportAllocs()
	for b.Loop() {
		r.Enter()
		r.Leave()
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{8, 4096, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			_, r := registered(b, size, allRights)
			p := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.Write(0, p)
			}
		})
	}
}
