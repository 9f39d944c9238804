package rail

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/supervision"
	"railyard/wire"
)

// memory is what a rail actor keeps over its own restart after a bug.
//
// Owner: the rail actor's turn.
type memory struct {
	// record judges the rail's own lives, trials those of candidates beside a silent one.
	record, trials supervision.Record
	// wanted: Connect has come; a restarted actor dials at once.
	wanted bool
	// gaveUp: the policy stopped the rail.
	gaveUp bool
	// everUp and downAt tell a rejoin and its outage. restarts counts lost generations and failed dials.
	everUp   bool
	downAt   time.Duration
	restarts uint64
	// reachable: the peer is up on another rail.
	reachable bool
	// reported: RailNeverUp has been published.
	reported bool
	// last is the newest failure, for Status.
	last error
	// renamed is the configuration in force after a rename; nil: as it was made.
	renamed *Config
}

// carrier is one transport child and the line of its present life.
//
// Owner: the rail actor, but for line, which the transport loads when a life of it starts, and accepted, written
// before the message that starts that life.
type carrier struct {
	pid  *actor.PID
	line atomic.Pointer[line]
	// accepted is the link of a connection that the peer dialed; nil: this carrier dials.
	accepted Link
	// began is when its present life did.
	began time.Duration
	// live: attached, and carries work.
	live bool
	// waiting: failed, its line has ended, and it stays suspended until its next life: at due, or when
	// held, upon a hint or Connect only.
	waiting, held bool
	due           time.Duration
	timer         *time.Timer
	round         uint64
}

// railActor is one path to one peer. See the package comment for its states.
//
// Invariant: main carries the rail's work or is to carry it next; beside is a candidate for main's place, there only
// while main is and does not wait (who fails with a candidate beside it goes). No other carrier is ever restarted.
// Both are nil where the rail waits for the peer to dial.
//
// Invariant: state is Up, Suspect or Probation exactly while main is live.
type railActor struct {
	cfg  *Config
	mem  *memory
	log  *zap.Logger
	self *actor.PID
	// parent is the endpoint; system sends from timers and from the supervisor's turn.
	parent *actor.PID
	system *actor.ActorSystem

	state        State
	since        time.Duration
	main, beside *carrier
	// leaving are carriers told to fail, whose failure has not come yet.
	leaving []*carrier
	watch   watch
	ramp    Ramp
	// judges are the strategies for main and for others; judged is the child whose failure is in hand.
	judges  [2]*supervision.Strategy
	judged  *carrier
	sup     actor.Supervisor
	overdue *time.Timer
	// settling ends probation; settleRound tells the timer in force from older ones.
	settling    *time.Timer
	settleRound uint64
	stopping    bool
}

func newRailActor(cfg *Config, mem *memory) *railActor {
	if mem.renamed != nil {
		cfg = mem.renamed
	}
	r := &railActor{cfg: cfg, mem: mem}
	r.log = r.logger()
	r.state = Connecting
	if mem.everUp {
		r.state = Down
	}
	return r
}

func (r *railActor) logger() *zap.Logger {
	return r.cfg.Logger.With(zap.String("peer", r.cfg.Peer), zap.Uint16("rail", uint16(r.cfg.ID)),
		zap.String("local", r.cfg.Local), zap.String("remote", r.cfg.Remote))
}

// rename makes the rail one of other devices, from its next connection on. Lines that are there keep what they were made of.
func (r *railActor) rename(local, remote string) {
	cfg := *r.cfg
	cfg.Local, cfg.Remote = local, remote
	r.cfg, r.mem.renamed = &cfg, &cfg
	r.log = r.logger()
}

// Receive implements actor.Actor.
func (r *railActor) Receive(ctx actor.Context) {
	if r.stopping && !lifecycle(ctx.Message()) {
		r.refuse(ctx.Message())
		return
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		r.started(ctx)
	case *actor.Stopping:
		r.stop(ErrStopped)
	case *actor.Restarting:
		r.stop(errRestarted)
	case *actor.Stopped, *actor.Terminated:
	case *Connect:
		r.mem.wanted = true
		r.connect(ctx)
	case *Accepted:
		r.accept(ctx, m)
	case *Retire:
		r.retire(m)
	case *DialBeside:
		r.dialBeside(ctx)
	case *LinkHint:
		r.hint(ctx, m.Up)
	case *Reachable:
		r.reachable(m.Yes)
	case *Probe:
		r.probe()
	case *Describe:
		ctx.Respond(r.status())
	case *carrying:
		r.carrying(m.line)
	case *withdrawn:
		r.withdrawn(m.line)
	default:
		r.timers(ctx, m)
	}
}

// timers takes the messages that the rail's own timers send. Those of a life before a restart are void.
func (r *railActor) timers(ctx actor.Context, message any) {
	switch m := message.(type) {
	case *tick:
		if m.life == r && m.round == r.watch.round {
			r.look()
		}
	case *again:
		if m.life == r && m.round == m.carrier.round {
			r.retry(m.carrier)
		}
	case *settled:
		if m.life == r && m.round == r.settleRound && r.state == Probation {
			r.enter(Up, nil)
			r.publish(Event{Kind: RailUp, Generation: r.main.line.Load().generation})
		}
	case *overdue:
		if m.life == r {
			r.reportOverdue()
		}
	default:
		r.log.Warn("rail does not know this message: is it sent as a pointer?",
			zap.String("type", fmt.Sprintf("%T", ctx.Message())))
	}
}

