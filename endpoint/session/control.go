package session

import (
	"time"

	"railyard/wire"
)

// control is state to be said on a generation: one of the two. It is encoded when it is written, so that it says what is true
// then, and it takes no slot of any bounded queue.
type control struct {
	retired *Generation // our final count of that generation
	cancel  *cancel
	verdict *wire.Verdict
	mapped  *wire.Mapped
	ask     *remote
	stale   *wire.Retired // answer about a generation that we do not have
	bye     bool
}

// say queues c on the generation unless it waits there already.
func (g *Generation) say(c control) {
	if g.fenced {
		return
	}
	for _, have := range g.todo {
		if have == c {
			return
		}
	}
	g.todo = append(g.todo, c)
	g.s.wake(g)
}

// sayAll queues c on every live lane.
func (s *Session) sayAll(c control) {
	for _, l := range s.lanes {
		if l != nil && l.current != nil {
			l.current.say(c)
		}
	}
}

// retell queues everything that is unanswered on a generation that has just been attached.
func (s *Session) retell(g *Generation) {
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, old := range l.gens {
			if old.quiet {
				g.say(control{retired: old})
			}
		}
	}
	for _, c := range s.cancels {
		g.say(control{cancel: c})
	}
	if s.bye {
		g.say(control{bye: true})
	}
}

// resend says again what is unanswered and due.
func (s *Session) resend(now time.Duration) {
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if g.retireAt != 0 && g.retireAt <= now {
				g.retireAt = now + s.cfg.ResendEvery
				s.sayAll(control{retired: g})
			}
		}
	}
	for _, c := range s.cancels {
		if c.at <= now {
			c.every = min(2*c.every, time.Second)
			c.at = now + c.every
			s.sayAll(control{cancel: c})
		}
	}
}

// takeControl plans the uncounted frames.
func (f *filler) takeControl(now time.Duration) {
	g := f.g
	at := len(g.scratch)
	for len(g.todo) > 0 && !f.full() {
		c := g.todo[0]
		g.todo = g.todo[:copy(g.todo, g.todo[1:])]
		g.scratch = g.appendControl(c, g.scratch)
	}
	if g.beatAsk || g.beatAnswer {
		g.scratch = g.appendBeat(now, g.scratch)
	}
	other := len(g.scratch) > at || g.segs.len() > 0 || g.counted.len() > 0 || g.small.len() > 0 || g.offers.len() > 0
	if g.seenDue || (g.applied != g.ackSent && (g.ackNow || other)) {
		g.scratch = g.appendAck(g.scratch)
	}
	if total := g.s.consumed + g.s.cfg.Window; g.creditSent < g.s.grantSent || (other && total-g.creditSent >= g.s.cfg.Window/64) {
		g.s.grantSent = max(g.s.grantSent, total)
		g.creditSent = g.s.grantSent
		g.scratch = (&wire.Credit{Granted: g.creditSent}).Append(g.scratch)
	}
	if n := len(g.scratch) - at; n > 0 {
		f.entry(planned{size: n, ctl: true})
	}
}

func (g *Generation) appendControl(c control, b []byte) []byte {
	s := g.s
	switch {
	case c.retired != nil:
		if c.retired.settled && c.retired.peerHas { // forgotten meanwhile, and said so
			return b
		}
		f := c.retired.retired()
		return f.Append(b)
	case c.cancel != nil:
		for _, open := range s.cancels {
			if open == c.cancel {
				return (&wire.Cancel{Op: c.cancel.id, Marks: c.cancel.marks}).Append(b)
			}
		}
		return b
	case c.verdict != nil:
		return c.verdict.Append(b)
	case c.ask != nil:
		return (&wire.Map{Ask: c.ask.ask, Region: c.ask.region, Token: c.ask.token}).Append(b)
	case c.mapped != nil:
		return c.mapped.Append(b)
	case c.stale != nil:
		return c.stale.Append(b)
	case c.bye:
		g.leaving = true
		bye := wire.Goodbye{}
		for _, l := range s.lanes {
			if l != nil && l.current != nil && !l.current.fenced && len(bye.Marks) < wire.MaxMarks {
				bye.Marks = append(bye.Marks, wire.Mark{Rail: l.ID, Generation: l.current.ID, Frame: l.current.plain()})
			}
		}
		return bye.Append(b)
	}
	return b
}

// plain is how many of the applied frames need no refusal beside the count: a Goodbye carries none (rule 2).
func (g *Generation) plain() uint64 {
	if len(g.refusals) > 0 {
		return min(g.applied, g.refusals[0].Frame-1)
	}
	return g.applied
}

