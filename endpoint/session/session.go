package session

import (
	"errors"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// Session is the protocol state between two node incarnations: one epoch.
//
// Owner: the endpoint; every method is called under its lock.
type Session struct {
	cfg     Config
	regions *rma.Table
	now     time.Duration // the latest `now` that came in
	// identity tells this session from all others.
	identity *Identity

	lanes   []*Lane // by wire.RailID; nil where a rail is unknown
	fx      []Effect
	closed  error // not nil: the session is over, and why
	goodbye bool  // no new work is taken
	bye     bool  // ours has been asked for: it is said on every lane, and on those that come
	// peerLeft: the peer's goodbye has come.
	peerLeft bool

	// Sending core.
	names    names
	buckets  [bucketCount]bucket
	reserved uint64 // absolute: bytes of messages that took room at the peer
	granted  uint64 // absolute: what the peer has granted
	starved  bool   // somebody was told ErrWindowFull since the last room
	nextOp   wire.OpID
	ops      map[wire.OpID]*Op
	open     opList // puts, gets, flushes in the order of their numbers
	waves    waves
	bodies   []*Op // large messages and answers to gets under way
	owed     []*Op // get requests and notifies that wait for a lane
	cancels  []*cancel
	verdicts []item            // verdicts on gets that wait for a lane
	parting  map[wire.OpID]*Op // done here, while the peer may still hear or keep something of them
	forget   []wire.OpID       // operations whose record the peer may drop; sent as counted frames
	// forgetting counts those, and those in Forget frames that are not acknowledged.
	forgetting int
	freeSegs   []*segment

	// Receiving core.
	peerNames  names
	consumed   uint64 // absolute: bytes of the peer's messages that were consumed here
	received   uint64 // absolute: bytes of the peer's messages that arrived (never above what was granted)
	grantSent  uint64
	holds      map[string]*hold
	assemblies map[wire.OpID]*assembly
	assembling uint64 // bytes of buffers in assemblies
	tombs      map[wire.OpID]*tombstone
	tracked    map[wire.OpID]*tracked
	serving    map[wire.OpID]*Op

	workAt time.Duration // when there was work last, of either side
	due    bool          // a deadline may have come nearer
	// heardOf: some rail is heard; silentAt is when the last one fell silent.
	heardOf  bool
	silentAt time.Duration
	stats    Stats
}

// Stats counts what a session did, for metrics and tests.
type Stats struct {
	MessagesSent, MessagesReceived     uint64
	PutsCompleted, Canceled, Refused   uint64
	Retired, ReroutedFrames            uint64
	ReroutedBytes, BytesIn, BytesOut   uint64
	ChunksDiscarded, LateFramesDropped uint64
	// PutTimes and GetTimes are of those that ended well, from their start; MessageTimes of one message at a time on each rail,
	// from when it was queued until the peer had it.
	PutTimes, GetTimes, MessageTimes Times
}

// Errors that only a session reports; those of operations are rma's.
var (
	// ErrFenced ends a generation's connection: nothing more of it is applied.
	ErrFenced = errors.New("session: this generation of the rail has been retired")
	// ErrProtocol is wrapped by every error about what the peer sent.
	ErrProtocol = errors.New("session: the peer broke the protocol")
)

// EffectKind says what an Effect asks for.
type EffectKind uint8

// The effects that the owner carries out, in order, after it has released its lock.
const (
	// Completed: Op has ended with Err (nil: success); exactly one for each operation.
	Completed EffectKind = iota + 1
	// Offered: tell Gen's transport that it may work on Op (rail.Put and its kin, by Op.Kind).
	Offered
	// Withdrawn: tell Gen's transport that Op was taken back (rail.Cancel).
	Withdrawn
	// Wake: Gen's writer has work and the write token; Inline where it may be written by the caller.
	Wake
	// Killed: Gen has been fenced by the session; end its connection. Err says why.
	Killed
	// Quiet: Gen is fenced and no bracket of it is open any more; its final count is fixed.
	Quiet
	// Settled: both final counts of Gen are known; its unapplied work has moved on.
	Settled
	// LaneUp: the lane takes work from now on over Gen.
	LaneUp
	// Room: senders that were told ErrWindowFull may try again.
	Room
	// PeerLeft: the peer said goodbye; once. Err is nil or says why.
	PeerLeft
	// MapWanted: register Region for Gen's card (Region.Map), and answer with Gen.Mapped.
	MapWanted
	// Unmap: Release Mapping.
	Unmap
	// Undelivered: Message of ours is not known to have arrived, and will not be sent again; Err says why.
	Undelivered
)

// Effect is one thing for the owner to do.
type Effect struct {
	Kind    EffectKind
	Gen     *Generation
	Op      *Op
	Message *Message
	Region  *rma.Region
	Mapping *rma.Mapping
	Inline  bool
	Err     error
}

// New makes the session of one epoch. Regions is the node's table: what the peer may write and read.
func New(cfg Config, regions *rma.Table) (*Session, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	return &Session{
		cfg: cfg, regions: regions, names: newNames(), peerNames: newNames(), identity: new(Identity),
		granted: cfg.PeerWindow, grantSent: cfg.Window,
		ops: make(map[wire.OpID]*Op), parting: make(map[wire.OpID]*Op), holds: make(map[string]*hold),
		assemblies: make(map[wire.OpID]*assembly), tombs: make(map[wire.OpID]*tombstone),
		tracked: make(map[wire.OpID]*tracked), serving: make(map[wire.OpID]*Op),
	}, nil
}

// Config gives the configuration in force.
func (s *Session) Config() Config { return s.cfg }

// SetPeerLimits takes over what the peer said in the handshake, before the first lane is up.
func (s *Session) SetPeerLimits(window, maxMessage uint64) {
	if window > s.granted || s.reserved == 0 {
		s.granted = window
	}
	s.cfg.PeerWindow, s.cfg.PeerMaxMessage = window, maxMessage
}

// Stats gives the counters so far.
func (s *Session) Stats() Stats { return s.stats }

// Sent is how many messages have been put on their way: one that is being sent counts as soon as it is in the books, so that Close
// gives it back.
func (s *Session) Sent() uint64 { return s.stats.MessagesSent }

// Effects hands over what is to be done; the slice given becomes the next list's memory.
func (s *Session) Effects(reuse []Effect) []Effect {
	fx := s.fx
	clear(reuse[:cap(reuse)])
	s.fx = reuse[:0]
	return fx
}

// HasEffects is a cheap look whether Effects would give anything.
func (s *Session) HasEffects() bool { return len(s.fx) > 0 }

func (s *Session) effect(e Effect) { s.fx = append(s.fx, e) }

// Lane gives the record of a rail, made at the first call.
func (s *Session) Lane(id wire.RailID) *Lane {
	for int(id) >= len(s.lanes) {
		s.lanes = append(s.lanes, nil)
	}
	if s.lanes[id] == nil {
		s.lanes[id] = &Lane{s: s, ID: id}
	}
	return s.lanes[id]
}

// Intern gives the name's record, for messages of ours.
func (s *Session) Intern(name string) *Name { return s.names.get(name) }

// Operations is the number of operations of ours that have not completed, large messages among them.
func (s *Session) Operations() int { return len(s.ops) }

// Open tells whether anything of ours is under way: operations, messages, or unsettled generations.
func (s *Session) Open() bool {
	if len(s.ops) > 0 || len(s.parting) > 0 || len(s.forget) > 0 {
		return true
	}
	for i := range s.buckets {
		if len(s.buckets[i].pending) > 0 {
			return true
		}
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if g.outstanding() {
				return true
			}
		}
	}
	return false
}

