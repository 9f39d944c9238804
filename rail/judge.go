package rail

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/supervision"
)

// This file: the rail as its transports' supervisor.

var _ actor.SupervisorStrategy = (*railActor)(nil)

// HandleFailure implements actor.SupervisorStrategy: each failure of a transport comes here, once.
func (r *railActor) HandleFailure(system *actor.ActorSystem, sup actor.Supervisor, child *actor.PID,
	stats *actor.RestartStatistics, reason, message any) {
	r.sup = sup
	r.judged = r.find(child)
	strategy := r.judges[0]
	if r.judged != r.main {
		// A candidate's failures do not end main's life: they have a record of their own.
		strategy = r.judges[1]
	}
	r.catchUp()
	strategy.HandleFailure(system, sup, child, stats, reason, message)
	r.judged = nil
}

// catchUp takes up that main's connection had begun to carry work, where a failure has overtaken that news: supervision's
// messages pass all others. So each generation that took work has both its RailUp and its RailDown.
func (r *railActor) catchUp() {
	c := r.main
	if r.stopping || c == nil || c != r.judged || c.live || !c.line.Load().hasRun() {
		return
	}
	c.live = true
	r.rise()
}

// arrangeSupervision makes the two strategies over the records that outlive this actor's restarts.
func (r *railActor) arrangeSupervision() {
	for i, record := range []*supervision.Record{&r.mem.record, &r.mem.trials} {
		strategy, err := supervision.NewStrategy(supervision.StrategyConfig{
			Policy: supervision.PolicyFunc(r.decide),
			Now:    r.cfg.Clock,
			Record: record,
			Known: func(*actor.PID) supervision.Failure {
				if r.judged == nil {
					return supervision.Failure{Local: r.cfg.Local, Remote: r.cfg.Remote}
				}
				return r.judged.line.Load().known()
			},
			Reachable: func() bool { return r.mem.reachable },
			Judge:     r.judge,
		})
		if err != nil {
			// Validate has seen to it that Policy and Clock are there.
			panic(err)
		}
		r.judges[i] = strategy
	}
}

func (r *railActor) find(child *actor.PID) *carrier {
	for _, c := range append([]*carrier{r.main, r.beside}, r.leaving...) {
		if c != nil && c.pid.Equal(child) {
			return c
		}
	}
	return nil
}

// decide asks the policy, and turns restarts that this rail cannot or need not do into reroutes, so that the
// supervisor's event tells what really happens.
func (r *railActor) decide(h supervision.History, f supervision.Failure, now time.Duration) supervision.Directive {
	c := r.judged
	if c == nil || r.stopping {
		return supervision.Directive{Action: supervision.Stop, Reason: "the transport was being stopped"}
	}
	d := r.cfg.Policy.Decide(h, f, now)
	if d.Action != supervision.Restart {
		return d
	}
	instead := ""
	switch {
	case c == r.main && r.beside != nil:
		instead = "another connection takes its place"
	case c != r.main && c != r.beside:
		instead = "a newer connection has taken its place"
	case !r.cfg.Dials:
		instead = "the peer dials this rail"
	case !c.live:
		d.Delay = max(d.Delay, redialMin)
	}
	if instead != "" {
		return supervision.Directive{Action: supervision.Reroute, Reason: d.Reason + "; " + instead}
	}
	return d
}

// judge carries out what was decided about a transport's failure.
func (r *railActor) judge(sup actor.Supervisor, child *actor.PID, f supervision.Failure, d supervision.Directive) {
	c := r.judged
	if c == nil || r.stopping {
		sup.StopChildren(child)
		return
	}
	l := c.line.Load()
	l.end(&f)
	carried := c.live
	c.live = false
	r.mem.restarts++
	r.mem.last = &f
	r.report(c, f, d)
	if c == r.main && carried {
		r.fall(l, f)
	}
	r.tell(&Broke{Rail: r.cfg.ID, Generation: l.generation, Carried: carried, Failure: f, Directive: d})
	r.carryOut(c, f, d)
}

// report logs a failure: loudly where a connection was lost or a bug shows, quietly where a dial failed once more.
func (r *railActor) report(c *carrier, f supervision.Failure, d supervision.Directive) {
	fields := []zap.Field{
		zap.Uint64("generation", uint64(c.line.Load().generation)), zap.Stringer("class", f.Class),
		zap.Stringer("action", d.Action), zap.Duration("delay", d.Delay), zap.String("why", d.Reason),
		zap.Error(f.Err),
	}
	if f.Class == supervision.Bug {
		r.log.Error("bug in a transport", append(fields, zap.Stack("stack"))...)
		return
	}
	r.log.Debug("transport failed", fields...)
}

// fall ends main's life as the rail's generation.
func (r *railActor) fall(l *line, f supervision.Failure) {
	r.watch.stop()
	if r.settling != nil {
		r.settling.Stop()
	}
	r.mem.downAt = r.cfg.Clock()
	r.enter(Down, f.Err)
	r.publish(Event{Kind: RailDown, Generation: l.generation, Cause: &f, Class: f.Class, InFlight: l.loss()})
}

// carryOut does what the directive says with a failed carrier, which is suspended.
func (r *railActor) carryOut(c *carrier, f supervision.Failure, d supervision.Directive) {
	switch d.Action {
	case supervision.Restart:
		r.wait(c, d.Delay)
	case supervision.Reroute:
		r.set(c)
	case supervision.Escalate:
		r.remove(c)
		r.tell(&Escalated{Rail: r.cfg.ID, Failure: f})
	case supervision.Stop:
		fallthrough
	default:
		// An action that a user's policy invented: the safe reading is to give the rail up.
		r.giveUp(c, f)
	}
}

// set puts a failed carrier aside: for the one that takes its place, for the peer's next dial, or for a hint.
func (r *railActor) set(c *carrier) {
	if c == r.main && r.beside == nil && r.cfg.Dials {
		c.halt()
		c.waiting, c.held = true, true
		return
	}
	promote := c == r.main && r.beside != nil
	r.remove(c)
	if promote {
		r.promote()
	}
}

// giveUp: the rail is over for the endpoint's life, unless it was only a candidate that failed.
func (r *railActor) giveUp(c *carrier, f supervision.Failure) {
	wasMain := c == r.main
	r.remove(c)
	if !wasMain {
		return
	}
	if r.beside != nil {
		beside := r.beside
		r.beside = nil
		r.drop(beside)
	}
	r.mem.gaveUp = true
	r.log.Warn("rail given up by the policy", zap.Error(f.Err))
	r.publish(Event{Kind: RailGaveUp, Generation: c.line.Load().generation, Cause: &f, Class: f.Class})
	r.tell(&GaveUp{Rail: r.cfg.ID, Failure: f})
}

// remove stops a failed carrier and forgets it. A stopped child must never be restarted: it would rise as a ghost.
func (r *railActor) remove(c *carrier) {
	c.halt()
	r.sup.StopChildren(c.pid)
	switch c {
	case r.main:
		r.main = nil
	case r.beside:
		r.beside = nil
	default:
		for i, leaving := range r.leaving {
			if leaving == c {
				r.leaving = append(r.leaving[:i], r.leaving[i+1:]...)
				break
			}
		}
	}
}
