package railtest

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/rail"
)

// patience bounds every wait of the suite: it is met only by a failure.
const patience = 60 * time.Second

// Fixture is what the suite needs of a kind.
type Fixture struct {
	Kind rail.Kind
	// Bind is an address for listeners; each Listen at it must get an address of its own.
	Bind string
	// Local is the address to dial from.
	Local string
	// Nowhere is an address at which nobody listens and which says so soon.
	Nowhere string
	// Prepare, where set, makes both ends of a fresh connection ready for a test, as an encrypted stream needs.
	Prepare func(t *testing.T, near, far rail.Conn)
	// Allocations bounds those for each MiB that is carried, at both ends together; 0: 8.
	Allocations int
}

// Contract runs the suite. fixture is called once for each test in it.
func Contract(t *testing.T, fixture func(t *testing.T) Fixture) {
	groups := []struct {
		name  string
		tests []contractTest
	}{
		{"handshake", handshakeTests},
		{"stream", streamTests},
		{"region", regionTests},
		{"failure", failureTests},
		{"end", endTests},
		{"dial", dialTests},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					before := goleak.IgnoreCurrent()
					t.Cleanup(func() { goleak.VerifyNone(t, before) })
					test.run(t, fixture(t))
				})
			}
		})
	}
}

type contractTest struct {
	name string
	run  func(t *testing.T, f Fixture)
}

// connect makes a connection; the two ends are closed when the test is over.
func (f Fixture) connect(t *testing.T) (near, far rail.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := f.listen(t)
	near, err := f.Kind.Dial(ctx, f.Local, l.Addr())
	require.NoError(t, err)
	t.Cleanup(near.Close)
	for { // a kind may call again beside a call that is not answered soon, and drop what it does not use
		far, err = l.Accept()
		require.NoError(t, err)
		t.Cleanup(far.Close)
		if far.RemoteAddr() == near.LocalAddr() {
			break
		}
	}
	require.NoError(t, l.Close())
	if f.Prepare != nil {
		f.Prepare(t, near, far)
	}
	return near, far
}

func (f Fixture) listen(t *testing.T) rail.Listener {
	t.Helper()
	l, err := f.Kind.Listen(t.Context(), rail.Binding{Kind: f.Kind.Name(), Address: f.Bind})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// ending records what lost was told.
type ending struct {
	calls atomic.Int32
	told  chan error
}

func newEnding() *ending { return &ending{told: make(chan error, 1)} }

func (e *ending) lost(err error) {
	if e.calls.Add(1) == 1 {
		e.told <- err
	}
}

// cause waits for the end and gives its error.
func (e *ending) cause(t *testing.T) error {
	t.Helper()
	select {
	case err := <-e.told:
		return err
	case <-time.After(patience):
		require.FailNow(t, "lost was not called")
		return nil
	}
}

// peers are two connected ends with links between which both streams match.
type peers struct {
	near, far         rail.Conn
	nearLink, farLink *streamLink
	nearEnd, farEnd   *ending
}

// connectPeers connects and makes the links; run starts them.
func (f Fixture) connectPeers(t *testing.T, cfg linkConfig) *peers {
	t.Helper()
	p := &peers{nearEnd: newEnding(), farEnd: newEnding()}
	p.near, p.far = f.connect(t)
	p.nearLink = newStreamLink(cfg)
	cfg.send, cfg.expect = cfg.expect, cfg.send
	p.farLink = newStreamLink(cfg)
	return p
}

func (p *peers) run() {
	p.near.Run(p.nearLink, p.nearEnd.lost)
	p.far.Run(p.farLink, p.farEnd.lost)
}

// settle asserts how often each end has told of its loss, closes both, and asserts that no rule was broken.
func (p *peers) settle(t *testing.T, nearLost, farLost int) {
	t.Helper()
	assert.EqualValues(t, farLost, p.farEnd.calls.Load(), "calls of lost at the far end")
	closeSoon(t, p.near)
	p.nearLink.silent.Store(true)
	closeSoon(t, p.far)
	p.farLink.silent.Store(true)
	// Calls that come too late must fall on deaf ears.
	for _, c := range []rail.Conn{p.near, p.far} {
		c.Kick()
		c.WriteNow()
	}
	assert.Empty(t, p.nearLink.all(), "near link")
	assert.Empty(t, p.farLink.all(), "far link")
	assert.EqualValues(t, nearLost, p.nearEnd.calls.Load(), "calls of lost at the near end")
	assert.LessOrEqual(t, p.farEnd.calls.Load(), int32(1), "calls of lost at the far end")
}

// closeSoon fails the test where Close hangs.
func closeSoon(t *testing.T, c rail.Conn) {
	t.Helper()
	soon(t, "Close", c.Close)
}

// soon runs what must return without waiting for anybody else.
func soon(t *testing.T, what string, run func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		require.FailNow(t, what+" did not return")
	}
}

// receive waits until a link has received n bytes in all.
func receive(t *testing.T, l *streamLink, n uint64) {
	t.Helper()
	limit := time.After(patience)
	for l.received.Load() < n {
		select {
		case <-l.progress:
		case <-limit:
			require.FailNowf(t, "the stream stopped", "%d of %d bytes; broken rules: %v",
				l.received.Load(), n, l.all())
		}
	}
}

// together runs n goroutines and waits for them.
func together(n int, run func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

// isEnd says whether err is what a stream's end by the peer may look like.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
