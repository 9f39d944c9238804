package cable

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must happen; shortly is how long something that must not happen is watched.
const (
	patience = 10 * time.Second
	shortly  = 150 * time.Millisecond
)

// bench is a cable to a target whose connections the test holds.
type bench struct {
	t      *testing.T
	cable  *Cable
	target *net.TCPListener
}

func newBench(t *testing.T, config Config) *bench {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config.Address, config.Target = "127.0.0.1:0", listener.Addr().String()
	c, err := Listen(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Close())
		_ = listener.Close()
		assert.Zero(t, c.Connections())
	})
	return &bench{t, c, listener.(*net.TCPListener)}
}

func (b *bench) dial() *net.TCPConn {
	b.t.Helper()
	conn, err := net.DialTimeout("tcp", b.cable.Addr(), patience)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// accept takes the next connection at the target, or fails after so long.
func (b *bench) accept(wait time.Duration) (*net.TCPConn, error) {
	_ = b.target.SetDeadline(time.Now().Add(wait))
	conn, err := b.target.AcceptTCP()
	if err == nil {
		b.t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// refused dials and expects a reset, in the dial or behind it: the kernel's accept queue may let a dialer in
// before the cable throws it out.
func (b *bench) refused() {
	b.t.Helper()
	conn, err := net.DialTimeout("tcp", b.cable.Addr(), patience)
	if err != nil {
		require.ErrorIs(b.t, err, syscall.ECONNRESET)
		return
	}
	defer conn.Close()
	expectReset(b.t, conn)
}

func (b *bench) pair() (near, far *net.TCPConn) {
	b.t.Helper()
	near = b.dial()
	far, err := b.accept(patience)
	require.NoError(b.t, err)
	return near, far
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
}

func expect(t *testing.T, c net.Conn, text string) {
	t.Helper()
	buf := make([]byte, len(text))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.ReadFull(c, buf)
	require.NoError(t, err)
	require.Equal(t, text, string(buf))
}

func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(shortly))
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), "want silence, got %v", err)
}

func expectReset(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestForwardsBothWaysAndCounts(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	data := make([]byte, 8<<20)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(data)
	for _, way := range []struct{ src, dst *net.TCPConn }{{near, far}, {far, near}} {
		sum := make(chan [32]byte, 1)
		go func() {
			got, _ := io.ReadAll(way.dst)
			sum <- sha256.Sum256(got)
		}()
		_, err := io.Copy(way.src, bytes.NewReader(data))
		require.NoError(t, err)
		require.NoError(t, way.src.CloseWrite(), "the end of a stream is carried too")
		require.Equal(t, sha256.Sum256(data), <-sum)
	}
	toTarget, toSource := b.cable.Carried()
	assert.EqualValues(t, len(data), toTarget)
	assert.EqualValues(t, len(data), toSource)
}

func TestResetReachesBothEndsAndRefusesUntilHeal(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	b.cable.Cut(Reset)
	expectReset(t, near)
	expectReset(t, far)

	b.refused()
	_, err := b.accept(shortly)
	require.Error(t, err, "the target must not hear of it")

	b.cable.Heal()
	near, far = b.pair()
	send(t, near, "hello")
	expect(t, far, "hello")
}

func TestRefuseLeavesWhatIsConnected(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	b.cable.Cut(Refuse)
	b.refused()
	send(t, near, "still here")
	expect(t, far, "still here")
}

func TestBlackHoleHoldsAndReleases(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	b.cable.Cut(BlackHole)
	send(t, near, "late")
	send(t, far, "tardy")
	expectSilence(t, far)
	expectSilence(t, near)
	assert.EqualValues(t, 9, b.cable.InFlight())

	hung := b.dial()
	_, err := b.accept(shortly)
	require.Error(t, err, "a new connection hangs")

	b.cable.Heal()
	expect(t, far, "late")
	expect(t, near, "tardy")
	_, err = b.accept(patience)
	require.NoError(t, err)
	_ = hung.Close()
}

func TestBlackHoleForgetsDialersThatGaveUp(t *testing.T) {
	b := newBench(t, Config{})
	b.cable.Cut(BlackHole)
	_ = b.dial().Close()
	require.Eventually(t, func() bool { return b.cable.Connections() == 1 }, patience, time.Millisecond)
	b.cable.Heal()
	require.Eventually(t, func() bool { return b.cable.Connections() == 0 }, patience, time.Millisecond)
	_, err := b.accept(shortly)
	require.Error(t, err)
}

func TestOneWayLosesOneDirection(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		turn  bool
	}{{OneWayToTarget, false}, {OneWayToSource, true}} {
		t.Run(c.fault.String(), func(t *testing.T) {
			b := newBench(t, Config{})
			lost, passing := b.pair()
			if c.turn {
				lost, passing = passing, lost
			}
			b.cable.Cut(c.fault)
			send(t, passing, "back")
			expect(t, lost, "back")
			send(t, lost, "forth")
			expectSilence(t, passing)
			b.cable.Heal()
			expect(t, passing, "forth")
		})
	}
}

