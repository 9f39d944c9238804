package rma

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/wire"
)

// registered gives a table with one region of size bytes.
func registered(t testing.TB, size int, rights Rights) (*Table, *Region) {
	t.Helper()
	table := NewTable(rand.Reader, 0)
	r, err := table.Register(make([]byte, size), rights)
	require.NoError(t, err)
	return table, r
}

// claimOn is a good claim to all of a region.
func claimOn(r *Region) Claim {
	return Claim{Region: r.Key().Region(), Token: r.Key().Token(), Want: r.Key().Rights(), Length: r.Len()}
}

func TestRegisterRefuses(t *testing.T) {
	table := NewTable(rand.Reader, 1)
	_, err := table.Register(nil, RemoteWrite)
	require.ErrorIs(t, err, ErrEmptyRegion)
	_, err = table.Register([]byte{}, RemoteWrite)
	require.ErrorIs(t, err, ErrEmptyRegion)
	_, err = table.Register(make([]byte, 1), 0)
	require.ErrorIs(t, err, ErrNoRights)
	_, err = table.Register(make([]byte, 1), 4|RemoteRead)
	require.ErrorIs(t, err, ErrNoRights)
	require.Zero(t, table.Live(), "refusals count")

	r, err := table.Register(make([]byte, 1), RemoteRead)
	require.NoError(t, err)
	_, err = table.Register(make([]byte, 1), RemoteRead)
	require.ErrorIs(t, err, ErrTooManyRegions)
	require.NoError(t, r.Revoke())
	_, err = table.Register(make([]byte, 1), RemoteRead)
	require.NoError(t, err, "a revoke makes room")

	require.NoError(t, table.Close())
	require.Zero(t, table.Live())
	_, err = table.Register(make([]byte, 1), RemoteRead)
	require.ErrorIs(t, err, ErrShutdown)
}

func TestRegisterNeedsAWholeToken(t *testing.T) {
	table := NewTable(strings.NewReader("0123456789abcdefTOO SHORT"), 0)
	r, err := table.Register(make([]byte, 1), RemoteRead)
	require.NoError(t, err)
	require.True(t, r.Key().Token() == wire.Token([]byte("0123456789abcdef")))
	_, err = table.Register(make([]byte, 1), RemoteRead)
	require.ErrorIs(t, err, ErrEntropy)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, 1, table.Live())
}

func TestKeysDiffer(t *testing.T) {
	table := NewTable(rand.Reader, 0)
	buf := make([]byte, 8)
	a, err := table.Register(buf, RemoteWrite)
	require.NoError(t, err)
	b, err := table.Register(buf, RemoteWrite)
	require.NoError(t, err)
	assert.NotEqual(t, a.Key().Region(), b.Key().Region())
	assert.False(t, a.Key().Token() == b.Key().Token())

	crossed := claimOn(a)
	crossed.Token = b.Key().Token()
	_, code := table.Check(crossed)
	assert.Equal(t, wire.CodeUnknownRegion, code, "a's number with b's token")
}

func TestCheckBoundsWithoutOverflow(t *testing.T) {
	const size = 4096
	table, r := registered(t, size, RemoteWrite)
	edges := []uint64{
		0, 1, 2, size - 1, size, size + 1, math.MaxInt64, math.MaxInt64 + 1,
		math.MaxUint64 - size, math.MaxUint64 - size + 1, math.MaxUint64 - 1, math.MaxUint64,
	}
	for _, offset := range edges {
		for _, length := range edges {
			end := new(big.Int).Add(new(big.Int).SetUint64(offset), new(big.Int).SetUint64(length))
			inside := end.Cmp(big.NewInt(size)) <= 0
			want := wire.CodeBounds
			if inside {
				want = wire.CodeOK
			}
			claim := claimOn(r)
			claim.Offset, claim.Length = offset, length
			got, code := table.Check(claim)
			assert.Equal(t, want, code, "offset %d length %d", offset, length)
			assert.Equal(t, inside, got == r)
			chunk, ok := r.Slice(offset, length)
			assert.Equal(t, inside, ok)
			if ok {
				assert.Len(t, chunk, int(length))
				assert.Equal(t, len(chunk), cap(chunk), "a chunk can grow into its neighbor")
			}
		}
	}
}

