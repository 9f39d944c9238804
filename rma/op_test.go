package rma_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rma"
)

// canceler is an owner that cancels as the test wants.
type canceler func(ctx context.Context, op *rma.Op) error

func (c canceler) CancelOp(ctx context.Context, op *rma.Op) error { return c(ctx, op) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestOpCompletesOnce(t *testing.T) {
	told := 0
	op := rma.NewOp(rma.OpConfig{OnDone: func(op *rma.Op) {
		told++
		assert.True(t, op.Finished())
		assert.ErrorIs(t, op.Err(), rma.ErrRevoked)
		assert.True(t, isClosed(op.Done()))
	}})
	done := op.Done()
	assert.False(t, op.Finished())
	assert.NoError(t, op.Err())
	assert.False(t, isClosed(done))
	assert.Equal(t, done, op.Done(), "one channel while it is open")

	assert.True(t, op.Complete(rma.ErrRevoked))
	assert.False(t, op.Complete(nil))
	assert.False(t, op.Complete(rma.ErrCanceled))
	assert.ErrorIs(t, op.Err(), rma.ErrRevoked)
	assert.True(t, isClosed(done))
	assert.Equal(t, 1, told)
}

func TestOpDoneAskedForAfterwards(t *testing.T) {
	op := rma.NewOp(rma.OpConfig{})
	require.True(t, op.Complete(nil))
	require.True(t, isClosed(op.Done()))
	require.True(t, isClosed(op.Done()))
	require.NoError(t, op.Wait(t.Context()))
}

func TestOpShowsItsParts(t *testing.T) {
	key := secretKey()
	type larger struct {
		before int
		op     rma.Op
	}
	var l larger
	l.op.Init(rma.OpConfig{Kind: rma.GetOp, Key: key, Offset: 9, Data: make([]byte, 5),
		Options: rma.Options{Fence: true}})
	op := &l.op
	assert.Equal(t, rma.GetOp, op.Kind())
	assert.True(t, op.Key().Equal(key))
	assert.Equal(t, uint64(9), op.Offset())
	assert.Equal(t, uint64(5), op.Len())
	assert.Len(t, op.Data(), 5)
	assert.True(t, op.Options().Fence)
	assert.Contains(t, op.String(), "get(5 bytes, offset 9, key(region 7")
	assert.Contains(t, op.String(), ": open")
	op.Complete(nil)
	assert.Contains(t, fmt.Sprintf("%v", op), ": done")
	for kind, name := range map[rma.OpKind]string{
		rma.PutOp: "put", rma.GetOp: "get", rma.FlushOp: "flush", 9: "operation kind 9",
	} {
		assert.Equal(t, name, kind.String())
	}
	assert.Zero(t, l.before)
}

func TestOpWaitEndsWithTheContext(t *testing.T) {
	op := rma.NewOp(rma.OpConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := op.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, op.Finished(), "waiting no more is not a cancel")
	op.Complete(rma.ErrBounds)
	require.ErrorIs(t, op.Wait(ctx), rma.ErrBounds, "the outcome says more than the context")
}

func TestOpCancel(t *testing.T) {
	late := errors.New("late")
	completing := func(outcome, answer error) canceler {
		return func(_ context.Context, op *rma.Op) error {
			op.Complete(outcome)
			return answer
		}
	}
	cases := []struct {
		name     string
		canceler canceler
		before   error // completed with this first, unless it is errOpen
		want     error // from Cancel
		outcome  error // from Err
	}{
		{"taken back", completing(rma.ErrCanceled, nil), errOpen, nil, rma.ErrCanceled},
		{"completed before it could be", completing(nil, nil), errOpen, nil, nil},
		{"refused before it could be", completing(rma.ErrRevoked, nil), errOpen, nil, rma.ErrRevoked},
		{"owner says canceled", completing(rma.ErrCanceled, rma.ErrCanceled), errOpen, nil, rma.ErrCanceled},
		{"peer could not be asked", completing(rma.Unknown(rma.ErrEndpointDown), late), errOpen,
			rma.ErrOutcomeUnknown, rma.ErrEndpointDown},
		{"owner failed", func(context.Context, *rma.Op) error { return late }, errOpen, late, nil},
		{"had gone well", nil, nil, nil, nil},
		{"had been refused", nil, rma.ErrRights, nil, rma.ErrRights},
		{"had ended unknown", nil, rma.ErrOutcomeUnknown, rma.ErrOutcomeUnknown, rma.ErrOutcomeUnknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			op := rma.NewOp(rma.OpConfig{Canceler: canceler(func(ctx context.Context, op *rma.Op) error {
				asked++
				return c.canceler(ctx, op)
			})})
			if c.before != errOpen { //nolint:errorlint // a mark, not an error
				op.Complete(c.before)
			}
			for range 2 {
				err := op.Cancel(t.Context())
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
				}
				if c.outcome == nil {
					require.NoError(t, op.Err())
				} else {
					require.ErrorIs(t, op.Err(), c.outcome)
				}
			}
			if c.before != errOpen { //nolint:errorlint // a mark, not an error
				require.Zero(t, asked, "the owner was asked to cancel what was over")
			}
		})
	}
}

var errOpen = errors.New("still open")

// A cancel must not say "free" while the owner has only taken note.
func TestOpCancelWaitsForTheEnd(t *testing.T) {
	for name, c := range map[string]rma.Canceler{
		"owner takes note": canceler(func(context.Context, *rma.Op) error { return nil }),
		"no owner":         nil,
	} {
		op := rma.NewOp(rma.OpConfig{Kind: rma.FlushOp, Canceler: c})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := op.Cancel(ctx)
		require.ErrorIs(t, err, context.Canceled, name)
		require.False(t, op.Finished(), name)

		answer := make(chan error, 1)
		go func() { answer <- op.Cancel(context.Background()) }()
		op.Complete(rma.ErrCanceled)
		require.NoError(t, <-answer, name)
	}
}

func TestOpFromManyGoroutines(t *testing.T) {
	for range 50 {
		var told, won atomic.Int64
		op := rma.NewOp(rma.OpConfig{
			OnDone: func(*rma.Op) { told.Add(1) },
			Canceler: canceler(func(_ context.Context, op *rma.Op) error {
				op.Complete(rma.ErrCanceled)
				return nil
			}),
		})
		var all sync.WaitGroup
		for g := range 20 {
			all.Go(func() {
				switch g % 5 {
				case 0:
					if op.Complete(rma.ErrBounds) {
						won.Add(1)
					}
				case 1:
					<-op.Done()
					assert.Error(t, op.Err())
				case 2:
					assert.Error(t, op.Wait(context.Background()))
				case 3:
					assert.NoError(t, op.Cancel(context.Background()))
				case 4:
					_ = op.String()
					if op.Finished() {
						assert.Error(t, op.Err())
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, int64(1), told.Load())
		assert.LessOrEqual(t, won.Load(), int64(1))
		assert.Equal(t, won.Load() == 1, errors.Is(op.Err(), rma.ErrBounds))
	}
}

func TestOpCostsOneAllocation(t *testing.T) {
	config := rma.OpConfig{Kind: rma.PutOp, Key: secretKey(), Data: make([]byte, 8)}
	var last *rma.Op
	assert.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
		last = rma.NewOp(config)
		last.Complete(nil)
		<-last.Done()
	}))
	require.True(t, last.Finished())
}