// A reset is a packet too: in a black hole nobody hears of it, and what was on its way arrives first.
func TestBlackHoleHidesAResetAndKeepsLateBytes(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	b.cable.Cut(BlackHole)
	send(t, near, "late")
	require.Eventually(t, func() bool { return b.cable.InFlight() == 4 }, patience, time.Millisecond)
	time.Sleep(shortly / 5) // lets the pump take the bytes, which a reset of the socket would discard
	require.NoError(t, near.SetLinger(0))
	require.NoError(t, near.Close())
	expectSilence(t, far)
	b.cable.Heal()
	expect(t, far, "late")
	expectReset(t, far)
}

// A write that is stuck because the receiver does not read must not leak through a cut.
func TestCutInterruptsAStuckWrite(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	stop := make(chan struct{})
	sent := make(chan int, 1)
	go func() {
		total := 0
		_ = near.SetWriteDeadline(time.Now().Add(patience))
		for {
			select {
			case <-stop:
				sent <- total
				return
			default:
			}
			_ = near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			n, _ := near.Write(make([]byte, 64<<10))
			total += n
		}
	}()
	last := uint64(1)
	require.Eventually(t, func() bool { // until everything is full
		n := b.cable.InFlight()
		stuck := n == last
		last = n
		return stuck && n > 0
	}, patience, 100*time.Millisecond)
	b.cable.Cut(BlackHole)
	require.Eventually(t, func() bool { // what the kernel had taken may pass, no more
		_ = far.SetReadDeadline(time.Now().Add(shortly))
		n, err := io.Copy(io.Discard, far)
		return n == 0 && err != nil
	}, patience, time.Millisecond)
	assert.Positive(t, b.cable.InFlight())
	close(stop)
	total := <-sent
	b.cable.Heal()
	_ = near.CloseWrite()
	_ = far.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, far)
	require.NoError(t, err)
	toTarget, _ := b.cable.Carried()
	assert.EqualValues(t, total, toTarget, "nothing is lost by the interruption")
}

func TestCutBusyCatchesBytesInFlight(t *testing.T) {
	for _, fault := range []Fault{Reset, BlackHole, OneWayToTarget, OneWayToSource} {
		t.Run(fault.String(), func(t *testing.T) {
			b := newBench(t, Config{})
			near, far := b.pair()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = io.Copy(io.Discard, far)
			}()
			stop := time.AfterFunc(patience, func() { _ = near.Close() })
			defer stop.Stop()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					_ = near.SetWriteDeadline(time.Now().Add(time.Second))
					if _, err := near.Write(make([]byte, 1000)); err != nil {
						return
					}
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			blow := b.cable.CutBusy(ctx, fault)
			assert.Positive(t, blow.InFlight)
			if fault == OneWayToSource { // the other direction goes on
				before, _ := b.cable.Carried()
				require.Eventually(t, func() bool {
					now, _ := b.cable.Carried()
					return now > before+10_000
				}, patience, time.Millisecond)
			}
			_ = near.SetLinger(0)
			_ = near.Close()
			<-ended
			b.cable.Heal()
			_ = far.Close()
			<-done
		})
	}
}

func TestCutBusyOfAnIdleCableSaysSo(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	blow := b.cable.CutBusy(ctx, BlackHole)
	assert.Zero(t, blow.InFlight)
	send(t, near, "x")
	expectSilence(t, far)
}

