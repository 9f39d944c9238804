package session

import (
	"errors"
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// Causes of a generation's end that the session itself finds.
var (
	// ErrRetiredByPeer: the peer has fenced the generation.
	ErrRetiredByPeer = errors.New("the peer retired this rail's connection")
	// ErrReplaced: a newer generation of the rail took over.
	ErrReplaced = errors.New("a newer connection of this rail took over")
)

// Suspect takes the generation out of new work, and has it retired once another lane has answered a ping sent since
// (rule 6), unless it shows life itself within WitnessWait of that answer: a peer that was stopped answers on one lane before
// the other. Where no other lane answers it stays suspect.
func (s *Session) Suspect(now time.Duration, g *Generation, cause error) {
	s.now = now
	if g.fenced || g.suspect {
		return
	}
	g.suspect, g.suspectAt, g.cause = true, now, cause
	g.outlivedAt, g.lastSign = 0, g.sign()
	s.hush()
	for _, l := range s.lanes {
		if l != nil && l.current != nil && l.current != g && !l.current.fenced {
			l.current.beatAsk = true
			s.wake(l.current)
		}
	}
	s.reoffer()
	s.flushPending()
}

// Trust takes the suspicion back.
func (s *Session) Trust(now time.Duration, g *Generation) {
	s.now = now
	if g.fenced || !g.suspect {
		return
	}
	g.suspect, g.cause, g.outlivedAt = false, nil, 0
	s.hush()
	if g.up {
		s.effect(Effect{Kind: LaneUp, Gen: g})
		s.flushPending()
		s.reoffer()
		s.wake(g)
	}
}

// Lost fences the generation: its connection is over.
func (s *Session) Lost(now time.Duration, g *Generation, cause error) {
	s.now = now
	s.fence(g, cause)
}

// sign is what grows while the lane lives: bytes acknowledged where some are in flight, since beats alone may pass; else
// what was answered.
func (g *Generation) sign() sign { return sign{g.ackedBy, g.answered} }

type sign struct {
	acked    uint64
	answered time.Duration
}

// alive tells whether the generation has shown life since then.
func (g *Generation) alive(then sign) bool {
	return g.ackedBy > then.acked || g.inFlight == 0 && g.answered > then.answered
}

// judgeSuspects finds what another lane has outlived; if it shows no life within WitnessWait it is retired.
func (s *Session) judgeSuspects() {
	for _, l := range s.lanes {
		if l == nil || l.current == nil || !l.current.suspect || l.current.fenced || l.current.outlivedAt != 0 {
			continue
		}
		for _, o := range s.lanes {
			if o == nil || o == l || o.current == nil || !o.current.Usable() {
				continue
			}
			if o.current.answered >= l.current.suspectAt {
				l.current.outlivedAt = s.now + s.cfg.WitnessWait
				s.due = true
				break
			}
		}
	}
}

// sentence retires the generation whose time has come, or gives it another one if it has shown life: its health machine will
// trust it at its next look, or a witness comes again.
func (s *Session) sentence(g *Generation) {
	if g.outlivedAt == 0 || g.outlivedAt > s.now {
		return
	}
	g.outlivedAt = 0
	if g.alive(g.lastSign) {
		g.lastSign = g.sign()
		return
	}
	s.fence(g, g.cause)
}

// fence cuts a generation off: nothing more of it is written or applied. When no bracket is open any more it is quiet,
// its count is fixed, and the peer is told.
func (s *Session) fence(g *Generation, cause error) {
	if g.fenced {
		return
	}
	g.fenced, g.up, g.cause, g.lost = true, false, cause, g.inFlight
	g.todo = nil
	s.hush()
	if g.suspect && g.bulk > 0 { // perhaps it was only slower than measured: the next one begins with smaller chunks
		g.lane.Rate /= 2
	}
	s.effect(Effect{Kind: Killed, Gen: g, Err: cause})
	for _, o := range g.offers.all() {
		o.off(g)
	}
	for _, o := range g.small.all() {
		o.off(g)
	}
	g.offers.reset()
	g.small.reset()
	if c := g.card; c != nil {
		c.maps, c.asks = nil, nil
	}
	s.quieten(g)
	if s.closed == nil {
		s.reoffer()
	}
}

// quieten: once no socket call and no delivery of a fenced generation is in progress, and no card works for it any more, its
// final count is fixed.
func (s *Session) quieten(g *Generation) {
	if g.quiet || g.reading || g.writing {
		return
	}
	if c := g.card; c != nil {
		if !c.drained { // our card may still write for the peer (rule 20)
			return
		}
		c.conceal(s)
	}
	g.quiet = true
	g.land = landing{}
	g.rest, g.buf, g.waste, g.scratch = nil, nil, nil, nil
	s.effect(Effect{Kind: Quiet, Gen: g})
	if s.closed != nil {
		return
	}
	s.stats.Retired++
	g.retireAt = s.now + s.cfg.ResendEvery
	s.due = true
	s.sayAll(control{retired: g})
	if len(s.tombs) > 0 {
		s.buryTombs()
	}
	s.settle(g)
}

// retiredIn: the peer has fenced a generation, and says how far it had got. from is where it was said; nil: in a handshake.
func (s *Session) retiredIn(from *Generation, f *wire.Retired) error {
	if int(f.Rail) >= maxRails {
		return protocolError("a generation of rail %d; there are at most %d rails", f.Rail, maxRails)
	}
	l := s.Lane(f.Rail)
	g := l.Find(f.Generation)
	if g == nil { // never joined here, or settled and forgotten: then the peer has had our count
		l.dead = max(l.dead, f.Generation)
		l.highest = max(l.highest, f.Generation)
		s.buryTombs()
		if !f.Done && from != nil {
			from.say(control{stale: &wire.Retired{Rail: f.Rail, Generation: f.Generation, HaveYours: true, Done: true}})
		}
		return nil
	}
	s.fence(g, ErrRetiredByPeer)
	if !g.havePeer {
		g.havePeer, g.peerFinal, g.peerRejected = true, f.Count, f.Rejected
		g.peerRefusals = append(wire.Refusals(nil), f.Refusals...)
	}
	g.peerHas = g.peerHas || f.HaveYours
	if g.quiet && !f.Done && from != nil {
		from.say(control{retired: g})
	}
	s.settle(g)
	return nil
}

// maxRails bounds the rails between two nodes.
const maxRails = 256

// settle works a fenced generation off once both final counts are known: what the peer had applied is
// acknowledged, the rest goes elsewhere (rule 3). When the peer has our count too, the generation is forgotten.
func (s *Session) settle(g *Generation) {
	if !g.quiet || !g.havePeer || s.closed != nil {
		return
	}
	if !g.settled {
		if g.peerFinal > g.sent {
			s.Close(s.now, protocolError("%d frames of generation %d of rail %d were applied, of which %d were sent",
				g.peerFinal, g.ID, g.lane.ID, g.sent))
			return
		}
		g.whole = max(g.whole, g.peerFinal) // what the peer applied was written to the end
		s.refusalsIn(g, g.peerRefusals)
		_ = g.advance(g.peerFinal) // cannot fail: acked <= peerFinal <= whole
		g.settled = true
		s.reroute(g)
		if g.card != nil {
			g.card.landedStrays(s)
		}
		s.effect(Effect{Kind: Settled, Gen: g, Err: g.cause})
		s.flushPending()
		s.reoffer()
	}
	if !g.peerHas {
		s.sayAll(control{retired: g}) // now with HaveYours
		return
	}
	s.sayAll(control{stale: &wire.Retired{Rail: g.lane.ID, Generation: g.ID, Count: g.applied, HaveYours: true, Done: true,
		Rejected: g.rejected, Refusals: encodeRefusals(g.refusals)}})
	g.retireAt = 0
	l := g.lane
	for i, have := range l.gens {
		if have == g {
			l.gens = append(l.gens[:i], l.gens[i+1:]...)
			break
		}
	}
	s.raise(l)
}

// reroute gives back everything that the generation carried and the peer did not apply.
func (s *Session) reroute(g *Generation) {
	var back []queued
	first := g.peerRejected
	for g.items.len() > 0 {
		it := g.items.pop()
		s.stats.ReroutedFrames += uint64(it.frames)
		s.stats.ReroutedBytes += uint64(it.bytes)
		if it.seg != nil {
			for i := it.at; i < uint64(len(it.seg.frames)); i++ {
				back = s.requeueFrame(back, it.seg, int(i), first)
				first = false
			}
			continue
		}
		s.rerouteItem(&it, first)
		first = false
	}
	for g.segs.len() > 0 {
		seg := g.segs.pop()
		for i := range seg.frames {
			back = s.requeueFrame(back, seg, i, false)
		}
	}
	for g.counted.len() > 0 {
		it := g.counted.pop()
		s.rerouteItem(&it, false)
	}
	g.rerouted = g.inFlight
	g.inFlight, g.bulk, g.chunks = 0, 0, 0
	s.requeue(back)
}

// requeueFrame puts one message of a segment back, unless it brought two generations down (rule 4).
func (s *Session) requeueFrame(back []queued, seg *segment, i int, rejected bool) []queued {
	q := seg.unqueue(i)
	if rejected {
		if q.strikes++; q.strikes > 1 {
			s.giveUp(&q, fmt.Errorf("the message to %s was rejected on two connections: %w", q.target, rma.ErrMalformed))
			return back
		}
	}
	return append(back, q)
}

// giveUp ends a message that will not be sent again.
func (s *Session) giveUp(q *queued, err error) {
	size := len(q.payload)
	if q.large != nil {
		size = len(q.large.Data)
	}
	s.reserved -= min(s.reserved, cost(size, len(q.headers)))
	s.undelivered(q, err)
	if q.large == nil {
		s.left(q.wave)
		return
	}
	s.spent(q.large) // its placeholder
	s.finish(q.large, err)
}

func (s *Session) rerouteItem(it *item, rejected bool) {
	o := it.op
	switch it.kind {
	case wire.KindForget:
		s.forget = append(s.forget, it.forget...)
		return
	case wire.KindGetDone:
		s.verdicts = append(s.verdicts, *it)
		return
	case wire.KindGetRequest, wire.KindNotify:
		if o.ended || o.canceling {
			s.unsaid(o)
			return
		}
		s.owed = append(s.owed, o)
	default:
		s.spent(o)
		o.giveBack(span{it.at, uint64(it.n)})
	}
	if rejected {
		if o.strikes++; o.strikes > 1 {
			s.finish(o, &rma.OpError{Op: "operation", ID: o.ID, Err: rma.ErrMalformed})
		}
	}
}

// Fenced lists the unsettled generations for a handshake: each is a Retired (rule 3).
func (s *Session) Fenced() []wire.Retired {
	var list []wire.Retired
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if g.quiet && len(list) < wire.MaxFenced {
				list = append(list, g.retired())
			}
		}
	}
	return list
}

func (g *Generation) retired() wire.Retired {
	return wire.Retired{Rail: g.lane.ID, Generation: g.ID, Count: g.applied, HaveYours: g.havePeer,
		Rejected: g.rejected, Refusals: encodeRefusals(g.refusals)}
}

// ExchangeFenced takes over the list that a handshake brought and gives the one to answer with: our unsettled
// generations, and those of the peer's that we never had or have settled.
func (s *Session) ExchangeFenced(now time.Duration, list []wire.Retired) ([]wire.Retired, error) {
	s.now = now
	for i := range list {
		if err := s.retiredIn(nil, &list[i]); err != nil {
			return nil, err
		}
	}
	answer := s.Fenced()
	for i := range list {
		f := &list[i]
		if s.Lane(f.Rail).Find(f.Generation) == nil && len(answer) < wire.MaxFenced {
			answer = append(answer, wire.Retired{Rail: f.Rail, Generation: f.Generation, HaveYours: true, Done: true})
		}
	}
	return answer, nil
}