func encodeRefusals(list []wire.Refusal) wire.Refusals {
	var r wire.Refusals
	for _, x := range list {
		r = r.Add(x)
	}
	return r
}

// SayGoodbye tells the peer that nothing more comes: after everything is acknowledged (Open), or with the final counts.
func (s *Session) SayGoodbye(now time.Duration) {
	s.now = now
	s.goodbye, s.bye = true, true
	s.sayAll(control{bye: true})
}

// Leave refuses new work from now on; what is open goes on.
func (s *Session) Leave() { s.goodbye = true }

// SaidGoodbye tells whether our goodbye has been handed to a socket.
func (s *Session) SaidGoodbye() bool {
	said := false
	for _, l := range s.lanes {
		if l == nil || l.current == nil || l.current.fenced {
			continue
		}
		g := l.current
		if g.leaving && len(g.rest) == 0 && !g.writing {
			said = true
		}
	}
	return said
}

// Beat sends a ping on the generation now.
func (s *Session) Beat(now time.Duration, g *Generation) {
	s.now = now
	if g.fenced {
		return
	}
	g.beatAsk = true
	s.wake(g)
}

// appendBeat encodes a ping, or the answer to one, or both in one frame.
func (g *Generation) appendBeat(now time.Duration, b []byte) []byte {
	f := wire.Beat{Seen: g.peerAck}
	if g.beatAsk {
		g.pingSeq++
		f.Seq = g.pingSeq
		g.pings[f.Seq%uint64(len(g.pings))] = ping{seq: f.Seq, at: now}
		if g.oldest == 0 {
			g.oldest = now
		}
	}
	if g.beatAnswer {
		f.Echo, f.Held = g.echo, uint64(now-g.echoAt)
	}
	g.beatAsk, g.beatAnswer = false, false
	return f.Append(b)
}

// beatIn hears a ping, an answer, or both.
func (g *Generation) beatIn(now time.Duration, f wire.Beat) error {
	s := g.s
	g.seenIn(f.Seen)
	if f.Seq != 0 {
		g.echo, g.echoAt, g.beatAnswer = f.Seq, now, true
		s.wake(g)
	}
	if f.Echo == 0 {
		return nil
	}
	if f.Echo > g.pingSeq {
		return protocolError("an answer to ping %d, of which %d were sent", f.Echo, g.pingSeq)
	}
	p := g.pings[f.Echo%uint64(len(g.pings))]
	if p.seq == f.Echo {
		g.lane.roundTrip(now - p.at - time.Duration(min(f.Held, uint64(now-p.at))))
		g.answeredAt(p.at)
	}
	// The oldest unanswered ping is the one after the answered one, if it is still remembered.
	g.oldest = 0
	for q := f.Echo + 1; q <= g.pingSeq; q++ {
		if p := g.pings[q%uint64(len(g.pings))]; p.seq == q {
			g.oldest = p.at
			break
		}
	}
	s.judgeSuspects()
	return nil
}

func (g *Generation) answeredAt(sent time.Duration) { g.answered = max(g.answered, sent) }

// roundTrip smooths the lane's round trip and jitter (as TCP does).
func (l *Lane) roundTrip(rtt time.Duration) {
	if rtt < 0 {
		return
	}
	if l.RoundTrip == 0 {
		l.RoundTrip, l.Jitter, l.MinRoundTrip = rtt, rtt/2, rtt
		return
	}
	diff := l.RoundTrip - rtt
	if diff < 0 {
		diff = -diff
	}
	l.Jitter += (diff - l.Jitter) / 4
	l.RoundTrip += (rtt - l.RoundTrip) / 8
	l.MinRoundTrip = min(l.MinRoundTrip, rtt)
}

// Vitals is what a health machine judges a generation by; times are of the same clock as `now`.
type Vitals struct {
	Heard, Answered, OldestPing time.Duration
	AckedBytes, InFlight        uint64
	RoundTrip, Jitter           time.Duration
	Busy                        bool
}

// recentWork is how long after the last message or operation there still counts as work: whoever looks once a second sees it.
const recentWork = 1200 * time.Millisecond

// Vitals of a generation, as of the session's latest call.
func (g *Generation) Vitals() Vitals {
	return Vitals{
		Heard: g.heard, Answered: g.answered, OldestPing: g.oldest, AckedBytes: g.ackedBy, InFlight: g.inFlight,
		RoundTrip: g.lane.RoundTrip, Jitter: g.lane.Jitter,
		Busy: len(g.s.ops) > 0 || g.inFlight > 0 || len(g.s.assemblies) > 0 || (g.s.workAt > 0 && g.s.now-g.s.workAt < recentWork),
	}
}