func TestSlow(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	b.cable.Slow(1e6)
	start := time.Now()
	go func() { _, _ = near.Write(make([]byte, 300_000)) }()
	_, err := io.CopyN(io.Discard, far, 300_000)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(start), 250*time.Millisecond)
}

func TestDelayComesLaterButNotSlower(t *testing.T) {
	b := newBench(t, Config{})
	near, far := b.pair()
	b.cable.Delay(300 * time.Millisecond)
	start := time.Now()
	go func() {
		for range 20 {
			_, _ = near.Write(make([]byte, 10_000))
			time.Sleep(5 * time.Millisecond)
		}
		_ = near.CloseWrite()
	}()
	n, err := io.Copy(io.Discard, far)
	require.NoError(t, err)
	assert.EqualValues(t, 200_000, n)
	assert.GreaterOrEqual(t, time.Since(start), 390*time.Millisecond)
	assert.Less(t, time.Since(start), 5*time.Second, "the delays of the pieces do not add up")
}

func TestCloseEndsADelayedCableAtOnce(t *testing.T) {
	b := newBench(t, Config{})
	near, _ := b.pair()
	b.cable.Delay(time.Hour)
	send(t, near, "x")
	require.Eventually(t, func() bool { return b.cable.InFlight() == 1 }, patience, time.Millisecond)
	start := time.Now()
	require.NoError(t, b.cable.Close())
	assert.Less(t, time.Since(start), patience)
}

func TestFlap(t *testing.T) {
	b := newBench(t, Config{})
	near, _ := b.pair()
	require.NoError(t, b.cable.Flap(t.Context(), Reset, 3, 20*time.Millisecond))
	expectReset(t, near)
	near, far := b.pair()
	send(t, near, "whole")
	expect(t, far, "whole")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.cable.Flap(ctx, BlackHole, 1000, time.Minute)
	require.ErrorIs(t, err, context.Canceled)
	send(t, near, "whole after a stop, too")
	expect(t, far, "whole after a stop, too")
}

func TestHealOverrulesAFlap(t *testing.T) {
	b := newBench(t, Config{})
	done := make(chan error, 1)
	go func() { done <- b.cable.Flap(t.Context(), BlackHole, 1000, 100*time.Millisecond) }()
	require.Eventually(t, func() bool {
		b.cable.mu.Lock()
		defer b.cable.mu.Unlock()
		return b.cable.held[ToTarget]
	}, patience, time.Millisecond, "the flap does not begin")
	b.cable.Heal()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("the flap goes on although somebody healed the cable")
	}
}

func TestTargetThatIsNotThereResetsTheDialer(t *testing.T) {
	b := newBench(t, Config{})
	b.cable.SetTarget("127.0.0.1:1")
	b.refused()
}

func TestListenErrorNamesTheAddress(t *testing.T) {
	b := newBench(t, Config{})
	_, err := Listen(Config{Address: b.cable.Addr()})
	require.ErrorContains(t, err, b.cable.Addr())
	require.True(t, errors.Is(err, syscall.EADDRINUSE))
}

type shout struct{}

func (shout) Edit(dst, src []byte) []byte { return append(dst, bytes.ToUpper(src)...) }

func TestEditChangesOneDirection(t *testing.T) {
	b := newBench(t, Config{Edit: func() Editor { return shout{} }})
	near, far := b.pair()
	send(t, near, "quiet")
	expect(t, far, "QUIET")
	send(t, far, "quiet")
	expect(t, near, "quiet")
}

func TestBound(t *testing.T) {
	b := newBench(t, Config{})
	b.cable.Cut(BlackHole)
	for range maxLinks {
		b.dial()
	}
	require.Eventually(t, func() bool { return b.cable.Connections() == maxLinks }, patience, time.Millisecond)
	b.refused()
}

func TestNames(t *testing.T) {
	assert.Equal(t, "blackhole", BlackHole.String())
	assert.Equal(t, "fault 0", Fault(0).String())
	assert.Equal(t, "to-target", ToTarget.String())
	assert.Equal(t, "to-source", ToSource.String())
}
