package session

import (
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// OpKind says what an operation does.
type OpKind uint8

// The kinds of operations. Serve and LargeMessage are the session's own.
const (
	Put OpKind = iota + 1
	Get
	Flush
	Serve        // the data of a get that the peer asked for
	LargeMessage // the body of a message that travels in chunks
)

// Op is one operation. The owner fills the first block and passes it to Start.
//
// Owner: the session, from Start until its Completed effect; then the application again.
// Invariant: pins counts the open brackets whose plan names Data, posted the places of it; the operation does not end while
// one of them is above 0.
type Op struct {
	Kind   OpKind
	Region uint64
	Token  [16]byte
	Offset uint64
	// Data is the source of a put, the destination of a get.
	Data []byte
	// Notify is sent with a put and delivered when all its bytes are visible; nil: none.
	Notify *Message
	// Fence: start only after everything before it, messages among it, is acknowledged.
	Fence bool
	User  any

	ID        wire.OpID
	startedAt time.Duration // when it was started
	// envelope is a large message without its body; gaveUp says that it was given back as undelivered.
	envelope *queued
	gaveUp   bool

	begun     bool   // a frame of it may have been written
	held      bool   // waits for its turn (Fence)
	wave      uint64 // of a large message: which it belongs to; of what is held: the one that must be the oldest
	canceling bool   // taken back; the target's verdict is open
	ended     bool   // its end is decided; it waits for pins
	done      bool   // Completed has been said
	abandoned bool   // no card may read Data any longer than it must
	quits     bool   // it ends as canceled, so nothing of it may land any more
	err       error  // how it ends

	next     uint64 // bytes of Data taken for chunks so far
	zeroSent bool   // the one empty chunk of an empty put has been taken
	returned []span // parts that came back from a settled generation or an unwritten plan
	out      int    // its counted frames that are owed, planned, or sent and not yet acknowledged
	landed   uint64 // bytes of a get that are in Data
	verdict  bool   // a get's verdict has come
	// asking: its Cancel is not answered.
	asking  bool
	strikes uint8 // how often a frame of it was rejected with its generation
	pins    int32
	// posted is its places that a card may still read Data for; stray, those that may still land at the target though their
	// queue pair here is gone.
	posted, stray int32

	region *rma.Region // Serve: where Data lies
	padded bool        // Serve: zeros went instead of data

	on            []*Generation // where it is offered and not yet worked off
	onMemory      [2]*Generation
	before, after *Op
	listed        bool
}

type span struct{ at, n uint64 }

// opList is the open puts, gets and flushes in the order of their numbers.
type opList struct{ first, last *Op }

func (l *opList) add(o *Op) {
	o.listed, o.before, o.after = true, l.last, nil
	if l.last != nil {
		l.last.after = o
	} else {
		l.first = o
	}
	l.last = o
}

func (l *opList) remove(o *Op) {
	if !o.listed {
		return
	}
	o.listed = false
	if o.before != nil {
		o.before.after = o.after
	} else {
		l.first = o.after
	}
	if o.after != nil {
		o.after.before = o.before
	} else {
		l.last = o.before
	}
	o.before, o.after = nil, nil
}

// unsent tells whether bytes of the operation wait to be taken by a lane.
func (o *Op) unsent() bool {
	if o.ended || o.canceling || o.held {
		return false
	}
	switch o.Kind {
	case Put:
		if len(o.Data) == 0 && !o.zeroSent {
			return true
		}
	case Serve, LargeMessage:
	default:
		return false
	}
	return len(o.returned) > 0 || o.next < uint64(len(o.Data))
}

// Start begins an operation. Every operation that is started ends with one Completed effect.
func (s *Session) Start(now time.Duration, o *Op) {
	s.now, s.workAt = now, now
	s.nextOp++
	o.ID, o.startedAt = s.nextOp, now
	switch {
	case s.closed != nil:
		s.refuse(o, s.closed)
		return
	case s.goodbye:
		s.refuse(o, fmt.Errorf("operation %d: this side is leaving: %w", o.ID, rma.ErrShutdown))
		return
	case len(s.ops)+len(s.parting)+s.forgetting >= s.cfg.MaxOpen:
		s.refuse(o, fmt.Errorf("%d operations are open, and of %d the peer has not let go; the limit is %d (Config.MaxOpen): "+
			"wait for some to complete: %w", len(s.ops), len(s.parting)+s.forgetting, s.cfg.MaxOpen, rma.ErrWindowFull))
		return
	}
	waits := o.Fence || o.Kind == Flush
	if waits && s.waves.open.len() > s.cfg.MaxOpen {
		s.refuse(o, fmt.Errorf("%d flushes and fences were begun since a message was sent that has not arrived yet; the limit is %d "+
			"(Config.MaxOpen): wait for some to complete: %w", s.waves.open.len(), s.cfg.MaxOpen, rma.ErrWindowFull))
		return
	}
	s.ops[o.ID] = o
	first := s.open.first == nil
	s.open.add(o)
	if waits {
		o.wave = s.waves.part()
		if !first || !s.waves.past(o.wave) {
			o.held = true
			return
		}
	}
	s.begin(o)
}

func (s *Session) refuse(o *Op, err error) {
	o.done, o.ended, o.err = true, true, err
	s.effect(Effect{Kind: Completed, Op: o, Err: err})
}

// begin lets an operation go out: it is not, or no longer, held by a fence.
func (s *Session) begin(o *Op) {
	o.held = false
	switch o.Kind {
	case Flush:
		s.finish(o, nil)
	case Get:
		s.request(o)
	default:
		if o.Notify != nil {
			s.request(o)
		}
		s.startBulk(o)
	}
}

// request queues the operation's one small counted frame (get request or notify) on a lane; without a lane
// it stays to be asked for by reoffer.
func (s *Session) request(o *Op) {
	o.out++ // even while it is only owed: the operation cannot complete without it
	if g := s.best(wire.HeaderSize); g != nil {
		s.putRequest(g, o)
	} else {
		s.owed = append(s.owed, o)
	}
}

func (s *Session) putRequest(g *Generation, o *Op) {
	g.counted.push(item{op: o, kind: o.requestKind(), frames: 1})
	s.wake(g)
}

func (o *Op) requestKind() wire.Kind {
	if o.Kind == Get {
		return wire.KindGetRequest
	}
	return wire.KindNotify
}

// startBulk offers the operation's bytes to the lanes.
func (s *Session) startBulk(o *Op) {
	if o.on == nil {
		o.on = o.onMemory[:0]
	}
	if !o.unsent() {
		return
	}
	if len(o.Data) <= s.cfg.MinChunk {
		if g := s.best(len(o.Data)); g != nil {
			s.offer(g, o)
		}
		return
	}
	for _, l := range s.lanes {
		if l != nil && l.Up() {
			s.offer(l.current, o)
		}
	}
}

func (s *Session) offer(g *Generation, o *Op) {
	for _, have := range o.on {
		if have == g { // the lane that it left the operation to may be the one that has gone
			s.wake(g)
			return
		}
	}
	o.on = append(o.on, g)
	if o.Kind == LargeMessage { // a message makes no hop for itself
		s.Accept(s.now, g, o)
		return
	}
	s.effect(Effect{Kind: Offered, Gen: g, Op: o})
}

// Accept puts an offered operation into the generation's queue: its transport has taken note of it.
func (s *Session) Accept(now time.Duration, g *Generation, o *Op) {
	s.now = now
	if g.fenced || !o.unsent() {
		o.off(g)
		return
	}
	if len(o.Data) <= smallOp {
		g.small.push(o)
	} else {
		g.offers.push(o)
	}
	s.wakeAs(g, g.inFlight == 0 && len(o.Data) <= smallOp)
}

// off notes that the generation no longer has the operation in its queue.
func (o *Op) off(g *Generation) {
	for i, have := range o.on {
		if have == g {
			last := len(o.on) - 1
			o.on[i], o.on[last] = o.on[last], nil
			o.on = o.on[:last]
			return
		}
	}
}

// reoffer finds work that no usable lane knows of, after lanes went or came.
func (s *Session) reoffer() {
	owed := s.owed
	s.owed = nil
	for _, o := range owed {
		if o.ended || o.canceling {
			s.unsaid(o)
			continue
		}
		if g := s.best(wire.HeaderSize); g != nil {
			s.putRequest(g, o)
		} else {
			s.owed = append(s.owed, o)
		}
	}
	verdicts := s.verdicts
	s.verdicts = nil
	for _, it := range verdicts {
		s.sayGetDone(it.id, it.code)
	}
	for o := s.open.first; o != nil; o = o.after {
		s.reofferOne(o)
	}
	for _, o := range s.bodies {
		s.reofferOne(o)
	}
	if len(s.forget) > 0 {
		s.sendForget()
	}
}

func (s *Session) reofferOne(o *Op) {
	if !o.unsent() {
		return
	}
	if len(o.Data) <= s.cfg.MinChunk {
		for _, g := range o.on {
			if g.Usable() {
				return
			}
		}
	}
	s.startBulk(o)
}

// best gives the usable lane that would finish n bytes first; nil: none is up.
func (s *Session) best(n int) *Generation {
	var best *Generation
	var least float64
	for _, l := range s.lanes {
		if l == nil || !l.Up() {
			continue
		}
		t := l.finish(uint64(n))
		if best == nil || t < least {
			best, least = l.current, t
		}
	}
	return best
}

// finish estimates the seconds until n more bytes would be through the lane.
func (l *Lane) finish(n uint64) float64 {
	rate := l.Rate
	if rate == 0 {
		rate = 1e9
	}
	return float64(l.current.inFlight+n)/rate + l.MinRoundTrip.Seconds()/2
}

// finish decides how an operation ends. What refers to its memory is cut loose first; it is complete when no socket
// call names it any more.
func (s *Session) finish(o *Op, err error) {
	if o.ended {
		return
	}
	o.ended, o.err = true, err
	o.returned = nil
	s.cutLoose(o)
	s.over(o)
}

// over completes an operation that has ended, once nothing reads its memory and nothing contradicts its outcome.
func (s *Session) over(o *Op) {
	unread := o.posted == 0
	holds := o.stray == 0 || !o.quits
	if o.pins == 0 && unread && holds {
		s.complete(o)
	}
}

// cutLoose copies what is left of half-written frames of the operation aside, so that its memory is needed no more.
func (s *Session) cutLoose(o *Op) {
	if o.out == 0 {
		return
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			for i := range g.rest {
				if g.rest[i].op == o && !g.writing {
					g.rest[i].b, g.rest[i].op, g.rest[i].region = clone(g.rest[i].b), nil, nil
				}
			}
		}
	}
}

