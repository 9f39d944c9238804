package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/rma"
)

// Peer is what the load needs of the endpoint that stands for the other node.
type Peer interface {
	StartPut(key rma.Key, offset uint64, data []byte, opts ...rma.Option) *rma.Op
}

// Memory is what the load needs of its own node.
type Memory interface {
	Alloc(size int) ([]byte, error)
	Register(buf []byte, rights rma.Rights) (*rma.Region, error)
}

// Config of a Side. All fields must be set, except Filler, Mortal and Arrived.
type Config struct {
	Name      string // of this side; its actors' names begin with it
	OtherName string // of the other side
	Pairs     int    // actor pairs; each sends both ways
	Putters   int    // puts under way at a time
	Slots     int    // of this side's memory
	SlotSize  int    // bytes of each, Scratch included
	MaxPut    int    // bytes
	// MessageRate is in messages per second and pair, PutRate in bytes per second, both for one direction.
	MessageRate float64
	PutRate     float64
	// CancelShare and RevokeShare say which part of the puts is taken back, and which loses its key.
	CancelShare float64
	RevokeShare float64
	CancelWait  time.Duration // how long a cancel may take
	Watch       time.Duration // how long memory that was given back is watched before it is used again
	Filler      bool          // send messages and puts for nobody, for sabotage
	// Mortal: the other node may die. What is open then has an unknown outcome, which is counted and is no fault.
	Mortal bool
	// Arrived is told of each message's number when it has come, one after the other; nil: nobody is.
	Arrived func(pair int, sequence uint64)
	Seed    uint64
	Now     func() time.Duration
}

// minPut is the size in bytes of the smallest put.
const minPut = 8

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("load refused")

// Validate says what is wrong with the configuration.
func (c *Config) Validate() error {
	switch {
	case c.Name == "" || c.OtherName == "" || c.Name == c.OtherName:
		return fmt.Errorf("%w: the sides need two names, not %q and %q", ErrConfig, c.Name, c.OtherName)
	case c.Pairs < 1 || c.Pairs > 1024:
		return fmt.Errorf("%w: %d pairs; 1 to 1024 are possible", ErrConfig, c.Pairs)
	case c.Putters < 1 || c.Slots < 2:
		return fmt.Errorf("%w: %d putters and %d slots; at least 1 and 2 are needed", ErrConfig, c.Putters, c.Slots)
	case c.MaxPut < minPut || c.MaxPut > c.SlotSize-Scratch:
		return fmt.Errorf("%w: puts of up to %d bytes do not fit slots of %d", ErrConfig, c.MaxPut, c.SlotSize)
	case c.MessageRate <= 0 || c.PutRate <= 0:
		return fmt.Errorf("%w: rates of %v messages and %v bytes per second; both must be above 0",
			ErrConfig, c.MessageRate, c.PutRate)
	case c.CancelShare < 0 || c.RevokeShare < 0 || c.CancelShare+c.RevokeShare > 1:
		return fmt.Errorf("%w: shares of %v canceled and %v revoked are no shares",
			ErrConfig, c.CancelShare, c.RevokeShare)
	case c.Watch <= 0 || c.CancelWait <= 0 || c.Now == nil:
		return fmt.Errorf("%w: Watch, CancelWait and Now must be set", ErrConfig)
	}
	return nil
}

// Side is one node's half of the load.
type Side struct {
	config Config
	system *actor.ActorSystem
	gaps   Gaps
	target *Target // Owner: the target actor while the side runs
	actors []*actor.PID

	drivers sync.WaitGroup
	stop    context.CancelFunc
	peer    Peer
	address string // of the other node

	mu sync.Mutex
	// Owner: mu.
	counters Counters
	layout   *Layout
	pending  map[uint64]Place // puts whose end the target does not know yet
	lastPut  uint64
	pace     Pace
	quiet    bool
	holes    uint64            // numbers that have not come though later ones have
	sent     []uint64          // by pair, the last number
	reported []map[uint64]bool // by pair, the numbers reported as not, or perhaps not, delivered; true: surely not
	notes    []string
}

