package main

import (
	"railyard/endpoint/session"
	"railyard/wire"
)

// livesCheck knows both ends of every generation: what is settled at one end must have been fenced, for good and with
// nothing in progress, at the other.
type livesCheck struct {
	w     *World
	lives map[lifeKey]*life
}

type lifeKey struct {
	rail wire.RailID
	gen  wire.Generation
}

type life struct {
	gens    [2]*session.Generation // as far as they are attached
	settled [2]bool
}

func (c *livesCheck) of(g *session.Generation) *life {
	k := lifeKey{g.Lane().ID, g.ID}
	l := c.lives[k]
	if l == nil {
		l = &life{}
		c.lives[k] = l
	}
	return l
}

func (c *livesCheck) attached(e *End, g *session.Generation) {
	l := c.of(g)
	if l.gens[e.side] != nil {
		c.w.violate("%s attached generation %d of rail %d twice", e, g.ID, g.Lane().ID)
	}
	if l.settled[1-e.side] {
		c.w.violate("%s attached generation %d of rail %d, which its peer has settled", e, g.ID, g.Lane().ID)
	}
	l.gens[e.side] = g
}

// settled: from now on the end sends the rest elsewhere.
func (c *livesCheck) settled(e *End, g *session.Generation) {
	l := c.of(g)
	other := 1 - e.side
	if g := l.gens[other]; g != nil && !g.IsQuiet() {
		c.w.violate("%s settled generation %d of rail %d while its peer may still apply of it", e, g.ID, g.Lane().ID)
	}
	l.settled[e.side] = true
}

// up: nothing older of the rail is open at this end.
func (c *livesCheck) up(e *End, g *session.Generation) {
	for k, l := range c.lives {
		if k.rail == g.Lane().ID && k.gen < g.ID && l.gens[e.side] != nil && !l.settled[e.side] {
			c.w.violate("%s took generation %d of rail %d up before %d was settled", e, g.ID, k.rail, k.gen)
		}
	}
}
