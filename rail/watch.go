package rail

import (
	"time"

	"go.uber.org/zap"
)

// overGrace is how long a generation that the session has ended may wait for the session's Retire, which knows the cause.
const overGrace = 100 * time.Millisecond

// watch is a rail's eye on main's health. It lives from rise to fall.
//
// Owner: the rail actor. Invariant: line is nil exactly while nothing is watched, and then no tick is in force.
type watch struct {
	health *Health
	line   *line
	timer  *time.Timer
	// round tells the tick in force from older ones that are still in the mailbox.
	round uint64
	// cause is set while the lane is suspect.
	cause error
	// over: the session did not know the generation at the last look.
	over bool
}

func (w *watch) start(r *railActor, l *line) {
	w.stop()
	w.health, w.line = NewHealth(r.cfg.Health, r.cfg.Clock()), l
}

func (w *watch) stop() {
	w.round++
	if w.timer != nil {
		w.timer.Stop()
	}
	w.health, w.line, w.timer, w.cause, w.over = nil, nil, nil, nil, false
}

// schedule makes the next tick the one in force.
func (r *railActor) schedule(d time.Duration) {
	r.watch.round++
	if r.watch.timer != nil {
		r.watch.timer.Stop()
	}
	r.watch.timer = r.after(d, &tick{life: r, round: r.watch.round})
}

// look asks the health machine about main, and does what it says.
func (r *railActor) look() {
	l := r.watch.line
	if l == nil || l.over() {
		return
	}
	v, known := r.cfg.Joiner.Vitals(r.cfg.ID, l.generation)
	if !known {
		if r.watch.over {
			r.fail(r.main, errOver)
			return
		}
		r.watch.over = true
		r.schedule(overGrace)
		return
	}
	r.watch.over = false
	now := r.cfg.Clock()
	a := r.watch.health.Assess(now, v)
	r.schedule(a.Next - now)
	if a.SendBeat {
		r.cfg.Joiner.Beat(r.cfg.ID, l.generation)
	}
	switch {
	case a.Verdict == Unhealthy && r.state != Suspect:
		r.suspect(l, a.Cause)
	case a.Verdict == Healthy && r.state == Suspect:
		r.trust(l)
	}
}

// probe makes the next beat due now.
func (r *railActor) probe() {
	if r.watch.line != nil {
		r.watch.health.Urge()
		r.look()
	}
}

func (r *railActor) suspect(l *line, cause error) {
	r.watch.cause = cause
	r.enter(Suspect, cause)
	r.publish(Event{Kind: RailSuspect, Generation: l.generation, Cause: cause})
	r.cfg.Joiner.Suspect(r.cfg.ID, l.generation, cause)
}

// trust takes a suspicion back; the candidate that it called for goes.
func (r *railActor) trust(l *line) {
	r.watch.cause = nil
	state := Up
	if r.ramp.Weight(r.cfg.Clock()) < 1 {
		state = Probation
	}
	r.enter(state, nil)
	r.publish(Event{Kind: RailTrusted, Generation: l.generation})
	if r.beside != nil && r.beside.accepted == nil && !r.beside.live {
		r.log.Debug("candidate dropped", zap.Uint64("generation", uint64(r.beside.line.Load().generation)))
		beside := r.beside
		r.beside = nil
		r.drop(beside)
	}
	r.cfg.Joiner.Trust(r.cfg.ID, l.generation)
}
