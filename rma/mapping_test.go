package rma

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mapped maps r, and counts its releases.
func mapped(t *testing.T, r *Region) (*Mapping, *atomic.Int32) {
	t.Helper()
	released := new(atomic.Int32)
	m, err := r.Map(func(buf []byte) (func(), error) {
		assert.Len(t, buf, int(r.Len()))
		return func() { released.Add(1) }, nil
	})
	require.NoError(t, err)
	require.Same(t, r, m.Region())
	return m, released
}

func TestRevokeReleasesMappingsBeforeItReturns(t *testing.T) {
	table, r := registered(t, 8, allRights)
	first, one := mapped(t, r)
	_, two := mapped(t, r)
	first.Release()
	require.Equal(t, int32(1), one.Load(), "the generation ended first")
	require.Nil(t, first.Region(), "a mapping that is over keeps the region alive")
	require.NoError(t, r.Revoke())
	first.Release()
	assert.Equal(t, int32(1), one.Load())
	assert.Equal(t, int32(1), two.Load())
	assert.Empty(t, r.maps)
	assert.Zero(t, table.Live())
	_, err := r.Map(func([]byte) (func(), error) { panic("revoked memory is registered") })
	assert.ErrorIs(t, err, ErrRevoked)
}

func TestRevokeWaitsForWhoIsMapping(t *testing.T) {
	_, r := registered(t, 8, allRights)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var released atomic.Bool
	mapping := started(func() {
		_, err := r.Map(func([]byte) (func(), error) {
			close(begun)
			<-goOn
			return func() { released.Store(true) }, nil
		})
		assert.NoError(t, err)
	})
	within(t, begun, "the registration")
	revoke := started(func() {
		_ = r.Revoke()
		assert.True(t, released.Load(), "what was registered during the revoke outlives it")
	})
	for !r.Revoked() {
		runtime.Gosched()
	}
	close(goOn)
	within(t, mapping, "the mapping")
	within(t, revoke, "the revoke's return")
}

func TestASecondRevokeWaitsForTheReleaseToo(t *testing.T) {
	_, r := registered(t, 8, allRights)
	begun, goOn := make(chan struct{}), make(chan struct{})
	_, err := r.Map(func([]byte) (func(), error) {
		return func() {
			close(begun)
			<-goOn
		}, nil
	})
	require.NoError(t, err)
	first := started(func() { _ = r.Revoke() })
	within(t, begun, "the release")
	second := started(func() { _ = r.Revoke() })
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-second:
		t.Fatal("the second revoke returned while the card still had the memory")
	default:
	}
	close(goOn)
	within(t, first, "the first revoke's return")
	within(t, second, "the second revoke's return")
}

func TestAMappingThatFailsLeavesNothing(t *testing.T) {
	_, r := registered(t, 8, allRights)
	full := errors.New("no room on the card")
	_, err := r.Map(func([]byte) (func(), error) { return nil, full })
	require.ErrorIs(t, err, full)
	require.Empty(t, r.maps)
	require.NoError(t, r.Revoke())
}

func TestMappingsAgainstRevokeManyTimes(t *testing.T) {
	for range 200 {
		_, r := registered(t, 8, allRights)
		var made, released atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				m, err := r.Map(func([]byte) (func(), error) {
					made.Add(1)
					return func() { released.Add(1) }, nil
				})
				if err == nil {
					m.Release()
				}
			})
		}
		require.NoError(t, r.Revoke())
		all.Wait()
		require.Equal(t, made.Load(), released.Load())
		require.Empty(t, r.maps)
	}
}

func TestAResetPlanForgetsItsPlaces(t *testing.T) {
	var g Gather
	g.AddPlace(Place{Source: []byte("x"), Address: 1, Key: 2, At: 3})
	require.Zero(t, g.Size(), "a place takes no room in the stream")
	g.Reset()
	require.Empty(t, g.Places)
	require.Nil(t, g.Places[:1][0].Source, "a reset plan keeps a source alive")
}
