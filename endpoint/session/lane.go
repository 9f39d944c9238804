package session

import (
	"time"

	"railyard/rma"
	"railyard/wire"
)

// Lane is the session's record of a rail: its generations and what was learned of its path.
type Lane struct {
	s  *Session
	ID wire.RailID
	// Rate is the measured rate in bytes a second; 0 until measured. It outlives a generation.
	Rate float64
	// RoundTrip and Jitter are smoothed from pings; MinRoundTrip is the least seen.
	RoundTrip, Jitter, MinRoundTrip time.Duration
	// BytesOut and BytesIn are what sockets and cards took and brought, over all generations.
	BytesOut, BytesIn uint64

	current *Generation   // the newest that was opened; nil: none yet
	gens    []*Generation // opened and not yet settled, oldest first
	highest wire.Generation
	// dead is the newest generation that the peer retired before it was attached here: it must not be attached any more.
	dead wire.Generation
}

// Generation is one connected life of a lane: counts, frames under way, and both halves' brackets.
//
// Invariant: acked <= ackable, whole <= ackable <= sent; the items list holds exactly the frames acked+1 … sent.
type Generation struct {
	lane *Lane
	s    *Session
	ID   wire.Generation
	// User is the owner's record of the transport that carries this generation.
	User any

	up      bool // takes work: older generations are settled
	suspect bool
	fenced  bool
	quiet   bool
	leaving bool  // our goodbye went out on it
	card    *card // one-sided; nil: a stream

	// Write half. Owner: the holder of the write token, inside Fill … Wrote.
	token    bool // somebody writes, or has been told to
	writing  bool // between Fill and Wrote
	plan     []planned
	owners   []owner // of each buffer in the plan
	rest     []slice // what is left of a begun frame, and control frames behind it
	restOf   uint32  // counted frames that are whole once the first restLen bytes of rest are written
	restLen  int
	scratch  []byte // memory of headers, control frames and small payloads in this plan
	segs     fifo[*segment]
	counted  fifo[item] // small counted frames: get requests, notifies, forgets, verdicts on gets
	offers   fifo[*Op]  // bulk
	small    fifo[*Op]  // operations of at most smallOp bytes: ahead of bulk
	sent     uint64     // frames whose first byte was written
	whole    uint64     // frames written to their last byte
	acked    uint64
	ackSoon  uint64 // an acknowledged count that overtook the end of our write call
	items    fifo[item]
	bulk     int    // bulk bytes planned or in flight
	inFlight uint64 // bytes of counted frames planned, or sent and not acknowledged
	lost     uint64 // inFlight when it was fenced
	rerouted uint64 // inFlight when it was settled, all of which went elsewhere
	promised uint64 // bytes that another lane leaves to this one, while it fills a plan
	chunks   int    // chunks of puts planned, or sent and not acknowledged
	ackedBy  uint64 // total bytes acknowledged, for the rate
	defined  []uint64
	queued   uint64 // messages put on this generation, for buckets
	qAcked   uint64 // and how many of them are acknowledged
	timed    uint64 // of them, the one whose way is being measured; 0: none
	timedAt  time.Duration

	// Control state to be said; encoded at the next Fill.
	beatAsk, beatAnswer bool
	creditSent          uint64
	todo                []control

	// Read half. Owner: the reader, inside Want … Got.
	reading  bool
	buf      []byte // what arrived between bulk payloads
	r, w     int
	waste    []byte // where unwanted payload is read to
	land     landing
	batch    int // bytes of a batch body still to come
	batchN   int // messages of it still to come
	defs     []*Name
	applied  uint64 // counted frames applied
	parsed   uint64 // counted frames parsed in this bracket, not yet counted
	refusals []wire.Refusal
	seen     uint64 // the highest count of ours that the peer has seen
	ackSent  uint64
	peerAck  uint64 // the highest count of the peer's acks that we processed
	ackNow   bool
	seenDue  bool // the peer is to be told what we have seen of its acks
	ackAt    time.Duration
	ackBytes int
	deliver  []Delivery
	draining []*hold
	err      error // what was wrong with the stream; said once the deliveries before it are done
	rejected bool
	awaited  []wire.OpID // canceled operations whose verdict waits for this read call

	// Health.
	heard    time.Duration
	pings    [16]ping
	pingSeq  uint64
	answered time.Duration // send time of the newest ping or frame known to be answered
	oldest   time.Duration // send time of the oldest unanswered ping; 0: none
	echo     uint64
	echoAt   time.Duration
	rateAt   time.Duration
	rateFrom uint64
	dryAt    time.Duration // when the last bulk under way was acknowledged

	// Retire.
	cause     error
	suspectAt time.Duration
	// outlivedAt is when a suspect that another lane has outlived is retired, if it has shown no life since lastSign; 0: no lane has.
	outlivedAt time.Duration
	lastSign   sign
	retireAt   time.Duration // when Retired is said again
	peerFinal  uint64
	havePeer   bool // peerFinal is known

	peerRejected bool
	peerRefusals wire.Refusals
	peerHas      bool // the peer has our final count
	settled      bool // our side of it has been worked off
}

