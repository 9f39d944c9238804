package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/cmd/railyard/internal/cable"
	"railyard/cmd/railyard/internal/script"
	"railyard/internal/clock"
)

// scene is a stage with cables, each carrying a stream that begins again after every break, and a monitor that
// believes every rail that has a connection.
type scene struct {
	stage *stage
	mu    sync.Mutex
	done  []*cut
	said  []string
	asked int // whether a cut has been detected
}

func newScene(t *testing.T, rails int) *scene {
	t.Helper()
	s := &scene{}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var listeners []net.Listener
	st := &stage{
		book: newBook(rails), cut: make([]bool, rails), superseded: s.note,
		detected: func(*cut) bool { s.asked++; return s.asked > 1 },
		say:      func(f string, a ...any) { s.said = append(s.said, fmt.Sprintf(f, a...)) },
	}
	for range rails {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		c, err := cable.Listen(cable.Config{Address: "127.0.0.1:0", Target: listener.Addr().String()})
		require.NoError(t, err)
		st.cables = append(st.cables, c)
		work.Go(func() { sinkAll(listener, &work) })
		work.Go(func() { pour(ctx, c.Addr()) })
		listeners = append(listeners, listener)
	}
	work.Go(func() {
		for sleep(ctx, ms) == nil {
			look := make([]seen, rails)
			for i, c := range st.cables {
				n, _ := c.Carried()
				look[i] = seen{works: c.Connections() > 0, carried: n}
			}
			for _, c := range st.book.look(clock.Now(), look) {
				s.note(c)
			}
		}
	})
	t.Cleanup(work.Wait)
	t.Cleanup(func() {
		cancel()
		for i, c := range st.cables {
			_ = c.Close()
			_ = listeners[i].Close()
		}
	})
	s.stage = st
	return s
}

func (s *scene) note(c *cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, c)
}

func sinkAll(l net.Listener, work *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		work.Go(func() {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		})
	}
}

// pour dials and writes, again and again.
func pour(ctx context.Context, address string) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			_ = sleep(ctx, ms)
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		for {
			if _, err := conn.Write(make([]byte, 10_000)); err != nil {
				break
			}
			if sleep(ctx, 200*time.Microsecond) != nil {
				break
			}
		}
		stop()
		_ = conn.Close()
	}
}

func (s *scene) play(t *testing.T, text string) error {
	t.Helper()
	steps, err := script.Parse(text, len(s.stage.cables))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("too slow"))
	defer cancel()
	return s.stage.play(ctx, steps)
}

func TestStagePlaysEveryCommand(t *testing.T) {
	s := newScene(t, 3)
	err := s.play(t, `
at 50ms cut 0 reset
wait 30ms
heal 0
rejoin 0
cut 1 blackhole
detect 1
detect 2
heal 1
rejoin 1
flap 2 3 20ms
rejoin 2
turn blackhole 20ms
cut all blackhole
wait 50ms
heal all
rejoin all
slow 0 10MB/s
delay 0 1ms
heal 0
cut 0 reset
cut 0 blackhole
`)
	require.NoError(t, err)
	require.NoError(t, s.stage.restore(t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, c := range s.done {
		got = append(got, fmt.Sprintf("%d %s, %d left", c.record.Rail, c.record.Cut, c.record.RailsLeft))
		assert.False(t, c.late)
		if len(got) < 11 { // the last one hit a cable that was dead already
			assert.Positive(t, c.record.InFlight, "%d %s", c.record.Rail, c.record.Cut)
		}
	}
	assert.Equal(t, []string{
		"0 reset, 2 left", "1 blackhole, 2 left", "2 flap 3 times, every 20ms, by reset, 2 left",
		"0 blackhole, 2 left", "1 blackhole, 2 left", "2 blackhole, 2 left",
	}, got[:6])
	assert.ElementsMatch(t, []string{"0 blackhole, 0 left", "1 blackhole, 0 left", "2 blackhole, 0 left"}, got[6:9])
	assert.Equal(t, []string{"0 reset, 2 left", "0 blackhole, 2 left"}, got[9:], "the second cut ended the first")
	assert.Equal(t, 2, s.asked, "until it was detected, and not for a rail that is whole")
	assert.Contains(t, strings.Join(s.said, "\n"), "slow 0: 1e+07 bytes per second")
}

func TestStageStops(t *testing.T) {
	s := newScene(t, 2)
	for _, text := range []string{
		"wait 1m", "flap 0 1000 100ms", "turn reset 1m", "cut 0 reset\nheal 0\nwait 1m", "at 1m heal 0",
	} {
		steps, err := script.Parse(text, 2)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(errGone) })
		err = s.stage.play(ctx, steps)
		require.ErrorIs(t, err, errGone, text)
		cancel(nil)
	}
}
