package endpoint

import (
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

// maxRails bounds the rails between two nodes.
const maxRails = 64

// Manager is the network side of one node: it listens, keeps one Endpoint a peer and one Route an address.
type Manager struct {
	cfg         Config
	log         *zap.Logger
	tls         *tls.Config // what rails speak; nil: none
	lines       lines
	regions     *rma.Table
	start       time.Time
	address     string
	incarnation wire.NodeID
	cards       *cards
	node        *actor.PID // parent of the endpoint actors
	watcher     *actor.PID // the devices actor

	ctx     context.Context
	cancel  context.CancelFunc
	stop    chan struct{} // closed when Shutdown begins to close
	closing atomic.Bool
	down    chan struct{} // closed when Shutdown has ended, with downErr
	downErr error
	work    sync.WaitGroup
	workMu  sync.Mutex // orders track against the end of Shutdown
	over    bool

	mu sync.Mutex
	// Owner of the rest: mu. It may be taken while an endpoint's lock is held, never the other way round.
	peers      map[string]*Endpoint
	former     map[string]*Endpoint     // ended, and something of them is still in progress
	making     map[string]chan struct{} // by address: endpoints whose actor is not there yet; closed when it is
	sessions   map[[wire.SessionSize]byte]*Endpoint
	routes     routes
	graves     graves
	guests     guests
	turnedAway uint64
	offenders  offenders
	kept       uint64 // calls that were not answered for what their host has done before
}

// errPeerExists says that an endpoint for the peer is there already.
var errPeerExists = errors.New("an endpoint to this peer exists")

// Start listens on all bindings. On an error nothing is left open; it names the field and the value.
func Start(cfg Config) (*Manager, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	secure, err := hardened(cfg.TLS)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, tls: secure, log: cfg.Logger, regions: rma.NewTable(crand.Reader, cfg.MaxRegions), start: time.Now(),
		stop: make(chan struct{}), down: make(chan struct{}), peers: make(map[string]*Endpoint), former: make(map[string]*Endpoint),
		making:   make(map[string]chan struct{}),
		sessions: make(map[[wire.SessionSize]byte]*Endpoint), routes: routes{by: make(map[string]*Route), room: MaxRoutes},
		guests: newGuests(), offenders: newOffenders(),
		graves: graves{room: cfg.MaxPeers, keep: max(2*cfg.HandshakeTimeout, cfg.OutageLimit)},
	}
	m.random(m.incarnation[:])
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.cards = &cards{m: m, refused: make(map[string]bool)}
	err = m.cards.open()
	if err == nil {
		err = m.spawn()
	}
	if err != nil {
		m.cancel()
		m.cards.close()
		return nil, err
	}
	m.address = m.cfg.Advertise
	if m.address == "" {
		m.address = m.cards.current.Load().told[0].GetAddress()
	}
	m.cards.serve()
	m.warnOpen()
	return m, nil
}

// warn tells of what is wrong with local cards. It is said once for each peer, since nobody listens yet when a node starts.
func (m *Manager) warn(peer string) {
	for _, w := range m.cards.current.Load().warnings() {
		w.Peer = peer
		m.cfg.Events.Publish(w)
	}
}

// Address is the address in this node's PIDs.
func (m *Manager) Address() string { return m.address }

// Incarnation names this start of the node.
func (m *Manager) Incarnation() wire.NodeID { return m.incarnation }

// Regions is the node's registered memory.
func (m *Manager) Regions() *rma.Table { return m.regions }

// Listening gives the bindings with the addresses in force.
func (m *Manager) Listening() []rail.Binding {
	return append([]rail.Binding(nil), m.cards.current.Load().bindings...)
}

// now is the monotonic time since the node's start.
func (m *Manager) now() time.Duration { return time.Since(m.start) }

func (m *Manager) beat() time.Duration {
	if m.cfg.Health.Beat > 0 {
		return m.cfg.Health.Beat
	}
	return 50 * time.Millisecond
}