type ping struct {
	seq uint64
	at  time.Duration
}

// slice is a part of a begun frame that must still be written.
type slice struct {
	b []byte
	owner
}

// owner says whose memory a buffer is; both nil: the session's.
type owner struct {
	op     *Op
	region *rma.Region
}

// Lane gives the generation's lane.
func (g *Generation) Lane() *Lane { return g.lane }

// Current gives the lane's newest generation; nil before the first.
func (l *Lane) Current() *Generation { return l.current }

// Find gives an unsettled generation by number; nil: unknown or settled.
func (l *Lane) Find(id wire.Generation) *Generation {
	for _, g := range l.gens {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// Up tells whether the lane takes new work.
func (l *Lane) Up() bool {
	g := l.current
	return g != nil && g.up && !g.suspect && !g.fenced
}

// awaits tells whether a generation that is not here may still be attached: its dialer may be sending already.
func (l *Lane) awaits(id wire.Generation) bool {
	return id > l.dead && (l.current == nil || id > l.current.ID)
}

// NextGeneration is the number for our next dial of this rail.
func (l *Lane) NextGeneration() wire.Generation { return l.highest.Next(l.s.cfg.Opener) }

// Suspect tells whether the generation is under suspicion, and not yet cut off.
func (g *Generation) Suspect() bool { return g.suspect && !g.fenced }

// Fenced tells whether the generation has been cut off.
func (g *Generation) Fenced() bool { return g.fenced }

// Usable tells whether the generation takes work.
func (g *Generation) Usable() bool { return g.up && !g.fenced && !g.suspect }

// BytesInFlight is what was written and not yet acknowledged.
func (g *Generation) BytesInFlight() uint64 { return g.inFlight }

// LostBytes is what was in flight when the generation was fenced.
func (g *Generation) LostBytes() uint64 { return g.lost }

// ReroutedBytes is what the peer had not applied when the generation was settled, and what other lanes carry again.
func (g *Generation) ReroutedBytes() uint64 { return g.rerouted }

// IsQuiet tells whether the generation is fenced, no bracket of it is open, and its card is done.
func (g *Generation) IsQuiet() bool { return g.quiet }

func (g *Generation) outstanding() bool {
	return g.acked != g.sent || g.segs.len() > 0 || g.counted.len() > 0 || (g.fenced && !g.settled)
}

// live says that frames may be written on the generation.
func (g *Generation) live() bool { return !g.fenced && g.s.closed == nil }

// maxLeap bounds how far a join may raise a rail's generation, so that no peer uses the numbers up.
const maxLeap = 1 << 32

// Reserve takes a generation number for a join that is being decided, so that no lower one is
// accepted meanwhile. False: the number is not above every one joined or retired on the rail.
func (l *Lane) Reserve(id wire.Generation) bool {
	if id <= l.highest || id-l.highest > maxLeap || l.s.closed != nil {
		return false
	}
	l.highest = id
	return true
}

// FenceOlder cuts off every generation of the rail below id, and tells whether all of them are quiet. If not, a Quiet
// effect follows for each.
func (l *Lane) FenceOlder(now time.Duration, id wire.Generation, cause error) bool {
	l.s.now = now
	quiet := true
	for _, g := range append([]*Generation(nil), l.gens...) {
		if g.ID < id {
			l.s.fence(g, cause)
			quiet = quiet && g.quiet
		}
	}
	return quiet
}

// Attach opens a generation that both ends have agreed on. It takes work as soon as the older
// generations of its rail are settled. Nil: a higher generation was joined or retired meanwhile.
func (l *Lane) Attach(now time.Duration, id wire.Generation, user any) *Generation {
	return l.attach(now, id, user, nil)
}

func (l *Lane) attach(now time.Duration, id wire.Generation, user any, c *card) *Generation {
	s := l.s
	s.now = now
	if s.closed != nil || id < l.highest || !l.awaits(id) {
		return nil
	}
	l.highest = id
	g := &Generation{
		lane: l, s: s, ID: id, User: user, card: c, heard: now, answered: now, rateAt: now,
		creditSent: s.cfg.Window,
	}
	l.current = g
	l.gens = append(l.gens, g)
	s.hush()
	s.buryTombs()
	s.retell(g)
	s.raise(l)
	return g
}

// raise lets the lane's current generation take work once nothing older is unsettled.
func (s *Session) raise(l *Lane) {
	g := l.current
	if g == nil || g.up || g.fenced || l.gens[0] != g {
		return
	}
	g.up = true
	s.effect(Effect{Kind: LaneUp, Gen: g})
	s.flushPending()
	s.reoffer()
	s.wake(g)
}

// wake gives the write token to the generation's writer unless it has it already.
func (s *Session) wake(g *Generation) { s.wakeAs(g, false) }

func (s *Session) wakeAs(g *Generation, inline bool) {
	if g.token || g.fenced {
		return
	}
	g.token = true
	s.effect(Effect{Kind: Wake, Gen: g, Inline: inline})
}