// unpin closes one bracket's hold on the operation's memory.
func (s *Session) unpin(o *Op) {
	o.pins--
	if o.pins > 0 {
		return
	}
	switch {
	case o.ended && !o.done:
		s.cutLoose(o)
		s.over(o)
	case o.canceling && !o.ended:
		s.askCancel(o)
	}
}

// addBody and dropBody keep the list of what travels in chunks without being in the open list: bodies of large
// messages and answers to gets.
func (s *Session) addBody(o *Op) { s.bodies = append(s.bodies, o) }

func (s *Session) dropBody(o *Op) {
	for i, have := range s.bodies {
		if have == o {
			s.bodies = append(s.bodies[:i], s.bodies[i+1:]...)
			return
		}
	}
}

// complete says the end of an operation, once.
func (s *Session) complete(o *Op) {
	if o.done {
		return
	}
	o.done = true
	if o.Kind == Serve {
		s.served(o)
		return
	}
	delete(s.ops, o.ID)
	if o.Kind == LargeMessage {
		s.dropBody(o)
		s.left(o.wave)
		return
	}
	s.parting[o.ID] = o
	s.part(o)
	if o.err == nil {
		s.stats.PutsCompleted++
		s.timeDone(o)
	}
	s.open.remove(o)
	s.effect(Effect{Kind: Completed, Op: o, Err: o.err})
	s.advanceOpen()
}