// random fills b. The system's source of randomness does not fail (crypto/rand ends the program if it does).
func (m *Manager) random(b []byte) { _, _ = crand.Read(b) }

// source makes a source for jitter.
func (m *Manager) source() rand.Source {
	var seed [16]byte
	m.random(seed[:])
	return rand.NewPCG(binary.LittleEndian.Uint64(seed[:]), binary.LittleEndian.Uint64(seed[8:]))
}

// track runs f in a goroutine that Shutdown waits for. After Shutdown has ended f runs in the caller's goroutine. A panic of f is a
// bug that costs what f was for: nobody supervises such a goroutine, and the process lives.
func (m *Manager) track(f func()) {
	m.workMu.Lock()
	if m.over {
		m.workMu.Unlock()
		f()
		return
	}
	m.work.Add(1)
	m.workMu.Unlock()
	go func() {
		defer m.work.Done()
		err := safely(func() error {
			f()
			return nil
		})
		if err != nil {
			var bug *rail.PanicError
			_ = errors.As(err, &bug)
			m.log.Error("bug in a goroutine of the node", zap.Error(err), zap.ByteString("stack", bug.Stack))
		}
	}()
}

// peer gives the endpoint to a node; nil: none.
func (m *Manager) peer(address string) *Endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers[address]
}

func (m *Manager) bySession(id []byte) *Endpoint {
	if len(id) != wire.SessionSize {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[[wire.SessionSize]byte(id)]
}

// rekey files the endpoint under another session.
func (m *Manager) rekey(e *Endpoint, id [wire.SessionSize]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, e.id)
	m.sessions[id] = e
}

// create makes the endpoint to a peer and its actor. prepare is called before anybody else sees it. errPeerExists: there is
// one, perhaps just made by somebody else.
func (m *Manager) create(ctx context.Context, address string, opener bool, prepare func(e *Endpoint)) (*Endpoint, error) {
	release, err := m.reserve(address)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := m.awaitFormer(ctx, address); err != nil {
		return nil, err
	}
	e, err := newEndpoint(m, address, opener)
	if err != nil {
		return nil, err
	}
	prepare(e)
	// The actor comes first: an endpoint that others find can be sent to, and ended.
	if _, err := m.cfg.System.Root.RequestFuture(m.node, &spawnEndpoint{e: e}, 5*time.Second).Result(); err != nil {
		cause := rma.ErrEndpointDown
		if m.closing.Load() { // the node's actor has gone
			cause = rma.ErrShutdown
		}
		return nil, fmt.Errorf("endpoint to %s: its actor was not made: %w", address, join(cause, err))
	}
	if m.file(e) {
		return e, nil
	}
	e.end(rma.ErrShutdown)
	return nil, e.Err()
}

// file enters an endpoint in the books; false: the node is closing, or its actor has met its end already.
func (m *Manager) file(e *Endpoint) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing.Load() || e.over() != nil {
		return false
	}
	m.peers[e.address], m.sessions[e.id] = e, e
	return true
}

// reserve sees to it that only one endpoint to a peer is made at a time; release lets the next one look.
func (m *Manager) reserve(address string) (release func(), err error) {
	m.mu.Lock()
	if made := m.making[address]; made != nil {
		m.mu.Unlock()
		<-made
		return nil, errPeerExists
	}
	defer m.mu.Unlock()
	switch {
	case m.closing.Load():
		err = rma.ErrShutdown
	case m.peers[address] != nil:
		err = errPeerExists
	case len(m.peers)+len(m.making) >= m.cfg.MaxPeers:
		err = fmt.Errorf("%d peers are connected, the limit (MaxPeers): %w", m.cfg.MaxPeers, rma.ErrLimit)
	}
	if err != nil {
		return nil, err
	}
	made := make(chan struct{})
	m.making[address] = made
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.making, address)
		close(made)
	}, nil
}

