package rail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/supervision"
	"railyard/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEventsReachEverySubscriberWithATime(t *testing.T) {
	events := NewEvents()
	a, b := events.Subscribe(t.Context()), events.Subscribe(t.Context())
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	events.Publish(Event{Kind: RailUp, Rail: 3, At: noon})
	events.Publish(Event{Kind: RailDown})
	for _, c := range []<-chan Event{a, b} {
		e := <-c
		assert.Equal(t, Event{Kind: RailUp, Rail: 3, At: noon}, e)
		assert.WithinDuration(t, time.Now(), (<-c).At, time.Minute)
	}
	events.Close()
	_, open := <-a
	assert.False(t, open)
	events.Close()
	events.Publish(Event{Kind: RailUp})
	_, open = <-events.Subscribe(t.Context())
	assert.False(t, open, "after Close")
}

func TestEventsCountWhatASlowSubscriberMissed(t *testing.T) {
	events := NewEvents()
	slow := events.Subscribe(t.Context())
	for i := range subscriberRoom + 10 {
		events.Publish(Event{Kind: RailUp, InFlight: uint64(i)})
	}
	for i := range subscriberRoom {
		e := <-slow
		require.Equal(t, uint64(i), e.InFlight)
		require.Zero(t, e.Missed)
	}
	events.Publish(Event{Kind: RailDown})
	events.Publish(Event{Kind: RailDown})
	assert.Equal(t, uint64(10), (<-slow).Missed)
	assert.Zero(t, (<-slow).Missed)
	events.Close()
}

func TestEventsSubscriptionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events Events
		ctx, cancel := context.WithCancel(t.Context())
		c := events.Subscribe(ctx)
		events.Publish(Event{Kind: RailUp})
		cancel()
		synctest.Wait()
		events.Publish(Event{Kind: RailDown})
		assert.Equal(t, RailUp, (<-c).Kind, "what came before stays readable")
		_, open := <-c
		assert.False(t, open)
		events.Close()
	})
}

func TestEventsUnderConcurrentUse(t *testing.T) {
	events := NewEvents()
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 500 {
				events.Publish(Event{Kind: RailUp})
			}
		})
		work.Go(func() {
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				c := events.Subscribe(ctx)
				cancel()
				for range c {
				}
			}
		})
	}
	work.Wait()
	events.Close()
}

func TestEventsOfNobodyAreFine(t *testing.T) {
	var none *Events
	none.Publish(Event{})
	none.Close()
	_, open := <-none.Subscribe(t.Context())
	assert.False(t, open)
}

func TestEventAndStateNames(t *testing.T) {
	for k := RailUp; k <= DeviceLink; k++ {
		assert.NotContains(t, k.String(), "EventKind")
	}
	assert.Equal(t, "EventKind(0)", EventKind(0).String())
	assert.Equal(t, "EventKind(200)", EventKind(200).String())
	e := Event{Kind: RailDown, Peer: "p", Rail: 2, Local: "a", Remote: "b", Generation: 5, Cause: io.EOF, Missed: 3,
		Outage: time.Second}
	assert.Equal(t, `RailDown peer=p rail=2 generation=5 a->b outage=1s cause="EOF" missed=3`, e.String())
	for s, word := range map[State]string{Connecting: "connecting", Up: "up", Suspect: "suspect", Down: "down",
		Probation: "probation", 9: "state(9)"} {
		assert.Equal(t, word, s.String())
	}
	text, err := json.Marshal(Status{State: Suspect})
	require.NoError(t, err)
	assert.Contains(t, string(text), `"State":"suspect"`)
	text, err = json.Marshal(RailUp)
	require.NoError(t, err)
	assert.Equal(t, `"RailUp"`, string(text))
}

// refusal is an error that knows its class.
type refusal struct{ error }

func (refusal) FailureClass() supervision.Class { return supervision.Peer }

func TestClassifySaysWhoseFaultItIs(t *testing.T) {
	timeout := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		err  error
		want supervision.Class
	}{
		{io.EOF, supervision.Transient},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, supervision.Transient},
		{errors.New("unheard of"), supervision.Transient},
		{ErrNotNeeded, supervision.Transient},
		{timeout, supervision.Path},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), supervision.Path},
		{syscall.EHOSTUNREACH, supervision.Path},
		{&SilenceError{Symptom: NoAnswer}, supervision.Path},
		{ErrSuperseded, supervision.Path},
		{&PanicError{Value: io.EOF}, supervision.Bug},
		{fmt.Errorf("reading: %w", wire.ErrMalformed), supervision.Bug},
		{fmt.Errorf("join: %w", refusal{io.EOF}), supervision.Peer},
		{&supervision.Failure{Class: supervision.Peer, Err: io.EOF}, supervision.Peer},
		{supervision.ErrNewIncarnation, supervision.Peer},
	} {
		assert.Equal(t, c.want, Classify(c.err), "%v", c.err)
	}
	p := &PanicError{Value: io.EOF}
	require.ErrorIs(t, p, io.EOF)
	assert.NoError(t, (&PanicError{Value: "text"}).Unwrap())
}

func TestErrorsDoNotShareMessages(t *testing.T) {
	seen := map[string]error{}
	for _, err := range []error{
		ErrNotNeeded, ErrSuperseded, ErrStopped, errRestarted, errOver, errNobodyDialed, errNotAsked, errNetlinkEnded,
		ErrBinding, ErrConfig, ErrHealth, &SilenceError{Symptom: NoAnswer}, &SilenceError{Symptom: NoRoom},
		&SilenceError{Symptom: NoProgress}, &SilenceError{Symptom: NoCarrier},
	} {
		message := err.Error()
		require.NotEmpty(t, strings.TrimSpace(message))
		require.Nil(t, seen[message], message)
		seen[message] = err
	}
}
