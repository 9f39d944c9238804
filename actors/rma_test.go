package actors

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/endpoint"
	"railyard/rail"
	"railyard/rma"
)

const regionSize = 256 << 10

// pair is two nodes, a region at b in memory from Alloc, and a's endpoint to b.
func pair(t *testing.T, rails int) (a, b testNode, region *rma.Region, e *endpoint.Endpoint) {
	t.Helper()
	a = node(t, func(c *Config) { *c = loopback(rails) })
	b = node(t, func(c *Config) { *c = loopback(rails) })
	mem, err := b.Alloc(regionSize)
	require.NoError(t, err)
	region, err = b.Register(mem, rma.RemoteWrite|rma.RemoteRead)
	require.NoError(t, err)
	e, err = a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	return a, b, region, e
}

func randomBytes(t testing.TB, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	_, err := rand.Read(b)
	require.NoError(t, err)
	return b
}

func TestPutGetFlush(t *testing.T) {
	a, _, region, e := pair(t, 2)
	ctx := testContext(t)
	src, err := a.Alloc(regionSize)
	require.NoError(t, err)
	copy(src, randomBytes(t, regionSize))
	for _, c := range []struct{ offset, size int }{{0, 1}, {1, 8}, {4096, 3000}, {100, regionSize - 100}, {0, regionSize}} {
		require.NoError(t, e.Put(ctx, region.Key(), uint64(c.offset), src[:c.size]))
		require.True(t, bytes.Equal(src[:c.size], region.Bytes()[c.offset:c.offset+c.size]), "%v", c)
		dst := make([]byte, c.size)
		require.NoError(t, e.Get(ctx, region.Key(), uint64(c.offset), dst))
		require.True(t, bytes.Equal(src[:c.size], dst), "%v", c)
	}
	var ops []*rma.Op
	for i := range 50 {
		ops = append(ops, e.StartPut(region.Key(), uint64(i*8), src[i*8:i*8+8], rma.Fence()))
	}
	require.NoError(t, e.Flush(ctx))
	for _, op := range ops {
		require.True(t, op.Finished(), "a flush waits for what was started before it")
		require.NoError(t, op.Err())
	}
	require.True(t, bytes.Equal(src[:400], region.Bytes()[:400]))
}

// One bit of a key, or one byte of a bound, is all the difference.
func TestBadKeys(t *testing.T) {
	_, b, region, e := pair(t, 1)
	ctx := testContext(t)
	key := region.Key()
	readable, err := b.Register(make([]byte, 64), rma.RemoteRead)
	require.NoError(t, err)
	writable, err := b.Register(make([]byte, 64), rma.RemoteWrite)
	require.NoError(t, err)
	revoked, err := b.Register(make([]byte, 64), rma.RemoteRead|rma.RemoteWrite)
	require.NoError(t, err)
	require.NoError(t, revoked.Revoke())
	flip := func(bit int) rma.Key {
		token := key.Token()
		token[bit/8] ^= 1 << (bit % 8)
		return rma.NewKey(rma.KeyConfig{Region: key.Region(), Token: token, Len: key.Len(), Rights: key.Rights()})
	}
	longer := rma.NewKey(rma.KeyConfig{Region: key.Region(), Token: key.Token(), Len: 2 * key.Len(), Rights: key.Rights()})
	before := bytes.Clone(region.Bytes())
	for name, c := range map[string]struct {
		key    rma.Key
		offset uint64
		write  error
		read   error
	}{
		"first bit wrong":   {flip(0), 0, rma.ErrUnknownRegion, rma.ErrUnknownRegion},
		"last bit wrong":    {flip(127), 0, rma.ErrUnknownRegion, rma.ErrUnknownRegion},
		"one byte too far":  {key, regionSize - 7, rma.ErrBounds, rma.ErrBounds},
		"far out":           {key, 1 << 63, rma.ErrBounds, rma.ErrBounds},
		"a forged length":   {longer, regionSize, rma.ErrBounds, rma.ErrBounds},
		"read only":         {readable.Key(), 0, rma.ErrRights, nil},
		"write only":        {writable.Key(), 0, nil, rma.ErrRights},
		"revoked":           {revoked.Key(), 0, rma.ErrRevoked, rma.ErrRevoked},
		"no key":            {rma.Key{}, 0, rma.ErrUnknownRegion, rma.ErrUnknownRegion},
		"the right one too": {key, 0, nil, nil},
	} {
		buf := []byte("12345678")
		assert.ErrorIs(t, e.Put(ctx, c.key, c.offset, buf), c.write, "put: %s", name)
		assert.ErrorIs(t, e.Get(ctx, c.key, c.offset, buf), c.read, "get: %s", name)
	}
	require.Equal(t, before[8:], region.Bytes()[8:], "what was refused was not written")
	require.NoError(t, e.Err())
	require.Equal(t, rail.Up, e.Rails()[0].State, "refusals cost no rail")
}