// NewSide allocates and registers the memory and starts the actors. The other side's messages may come from
// now on.
func NewSide(system *actor.ActorSystem, memory Memory, config Config) (*Side, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Side{
		config: config, system: system, pace: Pace{config.MessageRate, config.PutRate},
		layout:  NewLayout(config.Slots, uint64(config.SlotSize-Scratch)),
		pending: map[uint64]Place{}, sent: make([]uint64, config.Pairs), reported: make([]map[uint64]bool, config.Pairs),
	}
	all, err := memory.Alloc(config.Slots * config.SlotSize)
	if err != nil {
		return nil, fmt.Errorf("memory for the load: %w", err)
	}
	var pieces [][]byte
	for i := range config.Slots {
		pieces = append(pieces, all[i*config.SlotSize:(i+1)*config.SlotSize:(i+1)*config.SlotSize])
	}
	s.target, err = NewTarget(pieces, config.Watch, func(b []byte) (*rma.Region, error) {
		return memory.Register(b, rma.RemoteWrite)
	})
	if err != nil {
		return nil, err
	}
	return s, s.spawn()
}

// spawn starts the actors that the other side talks to.
func (s *Side) spawn() error {
	named := map[string]actor.Producer{
		"target":    func() actor.Actor { return &targetActor{side: s} },
		"initiator": func() actor.Actor { return &initiatorActor{side: s} },
	}
	for i := range s.config.Pairs {
		named[fmt.Sprintf("sink-%d", i)] = func() actor.Actor { return newSink(s, i) }
		named[fmt.Sprintf("source-%d", i)] = func() actor.Actor { return actor.ReceiveFunc(func(actor.Context) {}) }
	}
	for name, producer := range named {
		pid, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(producer), s.config.Name+"-"+name)
		if err != nil {
			return fmt.Errorf("actor %s-%s of the load: %w", s.config.Name, name, err)
		}
		s.actors = append(s.actors, pid)
	}
	return nil
}

// own gives the PID of one of this side's actors, other of one of the other's.
func (s *Side) own(name string) *actor.PID {
	return actor.NewPID(s.system.Address(), s.config.Name+"-"+name)
}

func (s *Side) other(name string) *actor.PID {
	return actor.NewPID(s.address, s.config.OtherName+"-"+name)
}

// Start begins to send to the other node, whose address is given.
func (s *Side) Start(peer Peer, address string) error {
	s.peer, s.address = peer, address
	plots, err := s.target.Plots()
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.system.Root.Send(s.own("target"), opened{plots})
	for i := range s.config.Pairs {
		s.drivers.Go(func() { s.send(ctx, i) })
	}
	for i := range s.config.Putters {
		s.drivers.Go(func() { s.put(ctx, i) })
	}
	if s.config.Filler {
		s.drivers.Go(func() { s.fill(ctx) })
	}
	return nil
}

// Stop ends the sending; puts under way come to their ends first. It must be called at most once, after Start.
func (s *Side) Stop() {
	s.mu.Lock()
	s.quiet = true
	s.gaps.Rest() // the sinks are quiet from here on
	s.mu.Unlock()
	s.stop()
	s.drivers.Wait()
}

// Finish looks at all memory a last time. The load must be at rest: both sides stopped, nothing pending.
func (s *Side) Finish() error {
	done := s.system.Root.RequestFuture(s.own("target"), finish{}, 30*time.Second)
	if _, err := done.Result(); err != nil {
		return fmt.Errorf("the last look at the memory did not happen: %w", err)
	}
	return nil
}

// Close stops the actors. The target's ticker has ended when it returns.
func (s *Side) Close() {
	for _, pid := range s.actors {
		s.system.Root.Stop(pid)
	}
	_ = s.system.Root.StopFuture(s.own("target")).Wait()
}

// Report is what a side knows at a moment.
type Report struct {
	Counters Counters `json:"counters"`
	Pending  int      `json:"pending"` // puts whose end is not yet known to both
	Holes    uint64   `json:"holes"`   // messages that have not come though later ones of their pair have
	Worst    Span     `json:"worst"`   // standstill in the time asked for
	Notes    []string `json:"notes"`   // what went wrong, the first few
}

// Report counts; the standstill is the worst one between from and to.
func (s *Side) Report(from, to time.Duration) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Report{
		Counters: s.counters, Pending: len(s.pending), Holes: s.holes, Notes: append([]string(nil), s.notes...),
		Worst: s.gaps.Worst(from, to, s.config.Now()),
	}
}

// Fault counts something that the application should never have seen, and notes it.
func (s *Side) Fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters.EndpointErrors++
	s.noteLocked(format, args...)
}

func (s *Side) noteLocked(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, s.config.Name+": "+fmt.Sprintf(format, args...))
	}
}

// NumberedName is the name that the counted messages have on the wire.
func NumberedName() string { return string((&Numbered{}).ProtoReflect().Descriptor().FullName()) }

// FillerName is the name that the messages for nobody have.
func FillerName() string { return string((&Filler{}).ProtoReflect().Descriptor().FullName()) }
