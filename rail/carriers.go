package rail

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/wire"
)

// This file: which carrier a rail has, and how one takes another's place.

const (
	// rejoinMax is the longest wait for the next try while the peer is reachable on another rail.
	rejoinMax = time.Second
	// renewAfter: a dial older than this when the card's link comes up was sent into the void.
	renewAfter = 20 * time.Millisecond
	// redialMin keeps a policy that always says "at once" from spinning over a dial that fails at once.
	redialMin = time.Millisecond
)

// spawn makes a transport for a line. accepted is nil where it is to dial.
func (r *railActor) spawn(ctx actor.Context, l *line, accepted Link) *carrier {
	c := &carrier{accepted: accepted, began: r.cfg.Clock()}
	c.line.Store(l)
	props := actor.PropsFromProducer(
		func() actor.Actor { return &transport{cfg: r.cfg, carrier: c} },
		actor.WithDispatcher(actor.NewSynchronizedDispatcher(throughput)),
	)
	if r.cfg.TransportProps != nil {
		props = r.cfg.TransportProps(props)
	}
	c.pid = ctx.SpawnPrefix(props, "transport-")
	return c
}

func (r *railActor) nextLine() *line {
	return newLine(r.cfg, r.cfg.Joiner.NextGeneration(r.cfg.ID))
}

// connect dials now where the rail has no connection, and is not at it.
func (r *railActor) connect(ctx actor.Context) {
	switch {
	case r.mem.gaveUp || !r.cfg.Dials:
	case r.main == nil:
		r.main = r.spawn(ctx, r.nextLine(), nil)
	case r.main.waiting:
		r.again(r.main)
	}
}

// dialBeside dials a candidate and keeps the silent connection: which of them lives is for Join to find out.
func (r *railActor) dialBeside(ctx actor.Context) {
	switch {
	case r.main == nil || r.main.waiting:
		r.connect(ctx)
	case r.mem.gaveUp || !r.cfg.Dials || !r.main.live:
	case r.beside == nil:
		r.beside = r.spawn(ctx, r.nextLine(), nil)
	case r.beside.waiting:
		r.again(r.beside)
	}
}

// accept takes a connection that the peer dialed. The session has fenced the older ones already.
func (r *railActor) accept(ctx actor.Context, m *Accepted) {
	if (m.Local != "" && m.Local != r.cfg.Local) || (m.Remote != "" && m.Remote != r.cfg.Remote) {
		r.rename(m.Local, m.Remote)
	}
	l := acceptedLine(r.cfg, m)
	if r.mem.gaveUp || m.Generation <= r.newest() {
		l.end(l.failure(ErrSuperseded))
		return
	}
	switch {
	case r.main == nil:
		r.main = r.spawn(ctx, l, m.Link)
	case r.main.waiting:
		r.drop(r.main)
		r.main = r.spawn(ctx, l, m.Link)
	default:
		if r.beside != nil {
			r.leave(r.beside)
		}
		r.beside = r.spawn(ctx, l, m.Link)
	}
}

// newest is the highest generation that carries, or is about to.
func (r *railActor) newest() wire.Generation {
	var g wire.Generation
	for _, c := range []*carrier{r.main, r.beside} {
		if c != nil && (c.live || c.accepted != nil) {
			g = max(g, c.line.Load().generation)
		}
	}
	return g
}

// carrying: a transport has attached its line. It takes main's place if it was a candidate.
func (r *railActor) carrying(l *line) {
	if l.over() {
		return
	}
	switch {
	case r.main != nil && r.main.line.Load() == l:
		r.main.live = true
		r.rise()
	case r.beside != nil && r.beside.line.Load() == l:
		r.beside.live = true
		// The old one's failure, when judged, gives its place to the new one.
		r.fail(r.main, ErrSuperseded)
	}
}

// promote gives the candidate main's place.
func (r *railActor) promote() {
	r.main, r.beside = r.beside, nil
	if r.main.live {
		r.rise()
	}
}

// rise begins main's life as the rail's generation.
func (r *railActor) rise() {
	now := r.cfg.Clock()
	l := r.main.line.Load()
	h := r.mem.record.Up(now)
	joined := &Joined{Rail: r.cfg.ID, Generation: l.generation, Rejoined: r.mem.everUp}
	event := Event{Kind: RailUp, Generation: l.generation}
	state := Up
	r.ramp = Ramp{}
	if joined.Rejoined {
		joined.Outage = now - r.mem.downAt
		event.Kind, event.Outage = RailRejoined, joined.Outage
		if d := r.cfg.Probation(h); d > 0 {
			state, r.ramp = Probation, Ramp{From: now, For: d}
			r.settleRound++
			r.settling = r.after(d, &settled{life: r, round: r.settleRound})
		}
	}
	joined.Ramp = r.ramp
	r.mem.everUp, r.mem.last = true, nil
	if r.overdue != nil {
		r.overdue.Stop()
	}
	r.enter(state, nil)
	r.publish(event)
	r.tell(joined)
	r.watch.start(r, l)
	r.look()
}

