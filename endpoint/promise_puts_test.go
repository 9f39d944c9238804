package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
)

// P2: a put completes when every byte is visible, and nothing of it is applied after that, while rails break.
func TestPromise2PutCompletesWhenVisible(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{rails: 3})
		load := startPuts(t, bd.ab, bd.b, putSpec{workers: 6, seed: rnd.Uint64()})
		tr := &trouble{cables: bd.cables, rnd: rnd}
		tr.run(time.Duration(sized(2, 60)) * time.Second)
		n := load.finish()
		bd.nobodyDown()
		require.Greater(t, n, uint64(sized(3, 20)))
		require.NotEmpty(t, bd.a.events.of(rail.RailDown), "the trouble broke something")
		t.Logf("%d puts, %d rails down", n, len(bd.a.events.of(rail.RailDown)))
	})
}

// doneCounter is an actor that counts the answers to each operation that it asked for.
type doneCounter struct {
	mu   sync.Mutex
	errs map[uint64][]error
}

func (c *doneCounter) Receive(ctx actor.Context) {
	if d, ok := ctx.Message().(*rma.Done); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs[d.ID] = append(c.errs[d.ID], d.Err)
	}
}

func (c *doneCounter) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.errs)
}

// P2: every operation that an actor asks for is answered exactly once, though canceled, refused, or carried by rails
// that break.
func TestPromise2EachOperationCompletesOnce(t *testing.T) {
	allKinds(t, func(t *testing.T, kind string) {
		rnd := seeded(t)
		bd := newBed(t, kind, bedSpec{rails: 2})
		const size, count = 80 << 10, 800
		// Each put has a place of its own, and gets another region: what overlaps is the application's to order.
		region := bd.b.register(t, count*size, rma.RemoteWrite)
		readable := bd.b.register(t, size, rma.RemoteRead)
		revoked := bd.b.register(t, size, rma.RemoteWrite|rma.RemoteRead)
		require.NoError(t, revoked.Revoke())
		counter := &doneCounter{errs: make(map[uint64][]error)}
		self := bd.a.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return counter }))
		ask := func(m any) { bd.a.system.Root.RequestWithCustomSender(bd.ab.PID(), m, self) }

		tr := &trouble{cables: bd.cables, rnd: seeded(t)}
		var work sync.WaitGroup
		work.Go(func() { tr.run(1500 * time.Millisecond) })
		source := make([]byte, size)
		for id := uint64(1); id <= count; id++ {
			write, read, at := region.Key(), readable.Key(), (id-1)*size
			if rnd.IntN(10) == 0 {
				write, read, at = revoked.Key(), revoked.Key(), 0
			}
			n := rnd.IntN(size)
			switch rnd.IntN(8) {
			case 0:
				ask(&rma.Get{ID: id, Key: read, Dst: make([]byte, n)})
			case 1:
				ask(&rma.Flush{ID: id})
			case 2:
				ask(&rma.Put{ID: id, Key: write, Offset: at, Data: source[:n], Options: []rma.Option{rma.Fence()}})
			default:
				ask(&rma.Put{ID: id, Key: write, Offset: at, Data: source[:n]})
			}
			if rnd.IntN(4) == 0 {
				ask(&rma.Cancel{ID: 1 + uint64(rnd.IntN(int(id)))})
			}
			if id%8 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		work.Wait()
		eventually(t, "each operation is answered", func() (bool, any) {
			return counter.answered() == count, fmt.Sprint(counter.answered(), bd.a.sizes(), bd.b.sizes())
		})
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		require.NoError(t, bd.ab.Flush(ctx)) // a second answer would have come by now
		counter.mu.Lock()
		defer counter.mu.Unlock()
		kinds := map[string]int{}
		for id, errs := range counter.errs {
			require.Len(t, errs, 1, "answers to operation %d", id)
			kinds[outcome(t, errs[0])]++
		}
		t.Logf("outcomes: %v, %d rails down", kinds, len(bd.a.events.of(rail.RailDown)))
		require.NotZero(t, kinds["done"])
		require.NotZero(t, kinds["canceled"])
		require.NotZero(t, kinds["revoked"])
		bd.nobodyDown()
	})
}

func outcome(t testing.TB, err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, rma.ErrCanceled):
		return "canceled"
	case errors.Is(err, rma.ErrRevoked):
		return "revoked"
	}
	require.NoError(t, err, "an outcome that nothing here causes")
	return ""
}