// P4: after Revoke nothing lands, and only that region's operations notice.
func TestRevokeWhilePutsAreUnderWay(t *testing.T) {
	_, b, region, e := pair(t, 2)
	ctx := testContext(t)
	other, err := b.Register(make([]byte, regionSize), rma.RemoteWrite)
	require.NoError(t, err)
	src := bytes.Repeat([]byte{0xab}, regionSize)
	var ops []*rma.Op
	for range 200 {
		ops = append(ops, e.StartPut(region.Key(), 0, src))
	}
	require.NoError(t, ops[0].Wait(ctx))
	require.NoError(t, region.Revoke())
	clear(region.Bytes())
	refused := 0
	for _, op := range ops {
		if err := op.Wait(ctx); err != nil {
			require.ErrorIs(t, err, rma.ErrRevoked)
			refused++
		}
	}
	require.NoError(t, e.Flush(ctx))
	require.Equal(t, make([]byte, regionSize), region.Bytes(), "a late write (%d of 200 refused)", refused)
	require.NoError(t, e.Put(ctx, other.Key(), 0, src), "the endpoint goes on")
	require.ErrorIs(t, e.Put(ctx, region.Key(), 0, src), rma.ErrRevoked)
	require.NoError(t, e.Err())
}

// P3: what was canceled has either completed or is never written again.
func TestCancel(t *testing.T) {
	_, _, region, e := pair(t, 2)
	ctx := testContext(t)
	src := randomBytes(t, regionSize)
	var ops []*rma.Op
	for range 100 {
		ops = append(ops, e.StartPut(region.Key(), 0, src))
	}
	for i := len(ops) - 1; i >= 0; i-- {
		require.NoError(t, ops[i].Cancel(ctx))
		require.True(t, ops[i].Finished())
		if err := ops[i].Err(); err != nil {
			require.ErrorIs(t, err, rma.ErrCanceled)
		}
	}
	clear(src) // the buffers are free: nothing of this may arrive
	mark := bytes.Clone(region.Bytes())
	require.NoError(t, e.Flush(ctx))
	require.True(t, bytes.Equal(mark, region.Bytes()), "a canceled put was written")

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := e.Put(canceled, region.Key(), 0, src); err != nil {
		require.ErrorIs(t, err, rma.ErrCanceled)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, e.Put(ctx, region.Key(), 0, src), "the endpoint goes on")
}

// Notify comes after all bytes are visible, and not at all for what was refused.
func TestNotify(t *testing.T) {
	a, b, region, e := pair(t, 2)
	ctx := testContext(t)
	var wrong atomic.Int64
	got := make(chan string, 1000)
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(interface{ GetValue() string }); ok {
			s := m.GetValue()
			if len(s) > 0 && !bytes.Equal(bytes.Repeat([]byte{s[0]}, regionSize), region.Bytes()) {
				wrong.Add(1)
			}
			got <- s
		}
	}), "told")
	require.NoError(t, err)
	for i := range 30 {
		s := string([]byte{byte('a' + i%26)})
		op := e.StartPut(region.Key(), 0, bytes.Repeat([]byte(s), regionSize), rma.Notify(b.at("told"), text(s)))
		require.Equal(t, s, next(t, got, "the notification"))
		require.NoError(t, op.Wait(ctx))
	}
	require.Zero(t, wrong.Load(), "notified before all bytes were there")

	forged := rma.NewKey(rma.KeyConfig{Region: region.Key().Region(), Len: regionSize, Rights: rma.RemoteWrite})
	require.ErrorIs(t, e.Put(ctx, forged, 0, []byte("x"), rma.Notify(b.at("told"), text("z"))), rma.ErrUnknownRegion)
	require.ErrorIs(t, e.Put(ctx, region.Key(), 0, []byte("x"), rma.Notify(b.at("told"), "no protobuf")), ErrNotProtobuf)
	require.ErrorIs(t, e.Put(ctx, region.Key(), 0, []byte("x"), rma.Notify(actor.NewPID(b.Address(), ""), text("x"))), ErrNoTarget)
	a.sys.Root.Send(b.at("told"), text(""))
	require.Empty(t, next(t, got, "the message behind"), "a refused put notifies nobody")
}

