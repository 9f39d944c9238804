package actors

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
	"go.uber.org/zap"

	"railyard/admin"
	"railyard/endpoint"
	"railyard/rail"
	"railyard/rma"
)

// ErrSystemInUse: an actor system carries one node in its life, since its PIDs have one address.
var ErrSystemInUse = errors.New("this actor system has a node already, or had one: " +
	"make a new system for another node")

// ErrNoTarget: a PID that names nobody.
var ErrNoTarget = errors.New("the target PID is nil or has no id: give the PID of an actor")

// ErrProtoactor: flow control looks into protoactor's actors, and does not find there what it knows.
var ErrProtoactor = errors.New("this version of protoactor-go has been changed inside: use the one in this module's go.mod")

// protoactorLocal is the address of PIDs made before the system had one.
const protoactorLocal = "nonhost"

// Node is an actor system on the network. Its actors send to PIDs of other nodes as to their own.
// All methods may be called from any goroutine.
//
// Owner: whoever called Start, who ends it with Shutdown.
type Node struct {
	system *actor.ActorSystem
	cfg    Config
	log    *zap.Logger
	events *rail.Events
	codec  *codec
	memory arena
	guard  *guard

	// address and local are fixed before started is closed; manager is nil until then.
	address string
	local   map[string]struct{} // every address that means this node
	network atomic.Pointer[endpoint.Manager]
	started chan struct{}

	peers   sync.Map      // *peer by address
	swept   atomic.Uint64 // of endpoint.Manager.RoutesDropped: up to where they are not in peers any more
	targets *cache[string, *actor.PID]
	senders *cache[string, *actor.PID]
	page    *admin.Server // nil: none
	books   books
	inflows sync.Map      // *inflow by *endpoint.Endpoint
	looking atomic.Bool   // a goroutine looks at them
	ended   chan struct{} // closed when the network side has ended
	streams streams
	watches watches
	watched watched
	futures futures
	// activator spawns for peers; spawning counts their requests that wait for it.
	activator *actor.PID
	spawning  atomic.Int64
	ctx       context.Context // ends when Shutdown begins
	cancel    context.CancelFunc
	work      sync.WaitGroup
	workMu    sync.Mutex // orders track against the end of Shutdown
	stopping  bool
	once      sync.Once
	err       error
}

var _ endpoint.Host = (*Node)(nil)

var extensionID = extensions.NextExtensionID()

// ExtensionID makes a Node an extension of its actor system, by which a second one is refused.
func (n *Node) ExtensionID() extensions.ExtensionID { return extensionID }

// starting lets one Start at a time look whether a system is free.
var starting sync.Mutex

