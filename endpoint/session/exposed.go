package session

import (
	"errors"
	"maps"
	"slices"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// This file: the target's half of one-sided generations. A region is registered with the card when the peer has shown its
// token, for one generation; it stays so until the region is revoked, which deregisters before it returns, or until the
// generation is quiet.
//
// Invariant: no key is told of which another region of a generation that is not drained was told the same: a write by the old
// one that is still under way would land in the new one (rule 23).

// Bounds of what one generation exposes.
const (
	maxMapped = 4 << 10  // regions that are registered for it at one time
	maxTold   = 16 << 10 // keys told in its life; then the next generation begins
	maxTries  = 8        // registrations for one question
)

// ErrKeysUsed is why a generation ends on which as many keys were told as are remembered.
var ErrKeysUsed = errors.New("session: this connection of the rail has told as many remote keys as it remembers")

// exposed is one region of ours that the peer's card may write to.
type exposed struct {
	ask     uint64
	pending bool
	tries   int
	mapping *rma.Mapping
	reply   wire.Mapped
}

// Registration is what a region's registration with the card came to.
type Registration struct {
	Region *rma.Region
	// Mapping is from Region.Map; nil: Err says why there is none.
	Mapping *rma.Mapping
	// Address and Key are what a peer's card says to reach the region's first byte.
	Address uint64
	Key     uint32
	Err     error
}

// live tells whether the region is registered still, and may be written to.
func (e *exposed) live() bool {
	r := e.mapping.Region()
	return r != nil && !r.Revoked()
}

// mapIn is the peer's question for the key of one of our regions.
func (g *Generation) mapIn(f wire.Map) error {
	s, c := g.s, g.card
	if c == nil {
		return protocolError("a question for a remote key on a stream")
	}
	if g.fenced {
		return nil
	}
	region, code := s.regions.Check(rma.Claim{Region: f.Region, Token: f.Token, Want: rma.RemoteWrite})
	if code != wire.CodeOK {
		g.say(control{mapped: &wire.Mapped{Ask: f.Ask, Code: code}})
		return nil
	}
	if e := c.exposed[f.Region]; e != nil {
		if e.pending {
			return protocolError("a second question for the key of region %d, before the first is answered", f.Region)
		}
		e.reply.Ask = f.Ask
		again := e.reply
		g.say(control{mapped: &again})
		return nil
	}
	if c.pending >= maxAsks {
		return protocolError("more than %d open questions for keys", maxAsks)
	}
	switch c.room() {
	case wire.CodeOK:
	case wire.CodeLimit:
		g.say(control{mapped: &wire.Mapped{Ask: f.Ask, Code: wire.CodeLimit}})
		return nil
	default:
		s.fence(g, ErrKeysUsed)
		return nil
	}
	c.pending++
	c.exposed[f.Region] = &exposed{ask: f.Ask, pending: true}
	s.effect(Effect{Kind: MapWanted, Gen: g, Region: region})
	return nil
}

// room tells whether one more region may be exposed: CodeLimit, not now; CodeInternal, not in this generation's life.
func (c *card) room() wire.Code {
	if len(c.exposed) < c.sweepAt {
		return wire.CodeOK
	}
	live := 0
	for _, e := range c.exposed {
		if e.pending || e.live() {
			live++
		}
	}
	switch {
	case live >= maxMapped:
		return wire.CodeLimit
	case len(c.exposed) >= maxTold:
		return wire.CodeInternal
	}
	c.sweepAt = min(len(c.exposed)+maxMapped-live, maxTold)
	return wire.CodeOK
}

// Mapped answers a MapWanted. True: the peer may still write by this very key, which was another region's. Release the mapping at
// once, have the card spend the key on memory of its own until Gen is quiet, and register the region once more.
func (g *Generation) Mapped(now time.Duration, r Registration) (again bool) {
	s, c := g.s, g.card
	s.now = now
	id := r.Region.Key().Region()
	e := c.exposed[id]
	if e == nil || !e.pending || g.fenced {
		s.unmap(r.Mapping)
		return false
	}
	reply := wire.Mapped{Ask: e.ask, Key: r.Key, Address: r.Address, Length: r.Region.Len()}
	switch {
	case errors.Is(r.Err, rma.ErrRevoked):
		reply = wire.Mapped{Ask: e.ask, Code: wire.CodeRevoked}
	case r.Err != nil:
		reply = wire.Mapped{Ask: e.ask, Code: wire.CodeInternal}
	case s.told(r.Key):
		if e.tries++; e.tries < maxTries {
			return true
		}
		s.unmap(r.Mapping)
		reply = wire.Mapped{Ask: e.ask, Code: wire.CodeLimit}
	}
	c.pending--
	if reply.Code != wire.CodeOK {
		delete(c.exposed, id)
	} else {
		*e = exposed{mapping: r.Mapping, reply: reply}
		c.keys[r.Key] = id
	}
	g.say(control{mapped: &reply})
	return false
}

// told tells whether the peer may hold the key for something else, on any generation whose queue pair lives.
func (s *Session) told(key uint32) bool {
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if g.card == nil || g.card.drained {
				continue
			}
			if _, told := g.card.keys[key]; told {
				return true
			}
		}
	}
	return false
}

// unmap has the owner release a mapping outside of the lock: that may take the card a while.
func (s *Session) unmap(m *rma.Mapping) {
	if m != nil {
		s.effect(Effect{Kind: Unmap, Mapping: m})
	}
}

// conceal has everything released that the generation has exposed: its queue pair is destroyed.
func (c *card) conceal(s *Session) {
	for _, id := range slices.Sorted(maps.Keys(c.exposed)) {
		if m := c.exposed[id].mapping; m != nil && m.Region() != nil {
			s.unmap(m)
		}
	}
	c.exposed, c.keys, c.pending = nil, nil, 0
}

// placedIn counts a chunk whose bytes the card has written.
func (g *Generation) placedIn(h wire.Header, head []byte) error {
	s := g.s
	f, err := wire.ParsePlaced(h, head)
	if err != nil {
		return broken(err)
	}
	if g.card == nil {
		return protocolError("a place on a stream")
	}
	e := g.card.exposed[f.Region]
	if e == nil || e.pending {
		return protocolError("a place in region %d, of which no key was told", f.Region)
	}
	l := landing{kind: h.Kind, size: int(f.Size), id: f.Op, notify: f.Notify, total: f.Total}
	if f.Notify {
		if err := s.trackable(f.Op); err != nil {
			return err
		}
	}
	if r := e.mapping.Region(); r == nil || r.Revoked() {
		l.code = wire.CodeRevoked
	} else if _, ok := r.Slice(f.Base, f.Total); !ok {
		l.code = wire.CodeBounds
	}
	g.land = l
	g.landed()
	return nil
}
