package endpoint

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
	"railyard/wire"
)

// Endpoint stands for one peer node during one epoch. It outlives every rail. All methods may be called from any
// goroutine, also from inside an actor.
type Endpoint struct {
	m       *Manager
	address string // the peer node's, as in its PIDs
	log     *zap.Logger
	policy  supervision.Policy
	pid     *actor.PID
	root    *actor.RootContext

	// consumed collects window bytes to give back at the next occasion.
	consumed atomic.Uint64
	// starting counts operations on their way to the actor; it ends only when there are none.
	starting atomic.Int64
	// asked are the open operations that actors asked for, by their own numbers.
	// Owner: the endpoint actor's turn; they outlive its restart.
	asked map[asker]*operation

	// Inlets are the host's records of the targets of this peer's messages, by their names. The endpoint does not look at
	// them.
	Inlets sync.Map

	mu sync.Mutex
	// Owner of the rest: mu.
	s           *session.Session
	shares      shares
	spare       []session.Effect
	opener      bool
	id          [wire.SessionSize]byte
	key         []byte // proves that a rail belongs to the session
	token       []byte
	secured     bool // the session was agreed on inside TLS: no plain rail may join it
	agreed      bool // the peer has answered the first hello, or we have accepted one
	agreedAt    time.Duration
	incarnation wire.NodeID
	peerName    string
	devices     []*wire.Device // the peer's; the opener's have no use here
	serial      uint64         // of devices, or of the rails that the opener has told
	news        *wire.Devices  // the newest that the peer has told and nobody has looked at; nil: none
	toldSerial  uint64         // of ours: what the peer has been told
	rails       []*railRecord  // by wire.RailID; nil where unknown
	everUp      bool
	waiting     time.Duration // since when an outage counts at the earliest: the endpoint's beginning, or when we were stopped
	timer       *time.Timer
	armed       time.Duration // when timer fires; 0: not armed
	// parting is why the endpoint is about to end: no new work; goodbye is being said. ended: it has ended.
	parting, ended error
	// leaving: the node shuts down, and takes no new operation. handed counts those taken before that the session does not have yet.
	leaving     bool
	handed      int
	lastWork    time.Duration // when the application last asked for something
	lastFailure error
	pending     map[pendingKey]*link    // joined, and not yet attached
	carriers    map[pendingKey]*carrier // attached, and not yet quiet
	open        openList
	// bug: the session had one, and s is another that is closed. winding: what is left of it is being ended; kept is what it had counted.
	bug     error
	winding bool
	kept    keepsake
	// sending is what the session's count of messages will be once the one that is just being sent is there; 0: none is.
	// taken: it was there when a bug came between.
	sending uint64
	taken   bool

	up   chan struct{} // closed when the first rail is up
	down chan struct{} // closed when it has ended
	room chan struct{} // closed and replaced whenever there may be room in the window
	calm chan struct{} // closed and replaced whenever a generation has become quiet
}

// railRecord is what the endpoint knows of one rail.
//
// Owner: Endpoint.mu.
type railRecord struct {
	id            wire.RailID
	local, remote string
	device        string // the peer's, as it tells it; empty: not known (yet)
	given         bool   // remote is what the application gave, not what the peer tells
	spare         bool   // others take its place once they are up
	unlisted      bool   // the opener does not count it among its rails
	kind          rail.Kind
	pid           *actor.PID
	status        rail.Status
	since         time.Duration
	rampTill      time.Duration
	everUp        bool
	stopped       bool // given up by the policy
}

// carrier is what a generation's User field holds: how to reach its transport.
type carrier struct {
	e          *Endpoint
	rail       wire.RailID
	generation wire.Generation
	transport  *actor.PID
	conn       rail.Conn
	link       *link
	// lost: the connection is over. Owner: Endpoint.mu.
	lost bool
}

