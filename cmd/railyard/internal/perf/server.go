package perf

import (
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/rma"
)

// Names of the target's actors.
const (
	controlName = "perf"
	echoName    = "perf-echo"
	sinkName    = "perf-sink-%d"
)

// maxPrepared bounds the regions of a server: one for each initiator at a time.
const maxPrepared = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Fill gives the bytes that every operation of a test carries.
func Fill(b []byte) {
	_, _ = rand.NewChaCha8([32]byte{'p', 'e', 'r', 'f'}).Read(b) // it does not fail
}

// quietSystem is an actor system that keeps its log to itself.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// server is the target: actors that serve any number of tests, one after the other or at once.
type server struct {
	node     *actors.Node
	system   *actor.ActorSystem
	messages atomic.Uint64
	bytes    atomic.Uint64
	bad      atomic.Uint64

	mu sync.Mutex
	// spare are buffers of tests that are over; a node's memory is freed only with the node. Owner: mu.
	spare [][]byte
}

// spawn starts the actors.
func (s *server) spawn() error {
	named := map[string]actor.Producer{
		controlName: func() actor.Actor { return &control{server: s, prepared: map[string]*prepared{}} },
		echoName:    func() actor.Actor { return actor.ReceiveFunc(echo) },
	}
	for i := range MaxSenders {
		named[fmt.Sprintf(sinkName, i)] = func() actor.Actor { return actor.ReceiveFunc(s.swallow) }
	}
	for name, producer := range named {
		if _, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(producer), name); err != nil {
			return fmt.Errorf("actor %s of the target: %w", name, err)
		}
	}
	return nil
}

// rest ends the control actor: from here on nobody touches memory that ends with the node.
func (s *server) rest() error {
	control := actor.NewPID(s.system.Address(), controlName)
	if err := s.system.Root.StopFuture(control).Wait(); err != nil {
		return fmt.Errorf("the target's control actor does not end: %w", err)
	}
	return nil
}

func echo(ctx actor.Context) {
	if m, ok := ctx.Message().(*Echo); ok {
		ctx.Send(ctx.Sender(), m)
	}
}

func (s *server) swallow(ctx actor.Context) {
	m, ok := ctx.Message().(*Stream)
	if !ok {
		return
	}
	s.messages.Add(1)
	s.bytes.Add(uint64(len(m.Padding)))
	if m.Checked && sumOf(m.Padding) != m.Sum {
		s.bad.Add(1)
	}
}

// prepared is what one initiator has been given.
type prepared struct {
	buf    []byte
	region *rma.Region
	who    *actor.PID
	test   uint64 // its number, for Landed
	told   once
}

// control is the actor that initiators talk to.
type control struct {
	server   *server
	prepared map[string]*prepared // by the initiator's PID
	tests    uint64               // prepared so far
}

func (c *control) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Prepare:
		ctx.Respond(c.prepare(ctx, m))
	case *Count:
		s := c.server
		ctx.Respond(&Counted{
			CpuSeconds: cpuSeconds(), Messages: s.messages.Load(), Bytes: s.bytes.Load(), Bad: s.bad.Load(),
		})
	case *Inspect:
		ctx.Respond(c.inspect(ctx, m))
	case *Landed:
		for _, p := range c.prepared {
			if p.test == m.Test {
				p.told.saw(m.Number)
			}
		}
	case *actor.Terminated:
		c.forget(m.Who.String())
	}
}

// initiatorOf is the PID of an actor at the node that the message came from.
func initiatorOf(ctx actor.Context, id string) *actor.PID {
	address := ""
	if sender := ctx.Sender(); sender != nil {
		address = sender.Address
	}
	return actor.NewPID(address, id)
}

func (c *control) prepare(ctx actor.Context, m *Prepare) *Ready {
	who := initiatorOf(ctx, m.Initiator)
	c.forget(who.String())
	if len(c.prepared) >= maxPrepared {
		return &Ready{Refused: fmt.Sprintf("%d tests are running here, the limit; wait for one to end", maxPrepared)}
	}
	c.tests++
	p := &prepared{who: who, test: c.tests}
	var key []byte
	if m.Region > 0 {
		var err error
		if key, err = c.register(p, m); err != nil {
			return &Ready{Refused: err.Error()}
		}
	}
	c.prepared[who.String()] = p
	ctx.Watch(who)
	return &Ready{Key: key, Test: p.test}
}

func (c *control) register(p *prepared, m *Prepare) ([]byte, error) {
	if m.Region > MaxSize {
		return nil, fmt.Errorf("a region of %d bytes is more than the %d that a target lends", m.Region, MaxSize)
	}
	var err error
	if p.buf, err = c.server.buffer(int(m.Region)); err != nil {
		return nil, err
	}
	rights := rma.RemoteWrite
	if m.Readable {
		rights = rma.RemoteRead
	}
	if p.region, err = c.server.node.Register(p.buf, rights); err != nil {
		c.server.giveBack(p.buf)
		return nil, fmt.Errorf("the target's memory cannot be registered: %w", err)
	}
	return p.region.Key().MarshalBinary()
}

// buffer gives touched memory, used before if possible. It holds what Fill gives.
func (s *server) buffer(size int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.spare {
		if cap(b) >= size {
			s.spare = append(s.spare[:i], s.spare[i+1:]...)
			Fill(b[:size])
			return b[:size], nil
		}
	}
	b, err := s.node.Alloc(size)
	if err != nil {
		return nil, fmt.Errorf("the target has no %d bytes of memory: %w", size, err)
	}
	Fill(b)
	return b, nil
}

func (s *server) giveBack(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, b)
}

// forget takes back what an initiator was given.
func (c *control) forget(who string) {
	p, ok := c.prepared[who]
	if !ok {
		return
	}
	delete(c.prepared, who)
	if p.region == nil {
		return
	}
	// From here on nothing lands there: the next test may have the memory.
	if err := p.region.Revoke(); err == nil {
		c.server.giveBack(p.buf)
	}
}

func (c *control) inspect(ctx actor.Context, m *Inspect) *Inspected {
	p := c.prepared[initiatorOf(ctx, m.Initiator).String()]
	if p == nil || p.region == nil {
		return &Inspected{Refused: "nothing has been prepared for this initiator"}
	}
	size := uint64(len(p.buf))
	if m.Size == 0 || m.Size > size || m.Count > size/m.Size {
		return &Inspected{Refused: fmt.Sprintf("%d pieces of %d bytes are not in a region of %d", m.Count, m.Size, size)}
	}
	answer := &Inspected{Landed: p.told.landed, Doubled: p.told.doubled}
	for i := range m.Count {
		if sumOf(p.buf[i*m.Size:(i+1)*m.Size]) != m.Sum {
			answer.Bad++
		}
	}
	return answer
}