func TestCheckRights(t *testing.T) {
	for rights := RemoteWrite; rights <= allRights; rights++ {
		table, r := registered(t, 8, rights)
		for want := RemoteWrite; want <= allRights; want++ {
			claim := claimOn(r)
			claim.Want = want
			_, code := table.Check(claim)
			if want&^rights == 0 {
				assert.Equal(t, wire.CodeOK, code, "%s of %s", want, rights)
			} else {
				assert.Equal(t, wire.CodeRights, code, "%s of %s", want, rights)
			}
		}
	}
}

// Without the token nothing can be learnt: not whether a region exists, is revoked, how long it is,
// or what it allows.
func TestCheckTellsAStrangerNothing(t *testing.T) {
	table, r := registered(t, 8, RemoteRead)
	gone, err := table.Register(make([]byte, 8), RemoteRead)
	require.NoError(t, err)
	require.NoError(t, gone.Revoke())

	for _, region := range []uint64{0, r.Key().Region(), gone.Key().Region(), 3, math.MaxUint64} {
		for bit := range TokenSize * 8 {
			token := r.Key().Token()
			if region == gone.Key().Region() {
				token = gone.Key().Token()
			}
			token[bit/8] ^= 1 << (bit % 8)
			for _, claim := range []Claim{
				{Region: region, Token: token, Want: RemoteRead, Length: 8},
				{Region: region, Token: token, Want: RemoteWrite, Length: 8},
				{Region: region, Token: token, Want: RemoteRead, Length: 9},
			} {
				found, code := table.Check(claim)
				require.Equal(t, wire.CodeUnknownRegion, code)
				require.Nil(t, found)
			}
		}
		// The token that a look-up without a region is compared with must open nothing either.
		_, code := table.Check(Claim{Region: region, Token: table.dummy, Want: RemoteRead})
		require.Equal(t, wire.CodeUnknownRegion, code)
	}
}

func TestRegionChecksItsOwnNumber(t *testing.T) {
	_, r := registered(t, 8, RemoteRead)
	claim := claimOn(r)
	require.Equal(t, wire.CodeOK, r.Check(claim))
	claim.Region++
	require.Equal(t, wire.CodeUnknownRegion, r.Check(claim), "a reader used the wrong cached region")
}

func TestRevokedKeysAreRememberedThenForgotten(t *testing.T) {
	const memory = 4
	table := newTable(rand.Reader, 0, memory)
	var claims []Claim
	for range 3 * memory {
		r, err := table.Register(make([]byte, 1), RemoteRead)
		require.NoError(t, err)
		claims = append(claims, claimOn(r))
		require.NoError(t, r.Revoke())
		require.NoError(t, r.Revoke(), "a second revoke finds nothing to do")

		for age, claim := range claims {
			want := wire.CodeUnknownRegion
			if len(claims)-age <= memory {
				want = wire.CodeRevoked
			}
			_, code := table.Check(claim)
			require.Equal(t, want, code, "key %d after %d", age, len(claims))
		}
		require.LessOrEqual(t, len(table.gone.ring), memory)
		require.Len(t, table.gone.index, len(table.gone.ring))
	}
}

func TestTheLastRevokedKeysAreRemembered(t *testing.T) {
	table := NewTable(rand.Reader, 0)
	buf := make([]byte, 1)
	first := Claim{}
	for i := range RevokedMemory {
		r, err := table.Register(buf, RemoteRead)
		require.NoError(t, err)
		if i == 0 {
			first = claimOn(r)
		}
		require.NoError(t, r.Revoke())
	}
	_, code := table.Check(first)
	require.Equal(t, wire.CodeRevoked, code)
}

func TestManyRegions(t *testing.T) {
	const many = 100_000
	table := NewTable(rand.Reader, many)
	buf := make([]byte, 1)
	regions := make([]*Region, many)
	for i := range regions {
		r, err := table.Register(buf, RemoteRead)
		require.NoError(t, err)
		regions[i] = r
	}
	require.Equal(t, many, table.Live())
	for i := 0; i < many; i += 997 {
		got, code := table.Check(claimOn(regions[i]))
		require.Equal(t, wire.CodeOK, code)
		require.Same(t, regions[i], got)
	}
	require.NoError(t, table.Close())
	for i := 0; i < many; i += 997 {
		require.True(t, regions[i].Revoked())
	}
}

// The moment between a key's burial and its region's leaving the table, held open.
func TestKeyIsBuriedBeforeItsRegionLeaves(t *testing.T) {
	table, r := registered(t, 1, RemoteRead)
	id := r.Key().Region()
	table.shard(id).mu.RLock()
	revoke := started(func() { _ = r.Revoke() })
	buried := started(func() {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); runtime.Gosched() {
			if _, known := table.gone.find(id); known {
				return
			}
		}
		t.Error("the key is not remembered while its region is still there")
	})
	<-buried
	table.shard(id).mu.RUnlock()
	within(t, revoke, "the revoke")
}

