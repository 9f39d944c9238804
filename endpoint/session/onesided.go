package session

import (
	"errors"
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// This file: the initiator's half of one-sided generations. The bytes of a put's chunk go by a place, which the card writes
// into the peer's memory; behind it, in the same ordered queue, goes a counted frame, Placed. So numbers, acknowledgements,
// refusals, reroute and cancel are those of any chunk; what is new is that a place outlasts the write call that posted it.
//
// Invariant: an operation whose source a card may still read (posted > 0) is not complete; one that is called canceled has no
// place that may still land (stray == 0).

// card is what a generation has when it is one-sided; nil on a stream.
type card struct {
	drained bool // the queue pair is destroyed: our card neither reads nor writes for this generation any more

	// Initiator. Places are posted and not complete, oldest first: at most maxPlaces, and a plan more.
	places fifo[*Op]
	taken  uint64 // places that have left the list: complete, or astray
	acked  uint64 // places whose frame is acknowledged: they have landed
	strays []*Op  // of places that were open when it was drained: until it is settled they may land
	maps   map[mapKey]*remote
	asks   []*remote // the questions that are open: at most maxAsks
	asked  uint64
	// What was learned of places while the write call that posts them was in progress: how many are complete, and that the
	// source of one has to be freed.
	soon int
	quit bool

	// Target.
	exposed map[uint64]*exposed // by the region's number: all that this generation has told a key of
	keys    map[uint32]uint64   // the region of each key that was told
	pending int                 // questions that wait for the owner's Mapped
	sweepAt int                 // how many are exposed when those that are not revoked are counted again
}

// Bounds of a one-sided generation.
const (
	maxAsks   = 64      // open questions for keys
	maxPlaces = 1 << 10 // places posted and not complete
	maxRemote = 4 << 10 // keys of the peer's that are remembered
	maxPassed = 256     // operations that one look passes over because they wait for a key
)

// mapKey is what a question is about: a wrong token is another question.
type mapKey struct {
	region uint64
	token  wire.Token
}

// remote is what is known of one of the peer's regions.
type remote struct {
	mapKey
	ask      uint64
	answered bool
	stale    bool // asked before something was learned that makes the answer worthless
	code     wire.Code
	key      uint32
	address  uint64
	length   uint64
}

// ErrPlace is wrapped by the cause of a generation's end where a place has failed: its queue pair can do nothing more.
var ErrPlace = errors.New("session: the card could not complete a place")

// ErrAbandoned is why a generation ends whose card still reads the source of an operation that was given up.
var ErrAbandoned = errors.New("session: an operation was given up while the card still read its source")

// AttachOneSided is Attach for a transport whose card writes into the peer's memory. Its owner also calls Placed, PlaceFailed
// and Drained, and answers MapWanted with Mapped.
func (l *Lane) AttachOneSided(now time.Duration, id wire.Generation, user any) *Generation {
	return l.attach(now, id, user, &card{maps: make(map[mapKey]*remote), exposed: make(map[uint64]*exposed),
		keys: make(map[uint32]uint64), sweepAt: maxMapped})
}

// OneSided tells whether the generation's chunks are written by the card.
func (g *Generation) OneSided() bool { return g.card != nil }

// way is how an operation's next chunk goes on this generation.
type way uint8

const (
	byFrames way = iota // header and payload in the stream
	byPlace
	byNone  // it has just ended: the claim is refused
	waiting // for a key
)

// wayOf decides how the operation's next chunk goes, and asks for the key where that is not known.
func (f *filler) wayOf(o *Op) (way, *remote) {
	g := f.g
	c := g.card
	if c == nil || o.Kind != Put || len(o.Data) <= smallOp {
		return byFrames, nil
	}
	m := c.maps[mapKey{o.Region, o.Token}]
	switch {
	case m == nil:
		g.ask(mapKey{o.Region, o.Token})
		return waiting, nil
	case !m.answered, c.places.len()+len(f.out.Places) >= maxPlaces:
		return waiting, nil
	}
	code := m.code
	if code == wire.CodeOK && (o.Offset > m.length || uint64(len(o.Data)) > m.length-o.Offset) {
		code = wire.CodeBounds // the card would only break the queue pair
	}
	switch code {
	case wire.CodeOK:
		return byPlace, m
	case wire.CodeLimit, wire.CodeInternal: // the peer's card cannot have it: the reader can
		return byFrames, nil
	default:
		g.s.stats.Refused++
		g.s.finish(o, &rma.OpError{Op: "put", ID: o.ID, Err: rma.CodeError(code)})
		return byNone, nil
	}
}

// ask queues a question for a key; with too many open it is left for later.
func (g *Generation) ask(k mapKey) {
	c := g.card
	if len(c.asks) >= maxAsks {
		return
	}
	if len(c.maps) >= maxRemote { // whatever is needed is asked for again, which costs a round trip
		clear(c.maps)
		for _, m := range c.asks {
			c.maps[m.mapKey] = m
		}
	}
	c.asked++
	m := &remote{mapKey: k, ask: c.asked}
	c.maps[k] = m
	c.asks = append(c.asks, m)
	g.say(control{ask: m})
}

// mappedIn is the answer to a question of ours.
func (g *Generation) mappedIn(f wire.Mapped) error {
	c := g.card
	if c == nil {
		return protocolError("a remote key on a stream")
	}
	if g.fenced { // nothing is asked any more
		return nil
	}
	for i, m := range c.asks {
		if m.ask != f.Ask {
			continue
		}
		c.asks = append(c.asks[:i], c.asks[i+1:]...)
		if m.stale {
			delete(c.maps, m.mapKey)
		} else {
			m.answered, m.code, m.key, m.address, m.length = true, f.Code, f.Key, f.Address, f.Length
		}
		g.s.wake(g)
		return nil
	}
	return protocolError("an answer to question %d for a key, which is not open", f.Ask)
}

// takePlace plans one chunk as a place and the frame that counts it.
func (f *filler) takePlace(o *Op, m *remote) {
	g := f.g
	p := o.take(g.lane.chunk())
	f.out.AddPlace(rma.Place{Source: o.Data[p.at : p.at+p.n : p.at+p.n], Address: m.address + o.Offset + p.at, Key: m.key,
		At: f.out.Size() + len(g.scratch) - f.from})
	g.scratch = (&wire.Placed{Op: o.ID, Region: o.Region, Base: o.Offset, Total: uint64(len(o.Data)),
		Position: p.at, Size: uint32(p.n), Notify: o.Notify != nil}).Append(g.scratch)
	o.pins++
	o.out++
	f.entry(planned{size: wire.HeaderSize, item: item{kind: wire.KindPlaced, op: o, at: p.at, n: uint32(p.n), frames: 1,
		bytes: wire.HeaderSize + uint32(p.n), bulk: true}})
	f.size += int(p.n)
}

// post notes that a place has been handed to the card.
func (c *card) post(s *Session, it *item) {
	s.stats.BytesOut += uint64(it.n)
	if c.drained { // the call that posted it was under way meanwhile
		c.taken++
		c.strays = append(c.strays, it.op)
		it.op.stray++
		return
	}
	c.places.push(it.op)
	it.op.posted++
	c.quit = c.quit || it.op.abandoned
}

// Placed says that the first k open places are complete: the peer's card has them, and ours needs their sources no more.
func (g *Generation) Placed(now time.Duration, k int) error {
	s, c := g.s, g.card
	s.now = now
	if c == nil || k < 0 || (k > c.places.len() && !g.writing) {
		return fmt.Errorf("session: %d places are called complete; fewer are open, or none can be", k)
	}
	for k > 0 && c.places.len() > 0 {
		k--
		o := c.places.pop()
		c.taken++
		o.posted--
		s.outlived(o)
	}
	c.soon += k
	if g.offers.len() > 0 {
		s.wake(g)
	}
	return nil
}

// closeWrite ends the bracket of a write call: what was learned of its places meanwhile.
func (g *Generation) closeWrite() error {
	s, c := g.s, g.card
	k := c.soon
	c.soon = 0
	if err := g.Placed(s.now, k); err != nil {
		return err
	}
	if c.quit {
		c.quit = false
		s.fence(g, ErrAbandoned)
	}
	return nil
}

// PlaceFailed says that the first k open places are complete and the one behind them failed; err wraps rma.ErrAccess where the
// peer's card refused it. It may have landed wholly, in part or not at all. The generation is over.
func (g *Generation) PlaceFailed(now time.Duration, k int, err error) error {
	if err := g.Placed(now, k); err != nil {
		return err
	}
	s, c := g.s, g.card
	if errors.Is(err, rma.ErrAccess) {
		if c.places.len() > 0 {
			s.doubt(*c.places.front())
		} else if o := g.beingPosted(c.soon); o != nil {
			s.doubt(o)
		}
	}
	s.fence(g, fmt.Errorf("%w: %w", ErrPlace, err))
	return nil
}

// beingPosted gives the operation of a place in the open plan, counted from 0.
func (g *Generation) beingPosted(n int) *Op {
	for i := range g.plan {
		if g.plan[i].kind != wire.KindPlaced {
			continue
		}
		if n == 0 {
			return g.plan[i].op
		}
		n--
	}
	return nil
}

// doubt has every generation ask again before it posts anything more to the operation's region (rule 24).
func (s *Session) doubt(o *Op) {
	k := mapKey{o.Region, o.Token}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if g.card == nil || g.fenced {
				continue
			}
			if m := g.card.maps[k]; m != nil && !m.answered {
				m.stale = true
			} else {
				delete(g.card.maps, k)
			}
		}
	}
}

