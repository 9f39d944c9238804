package main

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/bench/internal/cell"
	"railyard/bench/internal/pinger"
	"railyard/endpoint"
	"railyard/rma"
)

// driver is the side that sends.
type driver struct {
	host  host
	peer  *endpoint.Endpoint
	setup cell.Setup

	key    rma.Key // of the server's memory
	source []byte  // of every operation, or what gets land in
}

// borrow reads the server's key, and makes the memory that operations use here.
func (d *driver) borrow() error {
	if err := d.key.UnmarshalBinary(d.setup.Peer.Key); err != nil {
		return err
	}
	s := d.setup.Spec
	size := max(s.Size, s.Beside)
	if s.Load == cell.Get {
		size = s.Size * int64(s.Window)
	}
	var err error
	if d.source, err = d.host.node.Alloc(int(size)); err != nil {
		return err
	}
	for i := range d.source {
		d.source[i] = 2
	}
	return nil
}

// operations keeps puts or gets under way, as many as the window says.
func (d *driver) operations() error {
	s := d.setup.Spec
	timed := s.Window == 1 // with more of them it is the window that takes its time
	start := d.put
	if s.Load == cell.Get {
		start = d.get
	}
	return d.window(s.Size, s.Window, work{start: start, timed: timed, counter: d.setup.Tally.Counter(s.Size)})
}

func (d *driver) put(_ int, at uint64, size int64) *rma.Op {
	return d.peer.StartPut(d.key, at, d.source[:size])
}

func (d *driver) get(i int, at uint64, size int64) *rma.Op {
	return d.peer.StartGet(d.key, at, d.source[int64(i)*size:][:size])
}

// work is what goes round in a window.
type work struct {
	start   func(i int, at uint64, size int64) *rma.Op // the i-th of the window
	timed   bool
	counter *cell.Counter
}

// window keeps operations under way for ever. They go round in the server's memory.
func (d *driver) window(size int64, n int, w work) error {
	ring := make([]*rma.Op, n)
	var at, region uint64
	region = uint64(d.setup.Spec.Region() / size * size)
	began := time.Now()
	for turn := 0; ; turn++ {
		i := turn % n
		if op := ring[i]; op != nil {
			if !op.Finished() {
				<-op.Done()
			}
			if err := op.Err(); err != nil {
				return err
			}
			w.counter.Add(size)
			if w.timed {
				d.setup.Tally.Took(time.Since(began))
			}
		}
		if w.timed {
			began = time.Now()
		}
		ring[i] = w.start(i, at, size)
		at = (at + uint64(size)) % region
	}
}

// ping sends one message there and back at a time, between two actors; puts may go on beside it.
func (d *driver) ping() error {
	s := d.setup.Spec
	p := &pinger.Pinger{Tally: d.setup.Tally, Counter: d.setup.Tally.Counter(s.Size), To: actor.NewPID(d.peer.Address(), "echo"),
		Message: &wrapperspb.BytesValue{Value: make([]byte, s.Size)}}
	d.host.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }))
	if s.Beside > 0 {
		return d.window(s.Beside, besideWindow, work{start: d.put, counter: d.setup.Tally.Beside()})
	}
	return d.whole()
}

// besideWindow is how many puts go on beside pings: as many as in the load that they are compared with.
const besideWindow = 8

// whole waits for the endpoint's end, which would be a failure.
func (d *driver) whole() error {
	<-d.peer.Done()
	return fmt.Errorf("the endpoint ended: %w", d.peer.Err())
}

// messages sends from as many goroutines as there are senders, each to a sink of its own.
func (d *driver) messages() error {
	s := d.setup.Spec
	message := &wrapperspb.BytesValue{Value: make([]byte, s.Size)} // serialized before Send returns, so it serves all
	failed := make(chan error)
	for i := range s.Senders {
		to := actor.NewPID(d.peer.Address(), sinkName(i))
		go func() {
			for {
				if err := d.host.node.Send(context.Background(), to, message); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}