// A look-up that comes while a region is being revoked sees OK or Revoked, never UnknownRegion.
func TestCheckNeverLosesARegionBeingRevoked(t *testing.T) {
	table := NewTable(rand.Reader, 0)
	for range 300 {
		r, err := table.Register(make([]byte, 1), RemoteRead)
		require.NoError(t, err)
		claim := claimOn(r)
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for code := wire.CodeOK; code != wire.CodeRevoked; {
					if _, code = table.Check(claim); code != wire.CodeOK && code != wire.CodeRevoked {
						t.Errorf("a key that was just revoked got %s", code)
						return
					}
				}
			})
		}
		require.NoError(t, r.Revoke())
		readers.Wait()
	}
}

// Everything at once, for the race detector.
func TestTableUnderManyGoroutines(t *testing.T) {
	table := newTable(rand.Reader, 60, 64)
	var all sync.WaitGroup
	for g := range 100 {
		all.Go(func() {
			buf := make([]byte, 64)
			for range 50 {
				r, err := table.Register(buf, allRights)
				if errors.Is(err, ErrTooManyRegions) {
					table.Check(Claim{Region: uint64(g), Want: RemoteRead})
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got, code := table.Check(claimOn(r)); got != r || code != wire.CodeOK {
					t.Errorf("own region: %s", code)
				}
				r.Write(uint64(g%64), buf[:1:1])
				_ = fmt.Sprint(r)
				if err := r.Revoke(); err != nil {
					t.Error(err)
				}
				if _, code := table.Check(claimOn(r)); code != wire.CodeRevoked && code != wire.CodeUnknownRegion {
					t.Errorf("after the revoke: %s", code)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, table.Live())
	for i := range table.shards {
		require.Empty(t, table.shards[i].regions)
	}
}

func TestCodesAndErrorsPair(t *testing.T) {
	seen := map[string]bool{}
	for c := wire.CodeOK; c.Known(); c++ {
		err := CodeError(c)
		assert.Equal(t, c, ErrorCode(err))
		if c == wire.CodeOK {
			assert.NoError(t, err)
			continue
		}
		assert.False(t, seen[err.Error()], "two codes share %q", err)
		seen[err.Error()] = true
		assert.Equal(t, c, ErrorCode(fmt.Errorf("put 3: %w", err)))
	}
	assert.Len(t, seen, len(codes))
	assert.Equal(t, wire.CodeInternal, ErrorCode(io.EOF))
	unknown := CodeError(wire.Code(200))
	require.ErrorIs(t, unknown, ErrInternal)
	assert.Contains(t, unknown.Error(), "200")
}

func TestNoTwoErrorsShareAMessage(t *testing.T) {
	all := []error{
		ErrRevoked, ErrBounds, ErrRights, ErrUnknownRegion, ErrCanceled, ErrOutcomeUnknown, ErrPeerRestarted,
		ErrEndpointDown, ErrNoRoute, ErrTooLarge, ErrWindowFull, ErrShutdown, ErrMalformed, ErrLimit, ErrInternal,
		ErrEmptyRegion, ErrNoRights, ErrTooManyRegions, ErrEntropy,
	}
	seen := map[string]bool{}
	for _, err := range all {
		assert.False(t, seen[err.Error()], err)
		seen[err.Error()] = true
		assert.Contains(t, err.Error(), ":", "%q says what happened, but not what to do", err)
	}
}

func TestErrorsWrap(t *testing.T) {
	err := error(&OpError{Op: "put", ID: 12, Err: ErrRevoked})
	require.ErrorIs(t, err, ErrRevoked)
	assert.True(t, strings.HasPrefix(err.Error(), "put 12: "))
	assert.True(t, strings.HasPrefix((&OpError{Op: "get", Err: ErrBounds}).Error(), "get: "))

	cut := Unknown(ErrEndpointDown)
	require.ErrorIs(t, cut, ErrOutcomeUnknown)
	require.ErrorIs(t, cut, ErrEndpointDown)
	assert.Equal(t, cut, Unknown(cut), "wrapping twice says nothing new")
	assert.Equal(t, ErrOutcomeUnknown, Unknown(nil))
}
