package replica

import "time"

// phase is how far a primary is.
type phase uint8

const (
	deposed phase = iota
	asking        // which member is ahead
	opening       // until the epoch's first record is at a quorum, and all before it
	open
)

// primary is what a member has besides while the roster names it. Owner: the Member.
type primary struct {
	m     *Member
	epoch uint64
	phase phase
	stood uint64 // ticket of the own promise
	peers []*peer

	first   uint64 // the epoch's first record
	commit  uint64 // acknowledged at the level. Invariant: only rises
	hard    uint64 // the same of flushes
	recent  []Record
	bytes   int // in recent
	unacked int // bytes in recent that are above commit

	queue   []Write // that wait for their turn
	writes  []answerable
	flushes []answerable
	reads   []Read       // that wait for a lease
	reading []Read       // in the store
	seen    []answerable // read, and waiting for what they may have seen

	proposed time.Duration // not again before
	ticked   time.Duration
	differs  uint64 // extents that were found to differ
}

// answerable is an operation that is answered when the log is at a quorum up to a record.
type answerable struct {
	op, sequence uint64
	hard         bool
}

// stand makes the member the primary that the roster wants, as soon as its promise to an older one allows.
func (m *Member) stand() {
	r := &m.roster
	if r.Primary != m.set.Self || m.out != nil || m.now < m.leased {
		return
	}
	if r.Epoch <= m.state.Promised { // it was, and has forgotten what it did: that epoch is over
		if m.now >= m.asked {
			m.asked = m.now + m.set.Retry
			m.emit(Propose{Command{Epoch: r.Epoch, Primary: m.set.Self}})
		}
		return
	}
	stood := m.promise(r.Epoch)
	p := &primary{m: m, epoch: r.Epoch, phase: asking, stood: stood, proposed: m.now, ticked: m.now}
	m.out = p
	for _, n := range r.Members {
		if n != m.set.Self {
			p.peers = append(p.peers, newPeer(p, n))
		}
	}
}

// stepDown ends the member's time as primary. What was not acknowledged is unknown.
func (m *Member) stepDown() {
	p := m.out
	if p == nil {
		return
	}
	m.out, p.phase = nil, deposed
	for _, peer := range p.peers {
		peer.abandon()
	}
	for _, list := range [][]answerable{p.writes, p.flushes, p.seen} {
		for _, a := range list {
			m.emit(Answer{a.op, ErrDeposed})
		}
	}
	for _, list := range [][]Read{p.reads, p.reading} {
		for _, r := range list {
			m.emit(Answer{r.Op, ErrDeposed})
		}
	}
	for _, w := range p.queue {
		m.emit(Answer{w.Op, ErrNotPrimary})
	}
}

// consider decides once enough members have promised: a write that was acknowledged is at one of them at least.
func (p *primary) consider() {
	m := p.m
	if p.phase != asking || m.synced < p.stood {
		return
	}
	missing, best, newest := 0, Stand{}, Position{}
	lead := Name("")
	for _, n := range m.roster.InSync {
		s := p.stands(n)
		if !s.Knows || s.Epoch != p.epoch {
			missing++
			continue
		}
		if newest.Before(s.Last) {
			newest = s.Last
		}
		if s.Whole && (lead == "" || best.Last.Before(s.Last) || n == m.set.Self && !s.Last.Before(best.Last)) {
			lead, best = n, s
		}
	}
	switch {
	case missing >= m.roster.Quorum() || lead == "" || best.Last.Before(newest):
	case lead != m.set.Self:
		if m.now >= p.proposed {
			p.proposed = m.now + m.set.Retry
			m.emit(Propose{Command{Epoch: p.epoch, Primary: lead}})
		}
	default:
		p.phase = opening
		p.first = m.last.Sequence + 1
		p.sequence(Write{})
		for _, peer := range p.peers {
			peer.retry = 0
			peer.goOn()
		}
	}
}

// stands tells what a member has answered.
func (p *primary) stands(n Name) Stand {
	if n == p.m.set.Self {
		return p.m.standing(p.epoch)
	}
	for _, peer := range p.peers {
		if peer.name == n {
			return peer.stand
		}
	}
	return Stand{}
}

// standing is the member's answer to Ask. Whose image is being filled has nothing to offer, but knows how far a log must reach.
func (m *Member) standing(epoch uint64) Stand {
	if m.whole() {
		return Stand{epoch, true, true, m.last}
	}
	return Stand{epoch, false, m.state.Filled, m.state.Floor}
}

// floor is the newest record that may have been acknowledged: all before the epoch's first, and what has been since.
func (p *primary) floor() Position {
	s := max(p.commit, p.first-1)
	era, _ := p.m.state.History.era(s)
	return Position{era.Epoch, s}
}
