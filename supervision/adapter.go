package supervision

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// StrategyConfig is what a rail actor's strategy works with.
type StrategyConfig struct {
	// Policy decides; required.
	Policy Policy
	// Now is the time since the node's start; required.
	Now func() time.Duration
	// Record is the rail's history; nil: a new one.
	Record *Record
	// Known gives what can be said of a child that failed with something else than a *Failure:
	// rail, addresses and generation. Nil: nothing can.
	Known func(child *actor.PID) Failure
	// Reachable tells whether the peer is up on another rail. Nil: it is not.
	Reachable func() bool
	// Judge carries the directive out, in the supervisor's goroutine. The child stays suspended
	// until it is restarted or stopped. Nil: Perform does.
	Judge func(supervisor actor.Supervisor, child *actor.PID, f Failure, d Directive)
}

// Strategy lets a Policy judge the failures of a supervisor's children: an
// actor.SupervisorStrategy.
//
// Owner: the supervising actor; HandleFailure runs in its goroutine.
type Strategy struct{ config StrategyConfig }

var _ actor.SupervisorStrategy = (*Strategy)(nil)

// ErrStrategy: a StrategyConfig that lacks something.
var ErrStrategy = errors.New("a supervision strategy needs both Policy and Now")

// NewStrategy checks the configuration; the error is ErrStrategy.
func NewStrategy(c StrategyConfig) (*Strategy, error) {
	if c.Policy == nil || c.Now == nil {
		return nil, ErrStrategy
	}
	if c.Record == nil {
		c.Record = new(Record)
	}
	return &Strategy{config: c}, nil
}

// Record is the history that the strategy judges by; the supervisor tells it of each life that
// begins.
func (s *Strategy) Record() *Record { return s.config.Record }

// HandleFailure implements actor.SupervisorStrategy: it classifies, decides, publishes one
// actor.SupervisorEvent, and has the directive carried out.
func (s *Strategy) HandleFailure(system *actor.ActorSystem, supervisor actor.Supervisor,
	child *actor.PID, _ *actor.RestartStatistics, reason, message any) {
	now := s.config.Now()
	f := s.classify(child, reason, now)
	h := s.config.Record.Failed(f, now)
	h.Reachable = s.config.Reachable != nil && s.config.Reachable()
	d := sane(s.config.Policy.Decide(h, f, now))
	system.EventStream.Publish(&actor.SupervisorEvent{
		Child: child, Reason: reason, Directive: d.Action.directive(),
	})
	switch {
	case s.config.Judge != nil:
		s.config.Judge(supervisor, child, f, d)
	case d.Action == Escalate:
		// As Perform would, but with what protoactor gave for it.
		supervisor.EscalateFailure(reason, message)
	default:
		Perform(supervisor, child, f, d)
	}
}

func (s *Strategy) classify(child *actor.PID, reason any, now time.Duration) Failure {
	known := Failure{}
	if s.config.Known != nil {
		known = s.config.Known(child)
	}
	known.At = now
	return Classify(reason, known)
}

// sane keeps a user's policy from asking for what nobody can do. Giving the rail up is the safe
// reading of an action that does not exist.
func sane(d Directive) Directive {
	if d.Action > Escalate {
		return Directive{Action: Stop, Reason: "the policy gave an unknown answer: " + d.Action.String()}
	}
	d.Delay = max(0, d.Delay)
	return d
}

// Perform carries a directive out as well as a supervisor without a state of its own can: a delayed
// restart comes from a timer, and finds nobody if the child has stopped by then; Reroute and Stop
// stop the child; Escalate makes f the supervisor's own failure, for its parent to judge.
func Perform(supervisor actor.Supervisor, child *actor.PID, f Failure, d Directive) {
	switch d.Action {
	case Restart:
		if d.Delay <= 0 {
			supervisor.RestartChildren(child)
			return
		}
		time.AfterFunc(d.Delay, func() { supervisor.RestartChildren(child) })
	case Reroute, Stop:
		supervisor.StopChildren(child)
	case Escalate:
		supervisor.EscalateFailure(&f, nil)
	default:
		Perform(supervisor, child, f, sane(d))
	}
}

// directive is what protoactor's event says of the action.
func (a Action) directive() actor.Directive {
	switch a {
	case Restart:
		return actor.RestartDirective
	case Reroute, Stop:
		return actor.StopDirective
	case Escalate:
		return actor.EscalateDirective
	default:
		return actor.StopDirective
	}
}