// The same from inside an actor, by messages.
func TestOperationsFromInsideAnActor(t *testing.T) {
	a, _, region, e := pair(t, 1)
	done := make(chan *rma.Done, 100)
	type begin struct{ messages []any }
	pid := a.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *begin:
			for _, message := range m.messages {
				ctx.Request(e.PID(), message)
			}
		case *rma.Done:
			done <- m
		}
	}))
	src, dst := randomBytes(t, 100), make([]byte, 100)
	a.sys.Root.Send(pid, &begin{[]any{
		&rma.Put{ID: 1, Key: region.Key(), Data: src},
		&rma.Get{ID: 2, Key: region.Key(), Dst: dst, Options: []rma.Option{rma.Fence()}},
		&rma.Put{ID: 3, Key: region.Key(), Offset: regionSize, Data: src},
		&rma.Flush{ID: 4},
	}})
	outcome := map[uint64]error{}
	for range 4 {
		d := next(t, done, "Done")
		outcome[d.ID] = d.Err
	}
	require.NoError(t, outcome[1])
	require.NoError(t, outcome[2])
	require.ErrorIs(t, outcome[3], rma.ErrBounds)
	require.NoError(t, outcome[4])
	require.Len(t, outcome, 4)
	require.Equal(t, src, dst)

	big := randomBytes(t, regionSize)
	a.sys.Root.Send(pid, &begin{[]any{&rma.Put{ID: 5, Key: region.Key(), Data: big}, &rma.Cancel{ID: 5}, &rma.Cancel{ID: 99}}})
	d := next(t, done, "Done")
	require.EqualValues(t, 5, d.ID)
	if d.Err != nil {
		require.ErrorIs(t, d.Err, rma.ErrCanceled)
	}
}

// Everything open ends with one typed error when the peer dies, and again works with its next
// incarnation.
func TestPeerRestarted(t *testing.T) {
	c := startChild(t, "127.0.0.1:0")
	a := node(t, func(cfg *Config) { cfg.OutageLimit = 20 * time.Second })
	ctx := testContext(t)
	e, err := a.Connect(ctx, c.address)
	require.NoError(t, err)
	require.NoError(t, e.Put(ctx, c.key, 0, []byte("before")))
	w := newWatcher(a)
	w.order(t, c.at("echo"), false)
	_, err = a.sys.Root.RequestFuture(c.at("echo"), text("x"), patience).Result()
	require.NoError(t, err)

	c.kill()
	ended := make(chan error, 1)
	op := e.StartPut(c.key, 0, make([]byte, 1<<20))
	go func() { ended <- op.Wait(ctx) }()
	again := startChild(t, c.address)
	require.Equal(t, c.address, again.address)

	err = next(t, ended, "the outcome of what was open")
	require.ErrorIs(t, err, rma.ErrPeerRestarted)
	require.ErrorIs(t, e.Err(), rma.ErrPeerRestarted)
	w.once(t, c.at("echo"), actor.TerminatedReason_AddressTerminated)
	w.nothing(t)

	fresh, err := a.Connect(ctx, c.address)
	require.NoError(t, err)
	require.NotSame(t, e, fresh)
	require.ErrorIs(t, fresh.Put(ctx, c.key, 0, []byte("old key")), rma.ErrUnknownRegion)
	require.NoError(t, fresh.Put(ctx, again.key, 0, []byte("new key")))
	require.ErrorIs(t, e.Put(ctx, again.key, 0, []byte("old endpoint")), rma.ErrPeerRestarted)
	res, err := a.sys.Root.RequestFuture(c.at("echo"), text("after"), patience).Result()
	require.NoError(t, err)
	require.Equal(t, "after", textOf(t, res))
	require.NoError(t, a.Shutdown(ctx), "before the peer is killed")
}
