package perf

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/endpoint"
	"railyard/internal/hist"
	"railyard/rma"
)

// The phases of a test.
const (
	warming int32 = iota
	measuring
	resting
)

// maxFailures ends a sender to which nothing succeeds.
const maxFailures = 1000

// bench is one test under way, at the initiator.
type bench struct {
	o        *Options
	kind     kind
	node     *actors.Node
	system   *actor.ActorSystem
	endpoint *endpoint.Endpoint
	over     <-chan struct{} // closed when the test must end, finished or not
	diary    diary

	key    rma.Key // of the target's region
	slots  uint64  // operations that the region has room for side by side
	test   uint64  // its number at the target
	source []byte  // of all puts and messages: every operation carries the same bytes

	phase   atomic.Int32
	next    atomic.Uint64 // operations started; it says where the next one goes
	live    atomic.Uint64 // operations ended, for the progress line
	senders sync.WaitGroup
	tallies []*tally
	gets    [][]byte // where gets land, in pieces
	came    []uint64 // from where in the region, plus 1, each piece was last read; 0: never. Owner: the piece's sender
	base    mark     // before anything was sent
}

// tally is what one sender has counted. Owner: that sender, and whoever has joined it.
type tally struct {
	times      hist.Histogram
	ops, bytes uint64
	errors     uint64
	first      error
	verified   uint64 // echoes that were compared
	bad        uint64
}

func (b *bench) tally() *tally {
	t := &tally{}
	b.tallies = append(b.tallies, t)
	return t
}

func (b *bench) running() bool { return b.phase.Load() != resting }

// ended counts an operation that has ended. False: the sender is to give up.
func (b *bench) ended(t *tally, began time.Time, err error) bool {
	d := time.Since(began)
	b.live.Add(1)
	if err != nil {
		return t.failed(err)
	}
	if b.phase.Load() == measuring {
		t.times.Record(d)
		t.ops++
		t.bytes += uint64(b.o.Size)
	}
	return true
}

func (t *tally) failed(err error) bool {
	if t.errors++; t.first == nil {
		t.first = err
	}
	return t.errors < maxFailures
}

// place says where the n-th operation goes: the region is used round and round.
func (b *bench) place(n uint64) uint64 { return n % b.slots * uint64(b.o.Size) }

// flying is an operation under way.
type flying struct {
	op    *rma.Op
	began time.Time
}

// window keeps o.Window operations under way until the test rests. start begins the i-th of the window.
func (b *bench) window(t *tally, start func(i int) *rma.Op) {
	ring := make([]flying, b.o.Window)
	end := func(f *flying) bool {
		if f.op == nil {
			return true
		}
		select {
		case <-b.over:
			return t.failed(fmt.Errorf("an operation was still under way when the test had to end: %s", f.op))
		default:
		}
		if !f.op.Finished() {
			select {
			case <-f.op.Done():
			case <-b.over:
			}
		}
		return b.ended(t, f.began, f.op.Err())
	}
	at := 0
	for b.running() {
		i := at % len(ring)
		if !end(&ring[i]) {
			break
		}
		ring[i] = flying{op: start(i), began: time.Now()}
		at++
	}
	for i := range ring {
		end(&ring[(at+i)%len(ring)])
	}
}

func (b *bench) startPuts() {
	for range b.o.Senders {
		t := b.tally()
		b.senders.Go(func() {
			b.window(t, b.startPut)
		})
	}
}

// startPut starts the next put. Where puts are verified the target is told of each, and counts whether each lands once.
func (b *bench) startPut(int) *rma.Op {
	n := b.next.Add(1) - 1
	to := b.place(n)
	if !b.o.Verify {
		return b.endpoint.StartPut(b.key, to, b.source)
	}
	counter := actor.NewPID(b.endpoint.Address(), controlName)
	return b.endpoint.StartPut(b.key, to, b.source, rma.Notify(counter, &Landed{Test: b.test, Number: n}))
}

func (b *bench) startGets() {
	for s := range b.o.Senders {
		t := b.tally()
		b.senders.Go(func() {
			b.window(t, func(i int) *rma.Op {
				piece, from := s*b.o.Window+i, b.place(b.next.Add(1)-1)
				b.came[piece] = from + 1
				return b.endpoint.StartGet(b.key, from, b.gets[piece])
			})
		})
	}
}

// startStreams sends as fast as the target's window allows. What counts is what the target has counted.
func (b *bench) startStreams() {
	for s := range b.o.Senders {
		t := b.tally()
		to := actor.NewPID(b.endpoint.Address(), fmt.Sprintf(sinkName, s))
		// One message for all: it is serialized before Send returns.
		m := &Stream{Padding: b.source, Checked: b.o.Verify}
		if b.o.Verify {
			m.Sum = sumOf(b.source)
		}
		b.senders.Go(func() {
			ctx, cancel := untilClosed(b.over)
			defer cancel()
			for b.running() {
				if err := b.node.Send(ctx, to, m); err != nil {
					if !t.failed(err) {
						return
					}
					continue
				}
				b.next.Add(1)
				b.live.Add(1)
			}
		})
	}
}

func (b *bench) startEchoes() {
	for range b.o.Senders {
		p := &pinger{bench: b, tally: b.tally(), done: make(chan struct{}),
			to: actor.NewPID(b.endpoint.Address(), echoName), message: &Echo{Padding: b.source}}
		b.senders.Go(func() {
			pid := b.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }))
			select {
			case <-p.done:
			case <-b.over:
				b.system.Root.Stop(pid) // it may be waiting for an answer that does not come
			}
		})
	}
}

// pinger is an actor that sends a message when its last one has come back.
type pinger struct {
	bench   *bench
	tally   *tally
	to      *actor.PID
	message *Echo
	began   time.Time
	done    chan struct{}
}

func (p *pinger) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
	case *Echo:
		p.bench.ended(p.tally, p.began, nil)
		if p.bench.o.Verify {
			p.tally.verified++
			if !bytes.Equal(m.Padding, p.message.Padding) {
				p.tally.bad++
			}
		}
	default:
		return
	}
	if !p.bench.running() {
		close(p.done)
		ctx.Stop(ctx.Self())
		return
	}
	p.began = time.Now()
	p.bench.next.Add(1)
	ctx.Request(p.to, p.message)
}