func newEndpoint(m *Manager, address string, opener bool) (*Endpoint, error) {
	cfg := m.cfg.Session
	cfg.Opener = opener
	s, err := session.New(cfg, m.regions)
	if err != nil {
		return nil, err
	}
	policy := m.cfg.Policy
	if policy == nil {
		if policy, err = supervision.Default(supervision.DefaultConfig{}, m.source()); err != nil {
			return nil, err
		}
	}
	e := &Endpoint{
		m: m, address: address, opener: opener, s: s, policy: policy, root: m.cfg.System.Root,
		log: m.cfg.Logger.With(zap.String("peer", address)), waiting: m.now(), lastWork: -idleAfter,
		pending: make(map[pendingKey]*link), carriers: make(map[pendingKey]*carrier), asked: make(map[asker]*operation),
		up: make(chan struct{}), down: make(chan struct{}), room: make(chan struct{}), calm: make(chan struct{}),
	}
	if opener {
		m.random(e.id[:])
		if len(m.cfg.Secret) == 0 {
			e.token = make([]byte, 32)
			m.random(e.token)
		}
		e.key = session.Key(m.cfg.Secret, e.token, e.id[:])
	}
	return e, nil
}

// Address is the peer node's address, as in its PIDs.
func (e *Endpoint) Address() string { return e.address }

// Name is what the peer node calls itself: its address until it has told, or where it has no other name.
func (e *Endpoint) Name() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peerName == "" {
		return e.address
	}
	return e.peerName
}

// PID takes the messages of package rma: Put, Get, Cancel, Flush.
func (e *Endpoint) PID() *actor.PID { return e.pid }

// Err is why the endpoint has ended, or is about to and takes nothing new; nil while it lives.
func (e *Endpoint) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over()
}

// over is why nothing new is taken; nil while there is no reason. Called with the lock held.
func (e *Endpoint) over() error {
	if e.ended != nil {
		return e.ended
	}
	return e.parting
}

func (e *Endpoint) hasEnded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended != nil
}

// Done is closed when the endpoint has ended.
func (e *Endpoint) Done() <-chan struct{} { return e.down }

// Stats gives the session's counters. They do not change once the session had a bug.
func (e *Endpoint) Stats() session.Stats {
	e.mu.Lock()
	defer e.unlock()
	if e.bug != nil {
		return e.kept.stats
	}
	return e.s.Stats()
}

// idleAfter is how long nothing must have been asked for until new work makes the rails beat at once.
const idleAfter = time.Second

// working notes that the application asks for something. It gives the rails that have been idle: to be probed once the
// lock is released, so that one that fell silent meanwhile is noticed now. Called with the lock held.
func (e *Endpoint) working(now time.Duration) []*actor.PID {
	idle := now-e.lastWork > idleAfter
	e.lastWork = now
	if !idle {
		return nil
	}
	var pids []*actor.PID
	for _, r := range e.rails {
		if r != nil && r.pid != nil {
			pids = append(pids, r.pid)
		}
	}
	return pids
}

func (e *Endpoint) probe(rails []*actor.PID) {
	for _, pid := range rails {
		e.root.Send(pid, &rail.Probe{})
	}
}

// arm sets the timer to the session's next deadline. Called with the lock held.
func (e *Endpoint) arm() {
	at := e.s.Deadline()
	if at == 0 || (e.armed != 0 && e.armed <= at) || e.ended != nil {
		return
	}
	e.armed = at
	d := max(at-e.m.now(), 0)
	if e.timer == nil {
		e.timer = time.AfterFunc(d, e.tick)
	} else {
		e.timer.Reset(d)
	}
}

func (e *Endpoint) tick() {
	e.mu.Lock()
	defer e.release()
	e.armed = 0
	e.s.Tick(e.m.now())
	e.arm()
}

// Consumed gives n bytes of the peer's window back: messages of that cost have left the mailbox.
func (e *Endpoint) Consumed(n uint64) {
	if e.consumed.Add(n) >= e.m.cfg.Session.Window/16 {
		e.mu.Lock()
		e.release()
	}
}

// end is the one way in which an endpoint ends. Where it had a bug, it ends when that is wound up, and for that reason.
func (e *Endpoint) end(cause error) {
	if held, ok := e.close(cause); ok {
		e.conclude(held, cause)
	}
}

