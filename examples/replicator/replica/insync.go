package replica

import "slices"

// caughtUp is how many records a member may be behind when it is taken in: that is no matter of safety, only of how soon it helps.
const caughtUp = 256

// rosterChanged looks which members count.
func (p *primary) rosterChanged() {
	r := &p.m.roster
	for _, x := range p.peers {
		if x.dropped && r.Has(x.name) && r.Version > x.droppedVersion {
			x.dropped = false
		}
	}
	p.proposed = 0
	p.consider()
	p.advance()
	p.settle()
}

// drop stops counting on a member, if all that is acknowledged is at a quorum of the others.
func (p *primary) drop(x *peer) {
	if p.phase != open || !x.inSync() {
		return
	}
	n := 0
	for _, name := range p.m.roster.InSync {
		stays := func(o *peer) bool { return o.name == name && o != x && !o.dropped }
		if name == p.m.set.Self || slices.ContainsFunc(p.peers, stays) {
			n++
		}
	}
	commit, hard := p.reached(x)
	if n < p.m.roster.Quorum() || commit < p.commit || hard < p.hard {
		return
	}
	x.dropped, x.droppedVersion = true, p.m.roster.Version
	p.proposed = 0
}

// settle drops who does not get on, begins with those that have to be filled, and has the roster say what is so.
func (p *primary) settle() {
	if p.phase < opening {
		return
	}
	m := p.m
	for _, x := range p.peers {
		if x.stalled() && x.stage < running || x.stage == planning {
			p.drop(x)
		}
		if x.stage != planning {
			continue
		}
		if x.waitingSince == 0 {
			x.waitingSince = m.now
		}
		// Out of the set first: while it is filled nobody can take over with it. Where it is needed, or cannot be left out, it
		// is filled all the same.
		if !m.roster.Has(x.name) || p.phase == opening || m.now-x.waitingSince > m.set.Stall && !x.dropped {
			x.begin()
		}
	}
	p.propose()
}

// propose asks for the in-sync set that is so, again and again until the roster has changed.
func (p *primary) propose() {
	m := p.m
	if p.phase != open || m.now < p.proposed {
		return
	}
	set := []Name{m.set.Self}
	for _, x := range p.peers {
		joins := x.stage == running && x.whole && !x.filling && x.durable+caughtUp >= m.last.Sequence && x.durable > 0
		if x.inSync() || joins && !m.roster.Has(x.name) {
			set = append(set, x.name)
		}
	}
	slices.Sort(set)
	if slices.Equal(set, m.roster.InSync) {
		return
	}
	p.proposed = m.now + m.set.Retry
	m.emit(Propose{Command{Epoch: m.roster.Epoch, Version: m.roster.Version, InSync: set}})
}
