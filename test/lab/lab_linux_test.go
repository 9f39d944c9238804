package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// rootless is why there can be no lab here; nil: there can.
var rootless error

func TestMain(m *testing.M) {
	rootless = Enter()
	goleak.VerifyTestMain(m)
}

// laboratory makes a lab for one test.
func laboratory(t *testing.T, o Options) *Lab {
	t.Helper()
	if rootless != nil {
		t.Skip(rootless)
	}
	l, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

const patience = 20 * time.Second

// prober sends numbered datagrams over one rail, both ways.
type prober struct {
	ends [2]net.PacketConn
	to   [2]net.Addr
	next byte
}

func newProber(t *testing.T, l *Lab, rail int) *prober {
	t.Helper()
	p := &prober{}
	for s := range p.ends {
		require.NoError(t, l.Do(Side(s), func() (err error) {
			p.ends[s], err = net.ListenPacket("udp4", fmt.Sprintf("%s:7000", l.Address(Side(s), rail)))
			return err
		}))
		t.Cleanup(func() { _ = p.ends[s].Close() })
		p.to[s] = p.ends[s].LocalAddr()
	}
	return p
}

// passes sends n datagrams of a size from one side, and counts those that arrive within a moment.
func (p *prober) passes(from Side, n, size int) int {
	p.next++
	for range n {
		_, _ = p.ends[from].WriteTo(append([]byte{p.next}, make([]byte, size-1)...), p.to[from.Other()])
	}
	came := 0
	buf := make([]byte, 1<<16)
	end := p.ends[from.Other()]
	_ = end.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	for came < n {
		_, _, err := end.ReadFrom(buf)
		if err != nil {
			return came
		}
		if buf[0] == p.next {
			came++
		}
	}
	return came
}

// soon waits until datagrams pass in both directions.
func (p *prober) soon(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return p.passes(A, 1, 100) == 1 && p.passes(B, 1, 100) == 1 }, patience, time.Millisecond)
}

func TestWhatIsCutIsLostAndHeals(t *testing.T) {
	for _, c := range []struct {
		name         string
		cut          Cut
		fromA, fromB bool // still pass
	}{
		{"link down at A", Cut{Kind: LinkDown, Where: A}, false, false},
		{"link down at B", Cut{Kind: LinkDown, Where: B}, false, false},
		{"black hole", Cut{Kind: BlackHole}, false, false},
		{"one way from A", Cut{Kind: OneWay, Where: A}, false, true},
		{"one way from B", Cut{Kind: OneWay, Where: B}, true, false},
		{"all lost", Cut{Kind: Loss, Percent: 100}, false, false},
		{"address removed", Cut{Kind: AddressRemoved, Where: B}, false, false},
		{"poisoned", Cut{Kind: Poisoned, Where: A}, false, true},
		{"reset leaves UDP alone", Cut{Kind: Reset}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := laboratory(t, Options{})
			cut, other := newProber(t, l, 1), newProber(t, l, 0)
			cut.soon(t)
			other.soon(t)
			_, err := l.Cut(1, c.cut)
			require.NoError(t, err)
			assert.Equal(t, c.fromA, cut.passes(A, 1, 100) == 1, "from A")
			assert.Equal(t, c.fromB, cut.passes(B, 1, 100) == 1, "from B")
			assert.Equal(t, 1, other.passes(A, 1, 100), "the other rail is not touched")
			_, err = l.Heal(1)
			require.NoError(t, err)
			cut.soon(t)
		})
	}
}

func TestNarrowLosesWhatIsLarge(t *testing.T) {
	l := laboratory(t, Options{Rails: 1, MTU: 9000})
	p := newProber(t, l, 0)
	p.soon(t)
	require.Equal(t, 1, p.passes(A, 1, 8000))
	_, err := l.Cut(0, Cut{Kind: Narrow, MTU: 1000})
	require.NoError(t, err)
	link, err := l.hosts[A].links.LinkByName("rail0")
	require.NoError(t, err)
	assert.Equal(t, 1000, link.Attrs().MTU)
	p.soon(t)
	_, err = l.Heal(0)
	require.NoError(t, err)
	assert.Equal(t, 1, p.passes(A, 1, 8000))
}