// close closes the session; false: the endpoint has ended, or had a bug.
func (e *Endpoint) close(cause error) (held map[string]int, ok bool) {
	e.mu.Lock()
	defer e.release()
	if e.ended != nil || e.winding {
		return nil, false
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	e.m.forget(e)
	held = e.s.Held()
	e.s.Close(e.m.now(), fmt.Errorf("peer %s: %w", e.address, cause))
	e.ended = cause
	return held, true
}

// conclude tells of the end.
func (e *Endpoint) conclude(held map[string]int, cause error) {
	close(e.down)
	e.wakeAll(&e.room)
	e.wakeAll(&e.calm)
	e.rest()
	e.log.Info("endpoint down", zap.Error(cause))
	e.tellHeld(held, cause)
	e.m.cfg.Events.Publish(rail.Event{Kind: rail.EndpointDown, Peer: e.address, Cause: cause})
	e.attempt("the host is told that an endpoint is down", func() { e.m.cfg.Host.EndpointDown(e, cause) })
	e.root.Send(e.pid, &finish{})
}

// tellHeld tells of messages that nobody else knows to be lost.
func (e *Endpoint) tellHeld(held map[string]int, cause error) {
	for target, n := range held {
		e.log.Warn("messages had come, and are dropped: the large one before them never became whole",
			zap.String("target", target), zap.Int("messages", n))
		e.m.cfg.Events.Publish(rail.Event{Kind: rail.MessageRefused, Peer: e.address, Cause: fmt.Errorf(
			"%d messages to %s were held behind a large one when the session ended: %w", n, target, cause)})
	}
}

// rest takes an endpoint that has ended out of the way of the next one to the same peer, once nothing of it is in progress.
func (e *Endpoint) rest() {
	e.mu.Lock()
	defer e.unlock()
	if e.ended != nil && e.still() {
		e.m.rested(e)
	}
}

// still tells whether nothing of an ended endpoint is in progress: no socket call, and no delivery. Called with the lock held.
func (e *Endpoint) still() bool { return !e.winding && e.s.Still() }

// waitStill waits until nothing of an ended endpoint is in progress.
func (e *Endpoint) waitStill(ctx context.Context) error {
	for {
		var calm <-chan struct{}
		still := false
		e.look(func() { calm, still = e.calm, e.still() })
		if still {
			return nil
		}
		select {
		case <-calm:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the earlier endpoint to %s to come to rest: %w", e.address, ctx.Err())
		}
	}
}

// submit sends the actor what must not be lost: the actor ends only when none of it is on its way. False: the
// endpoint has ended, and nothing was sent.
func (e *Endpoint) submit(message any) bool {
	e.mu.Lock()
	if e.over() != nil {
		e.mu.Unlock()
		return false
	}
	e.starting.Add(1)
	e.mu.Unlock()
	e.root.Send(e.pid, message)
	return true
}

// hand gives an operation to the actor. What it takes, a shutdown that begins now waits for.
func (e *Endpoint) hand(o *operation) error {
	e.mu.Lock()
	err := e.over()
	if err == nil && e.leaving {
		err = rma.ErrShutdown
	}
	if err != nil {
		e.mu.Unlock()
		return err
	}
	e.starting.Add(1)
	e.handed++
	e.mu.Unlock()
	e.root.Send(e.pid, o)
	return nil
}

// wakeAll closes the channel that some wait on, and makes the next one.
func (e *Endpoint) wakeAll(ch *chan struct{}) {
	e.mu.Lock()
	close(*ch)
	*ch = make(chan struct{})
	e.mu.Unlock()
}

// waitUp waits until a rail is up.
func (e *Endpoint) waitUp(ctx context.Context) error {
	select {
	case <-e.up:
		return nil
	default:
	}
	select {
	case <-e.up:
		return nil
	case <-e.down:
		return e.Err()
	case <-ctx.Done():
		e.mu.Lock()
		last := e.lastFailure
		e.mu.Unlock()
		return fmt.Errorf("connecting to %s: %w", e.address, join(rma.ErrNoRoute, ctx.Err(), last))
	}
}

// outage tells whether the peer has not been heard of on any rail for OutageLimit, or when to look again. due is when this look was
// to be; 0: it was not planned. A look that comes late shows that this node itself was stopped: it begins to wait anew (rule 6).
func (e *Endpoint) outage(now, due time.Duration) (over bool, next time.Duration) {
	e.mu.Lock()
	defer e.unlock()
	if e.ended != nil || !e.s.Silent() {
		return false, 0
	}
	if due > 0 && now-due > lateLook {
		e.waiting = now
	}
	left := max(e.waiting, e.s.SilentSince()) + e.m.cfg.OutageLimit - now
	return left <= 0, left
}

// lateLook is by how much a timer is late when it is not the scheduler's doing.
const lateLook = time.Second
