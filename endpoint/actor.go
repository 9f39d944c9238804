package endpoint

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
)

// throughput is how many messages an actor of ours serves in a sender's goroutine before it lets others run.
const throughput = 64

// endpointActor supervises the rails of one epoch and starts its operations.
type endpointActor struct {
	e     *Endpoint
	timer *time.Timer
	// stopping: the actor has been told to stop, or is at it.
	stopping bool
	pairer
}

func newEndpointActor(e *Endpoint) *endpointActor {
	return &endpointActor{e: e, pairer: newPairer()}
}

// Receive implements actor.Actor.
func (a *endpointActor) Receive(ctx actor.Context) {
	e := a.e
	switch m := ctx.Message().(type) {
	case *operation:
		e.served(m)
		a.begin(m)
	case *takeBack:
		e.served(m)
		e.cancel(m.o)
	case *abandon:
		e.served(m)
		e.locked(func(now time.Duration) {
			if e.bug == nil {
				e.s.Abandon(now, &m.o.s)
			}
		})
	case *accepted:
		e.served(m)
		a.accept(ctx, m)
	case *rma.Cancel:
		a.cancelAsked(ctx, m.ID)
	case rma.Cancel:
		a.cancelAsked(ctx, m.ID)
	case *completed:
		e.served(m)
		delete(e.asked, askerOf(m.o.reply, m.o.id))
		m.told = true
		ctx.Send(m.o.reply, &rma.Done{ID: m.o.id, Err: m.err})
	default:
		if id, c, ok := asks(m); ok {
			a.ask(ctx, id, c)
		} else {
			a.facts(ctx, m)
		}
	}
	if !a.stopping && e.starting.Load() == 0 && e.hasEnded() {
		a.stopping = true
		ctx.Stop(ctx.Self())
	}
}

// facts takes what rails, handshakes and timers report.
func (a *endpointActor) facts(ctx actor.Context, message any) {
	e := a.e
	switch m := message.(type) {
	case *actor.Started:
		if e.hasEnded() { // restarted: what is in the mailbox is answered first
			a.stopping = true
			ctx.Send(ctx.Self(), &finish{})
			return
		}
		e.m.warn(e.address)
		ctx.Send(e.m.watcher, &rail.WatchDevices{PID: ctx.Self()})
		a.railsChanged(ctx)
	case *actor.Stopping, *actor.Restarting:
		a.stopping = true
		for _, t := range []*time.Timer{a.timer, a.due, a.doubt} {
			if t != nil {
				t.Stop()
			}
		}
		e.end(fmt.Errorf("the endpoint was stopped: %w", rma.ErrEndpointDown))
	case *open:
		a.ensure(ctx, 0, railPlan{local: m.from.Address, remote: m.address, given: true, kind: e.m.cfg.Kinds[m.from.Kind]})
	case *agreed:
		a.revise(ctx)
	case *yielded:
		a.yield(ctx)
	case *railsChanged:
		a.railsChanged(ctx)
	case *rail.Joined:
		a.joined(m)
	case *rail.Broke:
		a.broke(ctx, m)
	case *rail.GaveUp:
		a.gaveUp(m)
	case *rail.Escalated:
		a.escalated(m)
	case *finish:
		a.stopping = false
	case *peerLeft:
		e.end(fmt.Errorf("node %s has shut down: %w", e.address, join(supervision.ErrGoodbye, rma.ErrEndpointDown)))
	case *peerLeaves:
		a.peerLeaves()
	case *peerRestarted:
		e.end(fmt.Errorf("node %s: %w", e.address, rma.ErrPeerRestarted))
	case *sessionLost:
		e.end(fmt.Errorf("node %s has ended the session: %w", e.address, rma.ErrEndpointDown))
	case *outage:
		a.outage(ctx, m.due)
	case *rail.LinkChanged:
		a.hint(ctx, m)
	default:
		a.deviceNews(ctx, message)
	}
}

