package tcp

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ends gives one end of a pipe, which counts how often it is closed.
type ends struct {
	net.Conn
	closed *atomic.Int32
}

func (e ends) Close() error {
	e.closed.Add(1)
	return e.Conn.Close()
}

func end(t *testing.T, closed *atomic.Int32) net.Conn {
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return ends{a, closed}
}

func TestACallThatIsNotAnsweredIsRepeated(t *testing.T) {
	var calls, closed atomic.Int32
	c, err := race(t.Context(), func(ctx context.Context) (net.Conn, error) {
		if calls.Add(1) == 1 { // it was lost
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return end(t, &closed), nil
	})
	require.NoError(t, err)
	require.NotNil(t, c)
	assert.EqualValues(t, 2, calls.Load())
	assert.Zero(t, closed.Load())
}

func TestOfTwoConnectionsOneIsClosed(t *testing.T) {
	var calls, closed atomic.Int32
	both := make(chan struct{})
	c, err := race(t.Context(), func(context.Context) (net.Conn, error) {
		if calls.Add(1) == 2 {
			close(both)
		}
		<-both
		return end(t, &closed), nil
	})
	require.NoError(t, err)
	require.NotNil(t, c)
	assert.EqualValues(t, calls.Load()-1, closed.Load())
}

func TestARefusalEndsTheCallsAtOnce(t *testing.T) {
	refused := errors.New("refused")
	var calls atomic.Int32
	from := time.Now()
	_, err := race(t.Context(), func(context.Context) (net.Conn, error) {
		calls.Add(1)
		return nil, refused
	})
	require.ErrorIs(t, err, refused)
	assert.EqualValues(t, 1, calls.Load())
	assert.Less(t, time.Since(from), 5*time.Second)
}

func TestCallsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*callAgain+callAgain/2)
	defer cancel()
	var calls atomic.Int32
	_, err := race(ctx, func(ctx context.Context) (net.Conn, error) {
		calls.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.GreaterOrEqual(t, calls.Load(), int32(2))
	assert.LessOrEqual(t, calls.Load(), int32(3))
}