func lifecycle(message any) bool {
	switch message.(type) {
	case *actor.Stopping, *actor.Restarting, *actor.Stopped, *actor.Terminated, *actor.Started:
		return true
	}
	return false
}

func (r *railActor) started(ctx actor.Context) {
	r.self, r.parent, r.system = ctx.Self(), ctx.Parent(), ctx.ActorSystem()
	r.since = r.cfg.Clock()
	r.arrangeSupervision()
	if !r.mem.everUp && !r.mem.reported {
		r.overdue = r.after(r.cfg.ReportAfter, &overdue{life: r})
	}
	if r.mem.wanted {
		r.connect(ctx)
	}
}

// after sends message to the rail itself when d has gone by.
func (r *railActor) after(d time.Duration, message any) *time.Timer {
	root, self := r.system.Root, r.self
	return time.AfterFunc(max(d, 0), func() { root.Send(self, message) })
}

// stop ends all lines before the children are stopped, so that no connection outlives the rail's decision to end.
func (r *railActor) stop(cause error) {
	r.stopping = true
	r.watch.stop()
	for _, t := range []*time.Timer{r.overdue, r.settling} {
		if t != nil {
			t.Stop()
		}
	}
	carried := r.main != nil && r.main.live
	for _, c := range append([]*carrier{r.main, r.beside}, r.leaving...) {
		if c != nil {
			c.halt()
			l := c.line.Load()
			l.end(l.failure(cause))
		}
	}
	if carried {
		l := r.main.line.Load()
		r.mem.downAt, r.mem.last = r.cfg.Clock(), cause
		r.publish(Event{Kind: RailDown, Generation: l.generation, Cause: l.failure(cause), Class: Classify(cause),
			InFlight: l.loss()})
	}
}

// refuse takes care of what a rail that is stopping is still given.
func (r *railActor) refuse(message any) {
	if m, ok := message.(*Accepted); ok {
		l := acceptedLine(r.cfg, m)
		l.end(l.failure(ErrStopped))
	}
}

// halt stops the carrier's timer and makes what it has sent already void.
func (c *carrier) halt() {
	c.round++
	if c.timer != nil {
		c.timer.Stop()
	}
}

// enter changes the state. cause is for the log: why the rail is not up.
func (r *railActor) enter(s State, cause error) {
	if s == r.state {
		return
	}
	fields := []zap.Field{zap.Stringer("from", r.state), zap.Stringer("to", s)}
	if r.main != nil {
		fields = append(fields, zap.Uint64("generation", uint64(r.main.line.Load().generation)))
	}
	if cause != nil {
		fields = append(fields, zap.Error(cause))
	}
	r.log.Info("rail "+s.String(), fields...)
	r.state, r.since = s, r.cfg.Clock()
}

// publish fills in which rail it is.
func (r *railActor) publish(e Event) {
	e.Peer, e.Rail, e.Local, e.Remote = r.cfg.Peer, r.cfg.ID, r.cfg.Local, r.cfg.Remote
	r.cfg.Events.Publish(e)
}

func (r *railActor) tell(message any) {
	if r.parent != nil {
		r.system.Root.Send(r.parent, message)
	}
}

// reportOverdue says once that a configured rail has not come up. It goes on being tried.
func (r *railActor) reportOverdue() {
	if r.mem.everUp || r.mem.reported {
		return
	}
	r.mem.reported = true
	cause := r.mem.last
	if cause == nil {
		cause = errNobodyDialed
		if r.cfg.Dials {
			cause = errNotAsked
		}
	}
	r.log.Warn("rail has not come up so far; trying on", zap.Error(cause))
	r.publish(Event{Kind: RailNeverUp, Cause: cause, Class: Classify(cause)})
}

// status is what the rail itself knows; the session adds rates.
func (r *railActor) status() *Status {
	now := r.cfg.Clock()
	s := &Status{
		Local: r.cfg.Local, Remote: r.cfg.Remote, ID: r.cfg.ID, Peer: r.cfg.Peer, State: r.state,
		Restarts: r.mem.restarts, Since: now - r.since,
	}
	if r.cfg.Kind != nil {
		s.Kind = r.cfg.Kind.Name()
	}
	if c := r.main; c != nil {
		s.Generation = uint64(c.line.Load().generation)
		if v, ok := r.cfg.Joiner.Vitals(r.cfg.ID, wire.Generation(s.Generation)); ok && c.live {
			s.BytesInFlight, s.RoundTrip = v.InFlight, v.RTT
		}
	}
	switch r.state {
	case Up, Probation:
		s.Weight = r.ramp.Weight(now)
	case Suspect:
		s.Reason = fmt.Sprint(r.watch.cause)
	case Connecting, Down:
		if r.mem.last != nil {
			s.Reason = r.mem.last.Error()
		}
	}
	return s
}
