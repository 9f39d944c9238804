package demo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/endpoint"
	"railyard/internal/clock"
	"railyard/internal/load"
	"railyard/rail"
)

// setup is what a half is told when it starts.
type setup struct {
	Name      string        `json:"name"`
	OtherName string        `json:"other_name"`
	Rails     []railSetup   `json:"rails"`
	Secret    []byte        `json:"secret"`
	Pairs     int           `json:"pairs"`
	Seed      uint64        `json:"seed"`
	Filler    bool          `json:"filler"`
	Outage    time.Duration `json:"outage"`
}

// railSetup is one rail: where it listens, and what the other node is told to dial.
type railSetup struct {
	Address   string `json:"address"`
	Advertise string `json:"advertise"`
}

// The load of one half. Both together: pairs × 2 × 260 messages and 90 MB of puts a second, paced so that two slow
// cores bear it.
const (
	messageRate = 260
	putRate     = 45e6
	slotSize    = 8<<20 + load.Scratch
	slotCount   = 24
	maxPut      = 4 << 20
	putters     = 4
	watch       = 2200 * time.Millisecond
	// patience bounds waits that the framework itself does not bound: longer than any outage of a script.
	cancelWait = 30 * time.Second
)

// wait is how long what goes to the other node may have to wait for a rail.
func (s setup) wait() time.Duration { return max(cancelWait, s.Outage) }

func (s setup) load() load.Config {
	return load.Config{
		Name: s.Name, OtherName: s.OtherName, Pairs: s.Pairs, Putters: putters, Slots: slotCount, SlotSize: slotSize,
		MaxPut: maxPut, MessageRate: messageRate, PutRate: putRate, CancelShare: 0.02, RevokeShare: 0.01,
		CancelWait: s.wait(), Watch: watch, Filler: s.Filler, Seed: s.Seed, Now: clock.Now,
	}
}

// half is one node with its side of the load.
type half struct {
	node     *actors.Node
	system   *actor.ActorSystem
	side     *load.Side
	endpoint *endpoint.Endpoint
	stop     context.CancelFunc // ends the event log
	log      sync.WaitGroup

	mu sync.Mutex
	// Owner: mu.
	signs   []sign
	closing bool
	running bool
}

// sign is an event of a rail or an endpoint, as records need it.
type sign struct {
	At     time.Duration `json:"at"`
	Kind   string        `json:"kind"`
	Local  string        `json:"local"`
	Remote string        `json:"remote"`
	Cause  string        `json:"cause"`
}

// maxSigns bounds what a half remembers; a report asks for those since a time.
const maxSigns = 4096

// newHalf starts a node and its actors; nothing is sent before start.
func newHalf(s setup) (*half, error) {
	config := actors.Config{
		Name: s.Name, Secret: s.Secret, OutageLimit: s.Outage, CancelWait: s.wait(), SendWait: s.wait(),
	}
	for _, r := range s.Rails {
		var options []rail.BindingOption
		if r.Advertise != "" {
			options = append(options, rail.Advertised(r.Advertise))
		}
		config.Rails = append(config.Rails, rail.TCP(r.Address, options...))
	}
	h := &half{system: quietSystem()}
	var err error
	if h.node, err = actors.Start(h.system, config); err != nil {
		h.system.Shutdown()
		return nil, fmt.Errorf("node %s: %w", s.Name, err)
	}
	if h.side, err = load.NewSide(h.system, h.node, s.load()); err != nil {
		_ = h.close(context.Background())
		return nil, fmt.Errorf("load of node %s: %w", s.Name, err)
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	events := h.node.Events().Subscribe(ctx)
	h.log.Go(func() { h.keep(events) })
	return h, nil
}

// quietSystem is an actor system that keeps its log to itself: the screen belongs to the demo.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// keep writes the event log.
func (h *half) keep(events <-chan rail.Event) {
	for e := range events {
		s := sign{At: clock.Stamp(e.At), Kind: e.Kind.String(), Local: e.Local, Remote: e.Remote}
		if e.Cause != nil {
			s.Cause = e.Cause.Error()
		}
		h.mu.Lock()
		if len(h.signs) == maxSigns {
			h.signs = append(h.signs[:0], h.signs[maxSigns/2:]...)
		}
		h.signs = append(h.signs, s)
		closing := h.closing
		h.mu.Unlock()
		if e.Kind == rail.EndpointDown && !closing {
			h.side.Fault("the endpoint to %s went down: %s", e.Peer, s.Cause)
		}
		if e.Missed > 0 {
			h.side.Fault("%d events were missed: the event log was too slow", e.Missed)
		}
	}
}

// start connects to the other node, if it is not connected yet, and starts the load.
func (h *half) start(ctx context.Context, address string) error {
	var err error
	if h.endpoint, err = h.node.Connect(ctx, address); err != nil {
		return fmt.Errorf("the nodes do not connect: %w", err)
	}
	if err := h.side.Start(h.endpoint, h.endpoint.Address()); err != nil {
		return fmt.Errorf("the load does not start: %w", err)
	}
	h.mu.Lock()
	h.running = true
	h.mu.Unlock()
	return nil
}

// report is what a half knows at a moment.
type report struct {
	load.Report
	Signs []sign        `json:"signs"`
	Rails []rail.Status `json:"-"`
}

// report counts, with the worst standstill and the signs between from and to.
func (h *half) report(from, to time.Duration) report {
	r := report{Report: h.side.Report(from, to)}
	h.mu.Lock()
	for _, s := range h.signs {
		if s.At >= from && s.At <= to {
			r.Signs = append(r.Signs, s)
		}
	}
	h.mu.Unlock()
	if h.endpoint != nil {
		r.Rails = h.endpoint.Rails()
	}
	return r
}

// halt stops the sending.
func (h *half) halt() {
	h.mu.Lock()
	running := h.running
	h.running = false
	h.mu.Unlock()
	if running {
		h.side.Stop()
	}
}

// expectEnd says that the other node may go from now on.
func (h *half) expectEnd() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
}

// close ends the node. The memory that the load looked at is freed by it.
func (h *half) close(ctx context.Context) error {
	h.expectEnd()
	h.halt()
	if h.side != nil {
		h.side.Close()
	}
	err := h.node.Shutdown(ctx)
	if h.stop != nil {
		h.stop()
		h.log.Wait()
	}
	h.system.Shutdown()
	if err != nil {
		return fmt.Errorf("a node did not shut down in order: %w", err)
	}
	return nil
}