// asks gives the operation that a message of an actor asks for.
func asks(message any) (id uint64, c rma.OpConfig, ok bool) {
	switch m := message.(type) {
	case *rma.Put:
		return m.ID, putConfig(m), true
	case rma.Put:
		return m.ID, putConfig(&m), true
	case *rma.Get:
		return m.ID, getConfig(m), true
	case rma.Get:
		return m.ID, getConfig(&m), true
	case *rma.Flush:
		return m.ID, rma.OpConfig{Kind: rma.FlushOp}, true
	case rma.Flush:
		return m.ID, rma.OpConfig{Kind: rma.FlushOp}, true
	}
	return 0, rma.OpConfig{}, false
}

func putConfig(m *rma.Put) rma.OpConfig {
	return rma.OpConfig{Kind: rma.PutOp, Key: m.Key, Offset: m.Offset, Data: m.Data, Options: rma.Apply(m.Options)}
}

func getConfig(m *rma.Get) rma.OpConfig {
	return rma.OpConfig{Kind: rma.GetOp, Key: m.Key, Offset: m.Offset, Data: m.Dst, Options: rma.Apply(m.Options)}
}

// ask starts an operation for an actor; the answer is one rma.Done.
func (a *endpointActor) ask(ctx actor.Context, id uint64, c rma.OpConfig) {
	e, sender := a.e, ctx.Sender()
	if sender == nil {
		e.log.Warn("an operation asked for by a message without a sender: use Request, so that Done finds its way",
			zap.Stringer("kind", c.Kind))
		return
	}
	name := askerOf(sender, id)
	if e.asked[name] != nil {
		ctx.Respond(&rma.Done{ID: id, Err: fmt.Errorf("operation %d of %s is open already: give each open one its own ID", id, name.pid)})
		return
	}
	o, err := e.newOperationSafely(c)
	if err != nil {
		ctx.Respond(&rma.Done{ID: id, Err: &rma.OpError{Op: c.Kind.String(), Err: err}})
		return
	}
	o.reply, o.id = sender, id
	e.asked[name] = o
	e.starting.Add(1) // until its Done is sent
	a.begin(o)
}

// begin hands an operation to the session.
func (a *endpointActor) begin(o *operation) {
	e := a.e
	var idle []*actor.PID
	e.locked(func(now time.Duration) {
		idle = e.working(now)
		if o.reply == nil { // it came by hand
			e.handed--
		}
		e.open.add(o)
		e.s.Start(now, &o.s)
	})
	e.probe(idle)
}

// cancel takes an operation back. After a bug all of them end by themselves, and no earlier: connections may be at their memory.
func (e *Endpoint) cancel(o *operation) {
	e.locked(func(now time.Duration) {
		if e.bug == nil {
			e.s.Cancel(now, &o.s)
		}
	})
}

func (a *endpointActor) cancelAsked(ctx actor.Context, id uint64) {
	e := a.e
	if ctx.Sender() == nil {
		return
	}
	o := e.asked[askerOf(ctx.Sender(), id)]
	if o == nil {
		return // done already: its Done is on the way
	}
	e.cancel(o)
	time.AfterFunc(e.m.cfg.CancelWait, func() { // P3: at its deadline the outcome is unknown
		if !o.Finished() {
			e.submit(&abandon{o: o})
		}
	})
}

// railsChanged tells every rail whether the peer is reachable on another one, dials beside silent rails where none is
// usable (rule 6), and watches the outage.
func (a *endpointActor) railsChanged(ctx actor.Context) {
	e := a.e
	a.prune(ctx)
	a.tell()
	a.wonder(ctx)
	type note struct {
		pid    *actor.PID
		other  bool
		beside bool
	}
	var notes []note
	e.look(func() {
		usable := 0
		for _, r := range e.rails {
			if r != nil && e.s.Lane(r.id).Up() {
				usable++
			}
		}
		for _, r := range e.rails {
			if r == nil || r.pid == nil {
				continue
			}
			others := usable
			l := e.s.Lane(r.id)
			if l.Up() {
				others--
			}
			silent := l.Current() != nil && l.Current().Suspect()
			notes = append(notes, note{r.pid, others > 0, silent && usable == 0 && e.opener})
		}
	})
	for _, n := range notes {
		ctx.Send(n.pid, &rail.Reachable{Yes: n.other})
		if n.beside {
			ctx.Send(n.pid, &rail.DialBeside{})
		}
	}
	a.outage(ctx, 0)
}