// OpenOps is how many operations are open.
func (s *Session) OpenOps() int { return len(s.ops) }

// Identity stands for a session in memories that outlive it: it keeps nothing of the session alive.
type Identity struct{ _ byte }

// Identity gives the session's.
func (s *Session) Identity() *Identity { return s.identity }

// Closed is why the session is over; nil while it lives.
func (s *Session) Closed() error { return s.closed }

// Close ends the session: every open operation completes with err, every generation is fenced.
func (s *Session) Close(now time.Duration, err error) {
	if s.closed != nil {
		return
	}
	s.now, s.closed = now, err
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range append([]*Generation(nil), l.gens...) {
			s.fence(g, err)
		}
	}
	for e := s.open.first; e != nil; {
		next := e.after
		s.reopen(e)
		s.finish(e, err)
		e = next
	}
	s.abandonMessages(err)
	for _, o := range append([]*Op(nil), s.bodies...) {
		s.finish(o, err)
	}
	s.cancels, s.forget, s.owed = nil, nil, nil
	s.effect(Effect{Kind: Room})
}

// Tick does what is due at now: late acknowledgements, suspects that were outlived, state that is said again.
func (s *Session) Tick(now time.Duration) {
	s.now = now
	for _, l := range s.lanes {
		if l == nil || l.current == nil || l.current.fenced {
			continue
		}
		if g := l.current; g.ackAt != 0 && g.ackAt <= now {
			g.ackAt, g.ackNow = 0, true
			s.wake(g)
		}
		s.sentence(l.current)
	}
	s.resend(now)
}

// SetOpener says which end opened the session, before the first lane is up: of two first sessions at once one yields.
func (s *Session) SetOpener(opener bool) { s.cfg.Opener = opener }

// DeadlineMoved tells, once, that Deadline may be earlier than it was.
func (s *Session) DeadlineMoved() bool {
	moved := s.due
	s.due = false
	return moved
}

// Deadline is when Tick wants to be called next; 0: no need.
func (s *Session) Deadline() time.Duration {
	var d time.Duration
	earliest := func(t time.Duration) {
		if t != 0 && (d == 0 || t < d) {
			d = t
		}
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		if l.current != nil && !l.current.fenced {
			earliest(l.current.ackAt)
			earliest(l.current.outlivedAt)
		}
		for _, g := range l.gens {
			earliest(g.retireAt)
		}
	}
	for _, c := range s.cancels {
		earliest(c.at)
	}
	return d
}