// Start puts the actor system on the network: it listens on every rail, gives the system its
// address, and lets PIDs of other nodes resolve. Start it before actors send; from then on
// system.Root, Spawn, Send, Request and Watch are protoactor's own.
//
// Errors wrap ErrConfig and name the field and its value, or are ErrSystemInUse; nothing is left
// open then.
func Start(system *actor.ActorSystem, cfg Config) (*Node, error) {
	if system == nil {
		return nil, refused("system", nil, "give the actor system that is to be reached: actor.NewActorSystem()")
	}
	if errInside != nil {
		return nil, errInside
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	starting.Lock()
	defer starting.Unlock()
	if system.Extensions.Get(extensionID) != nil {
		return nil, ErrSystemInUse
	}
	n := newNode(system, cfg)
	if err := n.open(); err != nil {
		n.cancel()
		return nil, err
	}
	if err := n.show(); err != nil {
		return nil, errors.Join(err, n.abandon())
	}
	system.Extensions.Register(n)
	n.log.Info("node started", zap.String("address", n.address), zap.String("name", cfg.Name))
	return n, nil
}

func newNode(system *actor.ActorSystem, cfg Config) *Node {
	n := &Node{
		system: system, cfg: cfg, log: cfg.Logger, events: rail.NewEvents(), codec: newCodec(&cfg),
		started: make(chan struct{}), ended: make(chan struct{}), local: make(map[string]struct{}),
		targets: newCache[string, *actor.PID](maxLocalTargets), senders: newCache[string, *actor.PID](maxSenders),
	}
	n.streams = streams{node: n, listeners: make(map[string]*listener), byID: make(map[uint64]*stream), accepted: make(map[uint64]bool)}
	n.watches = watches{node: n, byName: make(map[watchName][]*watch), sweepAt: minSweep}
	n.watched = watched{node: n, by: make(map[string]map[watchedPair]*endpoint.Endpoint)}
	n.futures = futures{node: n, waiting: make(map[string]waiting), sweepAt: minSweep}
	n.guard = newGuard(&n.cfg)
	n.books = books{began: time.Now(), live: make(map[*endpoint.Endpoint]struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// open starts the network side. Peers may call before it returns: the system has its address by
// then, if anybody could know it.
func (n *Node) open() error {
	registry := n.system.ProcessRegistry
	before := registry.Address
	if address, known := n.cfg.knownAddress(); known {
		registry.Address = address
	}
	kinds, err := n.cfg.transports()
	if err != nil {
		return err
	}
	if n.activator, err = n.startActivator(); err != nil {
		return err
	}
	m, err := endpoint.Start(endpoint.Config{
		System: n.system, Host: n, Kinds: kinds, Bindings: n.cfg.Rails, Name: n.cfg.Name, Advertise: n.cfg.Advertise,
		Secret: n.cfg.Secret, TLS: n.cfg.TLS, RequireTLS: n.cfg.RequireTLS,
		Policy: n.cfg.Policy, OutageLimit: n.cfg.OutageLimit, CancelWait: n.cfg.CancelWait,
		Health: n.cfg.Health, Session: n.cfg.session(), MaxPeers: n.cfg.MaxPeers, MaxRegions: n.cfg.MaxRegions,
		Logger: n.log, Events: n.events, RailProps: n.cfg.RailProps, TransportProps: n.cfg.TransportProps, Shares: true,
	})
	if err != nil {
		err = errors.Join(fmt.Errorf("%w: %w", ErrConfig, err), n.stopActivator(n.ctx))
		registry.Address = before // last: PIDs with that address find nobody after it
		return err
	}
	n.address = m.Address()
	for _, name := range []string{"", protoactorLocal, n.address} {
		n.local[name] = struct{}{}
	}
	for _, b := range m.Listening() {
		n.local[b.Address] = struct{}{}
		if b.Advertise != "" {
			n.local[b.Advertise] = struct{}{}
		}
	}
	if registry.Address != n.address {
		registry.Address = n.address
	}
	registry.RegisterAddressResolver(n.resolve)
	n.network.Store(m)
	close(n.started)
	return nil
}

// knownAddress gives the address that the node will have, if it is known before it listens.
func (c *Config) knownAddress() (string, bool) {
	if c.Advertise != "" {
		return c.Advertise, true
	}
	if len(c.Rails) == 0 {
		return "", false
	}
	first := c.Rails[0]
	if first.Advertise != "" {
		return first.Advertise, true
	}
	ap, err := netip.ParseAddrPort(first.Address)
	return first.Address, err == nil && ap.Port() != 0 // not that of a card by its name
}

// manager gives the network side, for which it waits while Start is still at it.
func (n *Node) manager() *endpoint.Manager {
	if m := n.network.Load(); m != nil {
		return m
	}
	n.awaitStart()
	return n.network.Load()
}

// awaitStart lets what peers send wait until Start knows who this node is.
func (n *Node) awaitStart() {
	if n.network.Load() == nil {
		<-n.started
	}
}

// resolve is protoactor's way from a PID of another address to a Process.
func (n *Node) resolve(pid *actor.PID) (actor.Process, bool) {
	if n.isLocal(pid.Address) {
		return n.system.ProcessRegistry.GetLocal(pid.Id)
	}
	return n.peer(pid.Address).process(pid.Id), true
}

// isLocal tells whether a PID's address means this node.
func (n *Node) isLocal(address string) bool {
	_, ok := n.local[address]
	return ok
}

// outwardAddress is the address by which peers know a PID's node.
func (n *Node) outwardAddress(address string) string {
	if n.isLocal(address) {
		return n.address
	}
	return address
}

// outward is the PID as peers know it.
func (n *Node) outward(pid *actor.PID) *actor.PID {
	if pid == nil || !n.isLocal(pid.Address) || pid.Address == n.address {
		return pid
	}
	return &actor.PID{Address: n.address, Id: pid.Id, RequestId: pid.RequestId}
}

// Address is the address in this node's PIDs.
func (n *Node) Address() string { return n.address }

// Events tells what happens to rails and endpoints.
func (n *Node) Events() *rail.Events { return n.events }

// Connect gives the endpoint of the node at address, any one of its addresses, once a rail to it is
// up. The first send to a PID of that node does the same by itself.
//
// Errors: rma.ErrNoRoute, rma.ErrShutdown, rma.ErrPeerRestarted, ctx's.
func (n *Node) Connect(ctx context.Context, address string) (*endpoint.Endpoint, error) {
	if n.isLocal(address) {
		return nil, fmt.Errorf("connecting to %q, which is this node itself: %w", address, rma.ErrNoRoute)
	}
	if n.ctx.Err() != nil {
		return nil, fmt.Errorf("connecting to %q: %w", address, rma.ErrShutdown)
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(n.ctx, done)()
	return n.manager().Connect(ctx, address)
}

// Send sends to any PID, and waits for room in the peer's window until ctx ends. Nil: the message
// will arrive exactly once, or come back as a dead letter. With an error it is not sent, and there
// is no dead letter: rma.ErrWindowFull, rma.ErrTooLarge, rma.ErrShutdown, ErrNotProtobuf,
// ErrNoTarget. A message in an actor.MessageEnvelope takes its headers and sender along.
func (n *Node) Send(ctx context.Context, pid *actor.PID, message any) error {
	if pid == nil || pid.Id == "" {
		return ErrNoTarget
	}
	if n.isLocal(pid.Address) {
		n.system.Root.Send(pid, message)
		return nil
	}
	return n.peer(pid.Address).process(pid.Id).sendWithin(ctx, letterOf(message))
}

// Register makes buf a region, which peers write and read with its key until it is revoked. buf
// must stay where it is and be used for nothing else until Region.Revoke or Shutdown has returned.
//
// Errors: rma.ErrEmptyRegion, rma.ErrNoRights, rma.ErrTooManyRegions, rma.ErrEntropy,
// rma.ErrShutdown.
func (n *Node) Register(buf []byte, rights rma.Rights) (*rma.Region, error) {
	return n.manager().Regions().Register(buf, rights)
}

// Alloc gives size bytes of zeros, page-aligned and outside the Go heap, where the garbage
// collector does not look. They are unmapped by Shutdown: nobody may touch them after it. The error
// wraps ErrAlloc.
func (n *Node) Alloc(size int) ([]byte, error) { return n.memory.alloc(size) }

// Shutdown ends the node: what was sent is drained, peers hear goodbye, open operations and watches
// learn of the end, regions are revoked, and no goroutine, socket or mapping is left. The actor
// system itself goes on, without a network. An error says that ctx ended before all was drained;
// memory from Alloc is then left mapped.
//
// Each call gives what the first one gave, after it has ended.
func (n *Node) Shutdown(ctx context.Context) error {
	n.once.Do(func() { n.err = n.shutdown(ctx) })
	return n.err
}

func (n *Node) shutdown(ctx context.Context) error {
	n.cancel()
	n.streams.shutdown()
	err := errors.Join(n.manager().Shutdown(ctx), n.stopActivator(ctx))
	n.workMu.Lock()
	n.stopping = true
	n.workMu.Unlock()
	close(n.ended)
	n.work.Wait()
	if n.page != nil {
		err = errors.Join(err, n.page.Close())
	}
	n.events.Close()
	n.log.Info("node stopped", zap.String("address", n.address), zap.Error(err))
	return errors.Join(err, n.memory.close(err == nil))
}

// track runs f in a goroutine that Shutdown waits for; false: the node has ended.
func (n *Node) track(f func()) bool {
	n.workMu.Lock()
	defer n.workMu.Unlock()
	if n.stopping {
		return false
	}
	n.work.Go(f)
	return true
}
