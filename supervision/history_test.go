package supervision_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "railyard/supervision"
)

func TestRecordCountsFailuresInARow(t *testing.T) {
	var r Record
	h := r.Failed(Failure{}, time.Second)
	assert.Equal(t, 1, h.Failures)
	assert.False(t, h.EverUp)
	h = r.Failed(Failure{}, 2*time.Second)
	assert.Equal(t, 2, h.Failures)
	assert.Zero(t, h.Flaps, "a dial that fails is no flap")

	h = r.Up(3 * time.Second)
	assert.Equal(t, 2, h.Failures)
	assert.True(t, h.EverUp)
	assert.Equal(t, 3*time.Second, h.UpAt)

	h = r.Failed(Failure{}, 3*time.Second+249*ms)
	assert.Equal(t, 3, h.Failures, "one too short to count as healthy")
	assert.False(t, h.Healthy)
	assert.Equal(t, 249*ms, h.Lived)
	assert.Equal(t, 1, h.Flaps)

	r.Up(4 * time.Second)
	h = r.Failed(Failure{Class: Path}, 4*time.Second+250*ms)
	assert.Equal(t, 1, h.Failures)
	assert.True(t, h.Healthy)
	assert.Equal(t, 2, h.Flaps)

	h = r.Failed(Failure{}, 5*time.Second)
	assert.Equal(t, 2, h.Failures)
	assert.False(t, h.Healthy, "the healthy spell ended with the failure before")
	assert.Zero(t, h.Lived)

	assert.Equal(t, 1, h.Within(Path, time.Second, 5*time.Second))
	assert.Equal(t, 0, h.Within(Path, time.Second, 6*time.Second))
	h = r.Up(4*time.Second + 250*ms + RecentSpan)
	assert.Equal(t, 1, h.Flaps, "the older flap is forgiven")
}

func TestRecordBearsAClockThatStands(t *testing.T) {
	var r Record
	r.Up(10 * time.Second)
	h := r.Failed(Failure{}, 9*time.Second)
	assert.Zero(t, h.Lived)
	assert.False(t, h.Healthy)
	assert.Equal(t, 1, h.Flaps)
}

func TestRecordIsBoundedAndAgreesWithItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Record
		var now time.Duration
		up, row := false, 0
		for range rapid.IntRange(1, 3*MaxRecent).Draw(t, "events") {
			now += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "wait"))
			if rapid.Bool().Draw(t, "up") {
				r.Up(now)
				up = true
				continue
			}
			h := r.Failed(Failure{}, now)
			if h.Healthy {
				row = 0
			}
			row++
			last := h.Recent[len(h.Recent)-1]
			if len(h.Recent) > MaxRecent || h.Flaps > len(h.Recent) || h.Failures != row ||
				last.At != now || last.WasUp != up || (h.Healthy && !up) {
				t.Fatalf("after %s, up %v, row %d: %+v", now, up, row, h)
			}
			for i := 1; i < len(h.Recent); i++ {
				if h.Recent[i].At < h.Recent[i-1].At {
					t.Fatalf("out of order: %+v", h.Recent)
				}
			}
			up = false
		}
	})
}

func TestHistoryIsACopy(t *testing.T) {
	var r Record
	kept := r.Failed(Failure{}, time.Second)
	for i := range 2 * MaxRecent {
		r.Failed(Failure{}, time.Duration(i+2)*time.Second)
	}
	assert.Equal(t, []Lapse{{At: time.Second}}, kept.Recent)
}

func TestClassOf(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	cases := []struct {
		err  error
		want Class
	}{
		{io.EOF, Transient},
		{io.ErrUnexpectedEOF, Transient},
		{dial(syscall.ECONNREFUSED), Transient},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, Transient},
		{syscall.EPIPE, Transient},
		{errors.New("something new"), Transient},
		{nil, Transient},
		{dial(syscall.EHOSTUNREACH), Path},
		{dial(syscall.ENETUNREACH), Path},
		{dial(syscall.ETIMEDOUT), Path},
		{dial(syscall.EADDRNOTAVAIL), Path},
		{syscall.ENETDOWN, Path},
		{syscall.ENODEV, Path},
		{os.ErrDeadlineExceeded, Path},
		{fmt.Errorf("dial: %w", context.DeadlineExceeded), Path},
		{&net.DNSError{IsTimeout: true}, Path},
		{fmt.Errorf("rail: %w", ErrGoodbye), Peer},
		{ErrNewIncarnation, Peer},
		{ErrRefused, Peer},
		{&PanicError{Value: 3}, Bug},
		{&PanicError{Value: io.EOF}, Bug},
		{fmt.Errorf("transport: %w", &Failure{Class: Bug, Err: io.EOF}), Bug},
		{&Failure{Class: Path}, Path},
		{Failure{Class: Path, Err: io.EOF}, Path},
		{(*Failure)(nil), Bug},
	}
	for _, c := range cases {
		assert.Equal(t, c.want, ClassOf(c.err), "%v", c.err)
	}
}

func TestClassify(t *testing.T) {
	known := Failure{Rail: "r", Local: "a", Remote: "b", Generation: 5, At: time.Second}
	typed := &Failure{Rail: "other", Class: Path, Err: io.EOF}

	f := Classify(typed, known)
	assert.Equal(t, Failure{Rail: "other", Class: Path, Err: io.EOF, At: time.Second}, f)
	assert.Zero(t, typed.At, "the panic's own value is not written to")
	assert.Equal(t, f, Classify(*typed, known))
	assert.Equal(t, f, Classify(fmt.Errorf("wrapped: %w", typed), known))

	early := *typed
	early.At = ms
	assert.Equal(t, ms, Classify(&early, known).At)

	for _, reason := range []any{"text", 3, io.EOF, nil} {
		f = Classify(reason, known)
		assert.Equal(t, Bug, f.Class, "%v", reason)
		assert.Equal(t, "r", f.Rail)
		assert.Equal(t, uint64(5), f.Generation)
		var panicked *PanicError
		require.ErrorAs(t, f, &panicked)
		assert.Equal(t, reason, panicked.Value)
	}
	require.ErrorIs(t, Classify(io.EOF, known), io.EOF)

	f = Classify((*Failure)(nil), known)
	assert.Equal(t, Bug, f.Class)
	assert.Contains(t, f.Error(), "a nil failure")
}

func TestFailureNamesBothDevicesAndTheCause(t *testing.T) {
	f := Failure{Rail: "eth1", Local: "10.0.1.1", Remote: "10.0.1.2", Generation: 7, Class: Path,
		Err: errors.New("silent for 130ms")}
	assert.Equal(t, "rail eth1 (10.0.1.1 to 10.0.1.2) lost generation 7, path failure: silent for 130ms", f.Error())
	assert.Equal(t, f.Error(), (&f).Error())
	assert.Equal(t, "rail (an unknown address to 10.0.1.2) did not come up, transient failure",
		Failure{Remote: "10.0.1.2"}.Error())
	assert.Equal(t, "rail did not come up, bug failure: panic (report it, with the log): boom",
		Classify("boom", Failure{}).Error())
}

func TestNames(t *testing.T) {
	for c, name := range map[Class]string{Transient: "transient", Path: "path", Peer: "peer", Bug: "bug", 9: "class 9"} {
		assert.Equal(t, name, c.String())
	}
	for a, name := range map[Action]string{
		Restart: "restart", Reroute: "reroute", Stop: "stop", Escalate: "escalate", 9: "action 9",
	} {
		assert.Equal(t, name, a.String())
	}
}