// retire: the session has fenced a generation; its transport fails with the session's cause.
func (r *railActor) retire(m *Retire) {
	cause := m.Cause
	if cause == nil {
		cause = errOver
	}
	for _, c := range []*carrier{r.main, r.beside} {
		if c != nil && !c.waiting && c.line.Load().generation == m.Generation {
			c.line.Load().lost(m.InFlight)
			r.fail(c, cause)
			return
		}
	}
	r.log.Debug("retire for a generation that is gone already", zap.Uint64("generation", uint64(m.Generation)))
}

// fail ends a carrier's line at once, and lets its transport fail, so that the failure takes the one way of all.
func (r *railActor) fail(c *carrier, cause error) {
	l := c.line.Load()
	f := l.failure(cause)
	l.end(f)
	r.system.Root.Send(c.pid, &fail{line: l, failure: f})
}

// leave takes the candidate out of the rail, for a newer one; its failure is still to come.
func (r *railActor) leave(c *carrier) {
	r.beside = nil
	if c.waiting {
		r.drop(c)
		return
	}
	r.leaving = append(r.leaving, c)
	r.fail(c, ErrSuperseded)
}

// drop stops a carrier that nobody needs. It is no failure.
func (r *railActor) drop(c *carrier) {
	c.halt()
	l := c.line.Load()
	l.end(l.failure(ErrNotNeeded))
	r.system.Root.Stop(c.pid)
}

// withdrawn: Join found that the older connection has answered.
func (r *railActor) withdrawn(l *line) {
	switch {
	case r.beside != nil && r.beside.line.Load() == l:
		r.drop(r.beside)
		r.beside = nil
	case r.main != nil && r.main.line.Load() == l:
		// The older one has died meanwhile and this one was promoted: it has to dial again.
		r.fail(r.main, ErrNotNeeded)
	}
}

// wait leaves a failed carrier suspended until its next life.
func (r *railActor) wait(c *carrier, delay time.Duration) {
	c.halt()
	c.waiting, c.held = true, false
	c.due = r.cfg.Clock() + delay
	if delay <= 0 {
		r.again(c)
		return
	}
	c.timer = r.after(delay, &again{life: r, carrier: c, round: c.round})
}

// retry: a waiting carrier's time has come. A candidate's place is beside a suspect connection only.
func (r *railActor) retry(c *carrier) {
	if c == r.beside && r.state != Suspect {
		r.beside = nil
		r.drop(c)
		return
	}
	r.again(c)
}

// again begins a waiting carrier's next life, with a new generation.
func (r *railActor) again(c *carrier) {
	if !c.waiting || (c != r.main && c != r.beside) {
		return
	}
	c.halt()
	c.waiting, c.held, c.accepted = false, false, nil
	c.began = r.cfg.Clock()
	c.line.Store(r.nextLine())
	r.sup.RestartChildren(c.pid)
}

// hint: the card's link changed. Up: try at once. Down: suspect it, until something is answered.
func (r *railActor) hint(ctx actor.Context, up bool) {
	c := r.main
	switch {
	case c == nil:
		if up && r.mem.wanted {
			r.connect(ctx)
		}
	case c.live && up:
		r.probe()
	case c.live:
		r.watch.health.Accuse(r.cfg.Clock())
		r.look()
	case up && c.waiting:
		r.again(c)
	case up && c.accepted == nil && r.cfg.Clock()-c.began >= renewAfter:
		r.renew(c)
	}
}

// renew replaces a dial in progress by a new one. Nothing has failed: the card was not there when it began.
func (r *railActor) renew(c *carrier) {
	old := c.line.Load()
	old.end(old.failure(ErrStopped))
	l := r.nextLine()
	c.began = r.cfg.Clock()
	c.line.Store(l)
	r.system.Root.Send(c.pid, &renewed{line: l})
}

// reachable shortens a long wait when another rail has shown that the peer lives.
func (r *railActor) reachable(yes bool) {
	r.mem.reachable = yes
	c := r.main
	if !yes || c == nil || !c.waiting || c.held || c.due-r.cfg.Clock() <= rejoinMax {
		return
	}
	r.wait(c, rejoinMax)
}