func TestLossLosesAPart(t *testing.T) {
	l := laboratory(t, Options{Rails: 1})
	p := newProber(t, l, 0)
	p.soon(t)
	_, err := l.Cut(0, Cut{Kind: Loss, Percent: 50})
	require.NoError(t, err)
	came := 0
	for range 10 {
		came += p.passes(A, 20, 100)
	}
	assert.InDelta(t, 100, came, 60, "of 200; less would be fifteen in a million")
}

// talk makes a TCP connection over a rail.
func talk(t *testing.T, l *Lab, rail int) (a, b net.Conn) {
	t.Helper()
	at := fmt.Sprintf("%s:7001", l.Address(B, rail))
	var listener net.Listener
	require.NoError(t, l.Do(B, func() (err error) { listener, err = net.Listen("tcp4", at); return err }))
	defer listener.Close()
	require.NoError(t, l.Do(A, func() (err error) { a, err = net.DialTimeout("tcp4", at, patience); return err }))
	b, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	for _, c := range []net.Conn{a, b} {
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	}
	return a, b
}

func TestResetBreaksConnections(t *testing.T) {
	l := laboratory(t, Options{Rails: 1})
	a, b := talk(t, l, 0)
	_, err := l.Cut(0, Cut{Kind: Reset})
	require.NoError(t, err)
	_, err = a.Write([]byte("hello"))
	require.NoError(t, err)
	_, err = a.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NoError(t, b.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	_, err = b.Read(make([]byte, 1))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "the other end has sent nothing, so it knows nothing")
}

func TestSwallowedResetHangsConnections(t *testing.T) {
	l := laboratory(t, Options{Rails: 1})
	a, b := talk(t, l, 0)
	p := newProber(t, l, 0)
	_, err := l.Cut(0, Cut{Kind: SwallowedReset})
	require.NoError(t, err)
	_, err = a.Write([]byte("hello"))
	require.NoError(t, err)
	for _, c := range []net.Conn{a, b} {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	assert.Equal(t, 1, p.passes(A, 1, 100), "only TCP is cut")
	_, err = l.Heal(0)
	require.NoError(t, err)
	require.NoError(t, b.SetReadDeadline(time.Now().Add(patience)))
	_, err = b.Read(make([]byte, 5))
	assert.NoError(t, err, "nobody was told, so the connection lives on")
}

// pump sends as much as goes through in d, and gives the rate that arrived in bytes a second.
func pump(t *testing.T, a, b net.Conn, d time.Duration) float64 {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 256<<10); ctx.Err() == nil; {
			if _, err := a.Write(buf); err != nil {
				return
			}
		}
	}()
	n, from, buf := 0, time.Now(), make([]byte, 1<<20)
	for time.Since(from) < d {
		k, err := b.Read(buf)
		require.NoError(t, err)
		n += k
	}
	rate := float64(n) / time.Since(from).Seconds()
	stop()
	_ = a.SetWriteDeadline(time.Now())
	<-done
	return rate
}

// reaches pumps until the rate is there: what a link cannot carry it never does, what it can a busy machine may take some
// attempts for.
func reaches(t *testing.T, l *Lab, rate float64) {
	t.Helper()
	best := 0.0
	for attempt := 0; attempt < 10 && best < 0.75*rate; attempt++ {
		a, b := talk(t, l, 0)
		best = max(best, pump(t, a, b, 500*time.Millisecond))
	}
	assert.InDelta(t, rate, best, rate/4)
}

