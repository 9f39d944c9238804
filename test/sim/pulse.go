package main

import "railyard/rail"

// beat looks at the generation's health, and goes on doing so.
func (c *carrier) beat() {
	if c.dead || c.gen.Fenced() {
		return
	}
	e := c.e
	v := c.gen.Vitals()
	vitals := rail.Vitals{Heard: v.Heard, Answered: v.Answered, OldestPing: v.OldestPing,
		Acked: v.AckedBytes, InFlight: v.InFlight, RTT: v.RoundTrip, Jitter: v.Jitter, Busy: v.Busy}
	a := c.pulse.Assess(e.now(), vitals)
	c.health.look(e.now(), vitals, a)
	if a.SendBeat {
		e.s.Beat(e.now(), c.gen)
	}
	switch {
	case a.Verdict == rail.Unhealthy && !c.suspect:
		c.suspect = true
		e.w.Count.Suspects++
		e.note("rail %d generation %d is suspect: %v", c.r.id, c.gen.ID, a.Cause)
		e.s.Suspect(e.now(), c.gen, a.Cause)
	case a.Verdict == rail.Healthy && c.suspect:
		c.suspect = false
		e.note("rail %d generation %d is trusted again", c.r.id, c.gen.ID)
		e.s.Trust(e.now(), c.gen)
	}
	e.pump()
	if c.dead {
		return
	}
	if c.suspect {
		c.r.look()
	}
	e.node.after(a.Next-e.now(), "pulse", c.beat)
}