// spent takes one counted frame off the operation: acknowledged, or not to be sent again.
func (s *Session) spent(o *Op) {
	o.out--
	s.part(o)
}

// unsaid drops the request or notify of an operation that was taken back: the peer does not have it.
func (s *Session) unsaid(o *Op) {
	o.verdict = true // of a get: none will come
	s.spent(o)
}

// part lets go of an operation that is done, once nothing of it is under way to the peer and the peer serves it no more:
// a frame that came later would make the peer keep a record anew. Until then it counts towards MaxOpen, which
// bounds what the peer keeps.
func (s *Session) part(o *Op) {
	if !o.done || o.out > 0 || o.asking || s.parting[o.ID] != o || (o.Kind == Get && o.begun && !o.verdict) {
		return
	}
	delete(s.parting, o.ID)
	if o.Notify != nil && o.begun && s.closed == nil {
		s.forgetting++
		s.forget = append(s.forget, o.ID)
		s.sendForget()
	}
}

// advanceOpen starts what was waiting for everything before it. In a session that is over nothing is started: a flush
// would report success.
func (s *Session) advanceOpen() {
	if s.closed != nil {
		return
	}
	for f := s.open.first; f != nil && f.held && s.waves.past(f.wave); f = s.open.first {
		s.begin(f)
		if f.listed {
			return
		}
	}
}

// progress looks whether an operation has everything acknowledged.
func (s *Session) progress(o *Op) {
	if o.ended || o.canceling || o.out > 0 || o.unsent() || o.held {
		return
	}
	switch o.Kind {
	case Get:
		return // ends with its verdict (receive side)
	default:
		s.finish(o, nil)
	}
}

// sendForget lets the peer drop the records of operations that have ended.
func (s *Session) sendForget() {
	g := s.best(wire.HeaderSize)
	if g == nil {
		return
	}
	n := min(len(s.forget), maxForget)
	g.counted.push(item{kind: wire.KindForget, forget: append([]wire.OpID(nil), s.forget[:n]...), frames: 1})
	s.forget = s.forget[:copy(s.forget, s.forget[n:])]
	s.wake(g)
}

// maxForget bounds the operations named in one Forget frame.
const maxForget = 512