func TestSlowAndShape(t *testing.T) {
	l := laboratory(t, Options{Rails: 1, Rates: []int64{200e6}})
	reaches(t, l, 24e6)
	a, b := talk(t, l, 0)
	_, err := l.Cut(0, Cut{Kind: Slow, Rate: 10e6})
	require.NoError(t, err)
	assert.Less(t, pump(t, a, b, time.Second), 3e6)
	_, err = l.Heal(0)
	require.NoError(t, err)
	reaches(t, l, 24e6)
}

func TestWireDelays(t *testing.T) {
	l := laboratory(t, Options{Rails: 2, Delay: 10 * time.Millisecond})
	a, b := talk(t, l, 1)
	roundTrip := func() time.Duration {
		from := time.Now()
		_, err := a.Write([]byte{1})
		require.NoError(t, err)
		_, err = b.Read(make([]byte, 1))
		require.NoError(t, err)
		_, err = b.Write([]byte{1})
		require.NoError(t, err)
		_, err = a.Read(make([]byte, 1))
		require.NoError(t, err)
		return time.Since(from)
	}
	assert.GreaterOrEqual(t, roundTrip(), 20*time.Millisecond)
	_, err := l.Cut(1, Cut{Kind: Delay, Delay: 100 * time.Millisecond})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, roundTrip(), 200*time.Millisecond)
	_, err = l.Heal(1)
	require.NoError(t, err)
	p := newProber(t, l, 0)
	_, err = l.Cut(0, Cut{Kind: BlackHole})
	require.NoError(t, err)
	assert.Zero(t, p.passes(A, 1, 100), "a wire is cut as a cable is")
	_, err = l.Heal(0)
	require.NoError(t, err)
	p.soon(t)
}

func TestFlapGoesUpAndDownUntilItHeals(t *testing.T) {
	l := laboratory(t, Options{Rails: 1})
	p := newProber(t, l, 0)
	p.soon(t)
	_, err := l.Cut(0, Cut{Kind: Flap, Where: B, Down: 100 * time.Millisecond, Up: 700 * time.Millisecond})
	require.NoError(t, err)
	for range 2 {
		require.Eventually(t, func() bool { return p.passes(A, 1, 100) == 0 }, patience, time.Millisecond)
		require.Eventually(t, func() bool { return p.passes(A, 1, 100) == 1 }, patience, time.Millisecond)
	}
	_, err = l.Heal(0)
	require.NoError(t, err)
	p.soon(t)
}

func TestProcessesLiveOnTheirHostAndEndWithTheLab(t *testing.T) {
	l := laboratory(t, Options{Rails: 1})
	p, err := l.Start(B, Command{Path: "sleep", Args: []string{"1000"}})
	require.NoError(t, err)
	mine, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
	require.NoError(t, err)
	assert.NotEqual(t, mine, its)
	require.NoError(t, p.Suspend())
	require.NoError(t, p.Resume())
	require.NoError(t, l.Close())
	select {
	case <-p.Ended():
	default:
		t.Error("the process outlives its lab")
	}
	_, err = l.Start(B, Command{Path: "sleep", Args: []string{"1000"}})
	assert.ErrorIs(t, err, ErrClosed)
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	l := laboratory(t, Options{Rails: 1})
	for _, c := range []Cut{{}, {Kind: Loss}, {Kind: Loss, Percent: 101}, {Kind: Slow}, {Kind: Delay}, {Kind: Flap},
		{Kind: Narrow, MTU: 100}, {Kind: LinkDown, Where: 2}} {
		_, err := l.Cut(0, c)
		assert.ErrorIs(t, err, ErrOptions, "%+v", c)
	}
	_, err := l.Cut(1, Cut{Kind: BlackHole})
	assert.ErrorIs(t, err, ErrOptions)
	for _, o := range []Options{{Rails: 17}, {Rails: -1}, {Delay: -1}, {MTU: 100}} {
		_, err := New(o)
		assert.ErrorIs(t, err, ErrOptions, "%+v", o)
	}
}