// Drained says that the generation's queue pair is destroyed: our card reads no source of its places any more, and writes
// nothing of the peer's. It follows every end of a one-sided generation, whoever found it.
func (g *Generation) Drained(now time.Duration) {
	s, c := g.s, g.card
	s.now = now
	if c == nil || c.drained {
		return
	}
	c.drained, c.soon = true, 0 // what a write call still reports as posted is astray
	s.fence(g, ErrFenced)
	for c.places.len() > 0 {
		o := c.places.pop()
		o.posted--
		if c.taken >= c.acked && !g.settled {
			c.strays = append(c.strays, o)
			o.stray++
		}
		c.taken++
		s.outlived(o)
	}
	s.quieten(g)
}

// landedStrays: the generation is settled, so the peer's queue pair is destroyed as well: nothing can land any more.
func (c *card) landedStrays(s *Session) {
	strays := c.strays
	c.strays = nil
	for _, o := range strays {
		o.stray--
		s.outlived(o)
	}
}

// outlived completes an operation that has ended, if it only waited for places.
func (s *Session) outlived(o *Op) {
	if o.ended && !o.done {
		s.over(o)
	}
}

// freeSource cuts off the generations whose cards may still read the operation's memory (rule 25).
func (s *Session) freeSource(o *Op) {
	o.abandoned = true
	if o.posted == 0 {
		return
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range append([]*Generation(nil), l.gens...) {
			if g.card != nil && g.card.holds(o) {
				s.fence(g, ErrAbandoned)
			}
		}
	}
}

func (c *card) holds(o *Op) bool {
	for _, have := range c.places.all() {
		if have == o {
			return true
		}
	}
	return false
}
