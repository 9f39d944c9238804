package endpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/rma"
)

// puts writes stamped bytes into regions of the target until it is told to stop. Each worker has a region of its own.
//
// At each completion the whole must be there. The target's owner then writes something else over it, which must
// still be there before the next put: nothing is applied after the completion.
type puts struct {
	t        testing.TB
	e        *Endpoint
	to       *peer
	work     sync.WaitGroup
	stopping chan struct{}
	once     sync.Once
	done     atomic.Uint64
	notified atomic.Uint64
	sizes    func(*rand.Rand) int
	workers  []*putWorker
	pause    time.Duration
}

type putWorker struct {
	p      *puts
	id     uint64
	region *rma.Region
	rnd    *rand.Rand
	source []byte
	// want is how many bytes of which stamp the next notification must find.
	want, word atomic.Uint64
	round      uint64
}

type putSpec struct {
	workers int
	// largest is the size of the largest put (0: 1.5 MiB).
	largest int
	pause   time.Duration
	seed    uint64
}

func startPuts(t testing.TB, e *Endpoint, to *peer, spec putSpec) *puts {
	if spec.largest == 0 {
		spec.largest = 3 << 19
	}
	p := &puts{t: t, e: e, to: to, stopping: make(chan struct{}), pause: spec.pause}
	p.sizes = func(rnd *rand.Rand) int {
		if rnd.IntN(3) > 0 {
			return 1 + rnd.IntN(min(8<<10, spec.largest))
		}
		return 1 + rnd.IntN(spec.largest)
	}
	for i := range spec.workers {
		w := &putWorker{p: p, id: uint64(i), region: to.register(t, spec.largest, rma.RemoteWrite),
			rnd: rand.New(rand.NewPCG(spec.seed, uint64(i))), source: make([]byte, spec.largest)}
		p.workers = append(p.workers, w)
	}
	to.witness.mu.Lock()
	to.notified = p.notify
	to.witness.mu.Unlock()
	for _, w := range p.workers {
		p.work.Go(w.run)
	}
	t.Cleanup(p.stop)
	return p
}

func (p *puts) stop() {
	p.once.Do(func() { close(p.stopping) })
	p.work.Wait()
}

// finish stops, and waits for the last puts. It gives how many have completed.
func (p *puts) finish() uint64 {
	p.t.Helper()
	p.stop()
	require.Empty(p.t, p.to.faults())
	require.Equal(p.t, p.done.Load(), p.notified.Load(), "puts that completed and notifications")
	return p.done.Load()
}

func (w *putWorker) run() {
	for {
		select {
		case <-w.p.stopping:
			return
		default:
		}
		if err := w.once(); err != nil {
			w.p.to.accuse(fmt.Errorf("put %d of worker %d: %w", w.round, w.id, err))
			return
		}
		if w.p.pause > 0 {
			time.Sleep(w.p.pause)
		}
	}
}

// once makes one put and checks it.
func (w *putWorker) once() error {
	w.round++
	data := w.source[:w.p.sizes(w.rnd)]
	word := hash(fmt.Sprint("put", w.id, w.round))
	fill(data, word)
	w.word.Store(word)
	w.want.Store(uint64(len(data)))
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	err := w.p.e.Put(ctx, w.region.Key(), 0, data, rma.Notify(actor.NewPID(w.p.to.Address(), "puts"), w.id))
	if err != nil {
		return err
	}
	if w.want.Load() != 0 {
		return errors.New("completed before the notification")
	}
	// The notification came first, and with it the owner's own bytes: see notify.
	if at := foreign(w.region.Bytes()[:len(data)], ^word); at >= 0 {
		return fmt.Errorf("byte %d of %d was written after the notification", at, len(data))
	}
	w.p.done.Add(1)
	return nil
}

// notify checks that the put is whole when the target hears of it, and writes over it.
func (p *puts) notify(id uint64) error {
	w := p.workers[id]
	n := w.want.Swap(0)
	if n == 0 {
		return fmt.Errorf("a second notification for a put of worker %d", id)
	}
	word := w.word.Load()
	b := w.region.Bytes()[:n]
	p.notified.Add(1)
	if at := foreign(b, word); at >= 0 {
		return fmt.Errorf("worker %d was notified when byte %d of %d was not there", id, at, n)
	}
	fill(b, ^word)
	return nil
}