// awaitFormer waits until nothing of the earlier endpoint to a peer is in progress: only then may the next epoch begin (rule 8).
func (m *Manager) awaitFormer(ctx context.Context, address string) error {
	m.mu.Lock()
	former := m.former[address]
	m.mu.Unlock()
	if former == nil {
		return nil
	}
	return former.waitStill(ctx)
}

// rested takes an endpoint of which nothing is in progress any more out of the next one's way. Called with the endpoint's lock
// held.
func (m *Manager) rested(e *Endpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.former[e.address] == e {
		delete(m.former, e.address)
	}
}

// forget takes an endpoint that has ended, or is about to, out of the books. Called with the endpoint's lock held.
func (m *Manager) forget(e *Endpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers[e.address] == e {
		delete(m.peers, e.address)
		m.former[e.address] = e
	}
	if m.sessions[e.id] == e {
		delete(m.sessions, e.id)
		m.graves.bury(m.now(), e.id, e.key)
	}
}

// hasEnded tells whether a session has ended here of late, and gives its key.
func (m *Manager) hasEnded(id []byte) (key []byte, ended bool) {
	if len(id) != wire.SessionSize {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.graves.find([wire.SessionSize]byte(id))
}

func (m *Manager) all() []*Endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*Endpoint, 0, len(m.peers))
	for _, e := range m.peers {
		list = append(list, e)
	}
	return list
}

// Endpoints gives the endpoints that live, in the order of their addresses.
func (m *Manager) Endpoints() []*Endpoint {
	list := m.all()
	slices.SortFunc(list, func(a, b *Endpoint) int { return strings.Compare(a.address, b.address) })
	return list
}

// Shutdown drains what was accepted, says goodbye, ends every endpoint, and leaves no goroutine, socket or region. It ends
// within ctx and half a second for the goodbye: then what was still open has completed with rma.ErrShutdown, and the error
// says so. A peer of which nothing is heard any more is waited for during a quarter of the time that ctx gives, but
// at least as long as it may take to notice a silence (Config.Health.Ceiling), and OutageLimit at most.
//
// Of several calls the first one counts; the others wait for it within their own ctx.
func (m *Manager) Shutdown(ctx context.Context) error {
	if m.closing.CompareAndSwap(false, true) {
		m.downErr = m.shutdown(ctx)
		close(m.down)
		return m.downErr
	}
	select {
	case <-m.down:
		return m.downErr
	case <-ctx.Done():
		return fmt.Errorf("waiting for an earlier Shutdown of node %s, which goes on: %w", m.address, ctx.Err())
	}
}

func (m *Manager) shutdown(ctx context.Context) error {
	m.cards.close()
	m.awaitHandshakes(ctx)
	m.dropHandshakes()
	for _, r := range m.allRoutes() { // what waits for a connection was accepted too
		r.drain(ctx)
	}
	var errs []error
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, e := range m.all() {
		group.Go(func() {
			if err := e.leave(ctx); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	close(m.stop)
	m.cancel()
	for _, r := range m.allRoutes() {
		r.close()
	}
	stopped := m.cfg.System.Root.StopFuture(m.node)
	_ = stopped.Wait() // its time-out is ten seconds; the actors end long before
	_ = m.cfg.System.Root.StopFuture(m.watcher).Wait()
	m.dropHandshakes()
	m.work.Wait()
	m.workMu.Lock()
	m.over = true
	m.workMu.Unlock()
	m.work.Wait()
	return join(append(errs, m.regions.Close())...)
}

// awaitHandshakes waits, for as long as last words may take, until the handshakes that have begun are over: each is refused, so that
// the peer does not wait for us until its OutageLimit, or becomes a rail on which a goodbye is said.
func (m *Manager) awaitHandshakes(ctx context.Context) {
	brief, done := context.WithTimeout(ctx, lastWords)
	defer done()
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for {
		m.mu.Lock()
		open := len(m.guests.all)
		m.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-t.C:
		case <-brief.Done():
			return
		}
	}
}

func (m *Manager) dropHandshakes() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for conn := range m.guests.all {
		conn.Kill()
	}
}