// outage ends the endpoint when the peer was not heard of on any rail for OutageLimit, or sets the time to look again.
func (a *endpointActor) outage(ctx actor.Context, due time.Duration) {
	e := a.e
	now := e.m.now()
	over, next := e.outage(now, due)
	if over {
		e.mu.Lock()
		cause, last, limit := rma.ErrEndpointDown, e.lastFailure, e.m.cfg.OutageLimit
		if !e.everUp {
			cause = rma.ErrNoRoute
		}
		e.mu.Unlock()
		e.end(fmt.Errorf("%s was not heard of on any rail for %s (Config.OutageLimit): %w", e.address, limit, join(cause, last)))
		return
	}
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if next > 0 {
		root, self := e.root, ctx.Self()
		next += time.Millisecond
		a.timer = time.AfterFunc(next, func() { root.Send(self, &outage{due: now + next}) })
	}
}

// peerLeaves: the peer has refused a rail because it shuts down. Over rails that are up it says goodbye when it is done; where there
// never was one, it cannot.
func (a *endpointActor) peerLeaves() {
	e := a.e
	e.mu.Lock()
	up := e.everUp
	e.mu.Unlock()
	if !up {
		e.end(fmt.Errorf("node %s is shutting down, and takes no new session: %w", e.address,
			join(supervision.ErrGoodbye, rma.ErrEndpointDown)))
	}
}

func (a *endpointActor) joined(m *rail.Joined) {
	e := a.e
	e.mu.Lock()
	if r := e.record(m.Rail); r != nil {
		r.everUp = true
		if m.Ramp.For > 0 {
			r.rampTill = m.Ramp.From + m.Ramp.For
		}
	}
	e.mu.Unlock()
}

func (a *endpointActor) broke(ctx actor.Context, m *rail.Broke) {
	e := a.e
	e.mu.Lock()
	f := m.Failure
	e.lastFailure = &f
	if r := e.record(m.Rail); r != nil {
		r.status.Reason = f.Error()
		r.status.Restarts++
	}
	e.mu.Unlock()
	a.railsChanged(ctx)
}

// gaveUp: a rail that the policy has stopped. Without any rail left there is nothing to wait for.
func (a *endpointActor) gaveUp(m *rail.GaveUp) {
	e := a.e
	e.mu.Lock()
	left := 0
	for _, r := range e.rails {
		if r == nil {
			continue
		}
		if r.id == m.Rail {
			r.status.Reason = "given up: " + m.Failure.Error()
			r.stopped = true
		}
		if !r.stopped {
			left++
		}
	}
	everUp := e.everUp
	e.mu.Unlock()
	if left > 0 {
		return
	}
	cause := rma.ErrEndpointDown
	if !everUp {
		cause = rma.ErrNoRoute
	}
	f := m.Failure
	e.depart(fmt.Errorf("every rail to %s was given up by the policy: %w", e.address, join(cause, &f)), nil)
}

func (a *endpointActor) escalated(m *rail.Escalated) {
	f := m.Failure
	a.e.depart(fmt.Errorf("the policy ends the endpoint to %s: %w", a.e.address, join(rma.ErrEndpointDown, &f)), nil)
}

// hint passes a card's carrier change on to the rails that use the card.
func (a *endpointActor) hint(ctx actor.Context, m *rail.LinkChanged) {
	for _, r := range a.e.records() {
		if r.pid == nil {
			continue
		}
		ap, err := netip.ParseAddrPort(r.local)
		if err == nil && slices.Contains(m.Addresses, ap.Addr().Unmap()) {
			ctx.Send(r.pid, &rail.LinkHint{Up: m.Up})
		}
	}
}
