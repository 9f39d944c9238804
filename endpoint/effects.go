package endpoint

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
)

// carryOut does what the session asks for. No lock is held. A panic is a bug, and ends the epoch.
func (e *Endpoint) carryOut(fx []session.Effect) {
	i := 0
	defer func() {
		if bug := recover(); bug != nil {
			e.mu.Lock()
			e.breakDown(bug)
			e.settle(fx[i:])
		}
	}()
	for ; i < len(fx); i++ {
		e.do(&fx[i])
	}
}

func (e *Endpoint) do(f *session.Effect) {
	switch f.Kind {
	case session.Wake:
		e.wake(f)
	case session.Completed:
		f.Op.User.(*operation).complete(e, f.Err)
	case session.Offered:
		e.offer(f)
	case session.Withdrawn:
		c := f.Gen.User.(*carrier)
		e.root.Send(c.transport, &rail.Cancel{Op: f.Op, Lane: c.rail, Generation: c.generation})
	case session.Killed:
		e.kill(f)
	case session.Quiet:
		e.wakeAll(&e.calm)
		e.rest()
	case session.Settled:
		e.settled(f)
	case session.LaneUp:
		e.laneUp(f)
	case session.Room:
		e.wakeAll(&e.room)
	case session.PeerLeft:
		e.root.Send(e.pid, &peerLeft{})
	case session.Undelivered:
		e.undelivered(f)
	case session.MapWanted:
		e.mapWanted(f)
	case session.Unmap:
		f.Mapping.Release()
	}
}

// wake lets the generation's connection write. The write token is its own from here on.
func (e *Endpoint) wake(f *session.Effect) {
	c := f.Gen.User.(*carrier)
	if f.Inline {
		c.conn.WriteNow()
	} else {
		c.conn.Kick()
	}
}

// offer makes the one message of an operation to a lane.
func (e *Endpoint) offer(f *session.Effect) {
	c := f.Gen.User.(*carrier)
	switch f.Op.Kind {
	case session.Serve:
		e.root.Send(c.transport, &rail.Serve{Op: f.Op, Lane: c.rail, Generation: c.generation})
	default:
		e.root.Send(c.transport, &rail.Put{Op: f.Op, Lane: c.rail, Generation: c.generation})
	}
}

// kill ends the connection of a generation that the session has fenced, and lets its rail judge that.
func (e *Endpoint) kill(f *session.Effect) {
	c := f.Gen.User.(*carrier)
	c.conn.Kill()
	var pid *actor.PID
	var over bool
	var lost uint64
	e.look(func() {
		if r := e.record(c.rail); r != nil {
			pid = r.pid
			r.since = e.m.now()
			if f.Err != nil {
				r.status.Reason = f.Err.Error()
			}
		}
		over, lost = e.ended != nil, f.Gen.LostBytes()
	})
	if pid != nil && !over {
		e.root.Send(pid, &rail.Retire{Generation: c.generation, Cause: f.Err, InFlight: lost})
	}
	if !over {
		e.root.Send(e.pid, &railsChanged{})
	}
}

// ErrNoCard is why a region is not registered: the connection has no card that writes into memory by itself. It costs
// nothing but speed: the peer sends the bytes as chunks instead.
var ErrNoCard = errors.New("this kind of rail has no card to register memory with: its puts go through the stream")

// mapWanted answers a question for a remote key. No kind of rail has a card that registers memory yet: the answer is a refusal.
func (e *Endpoint) mapWanted(f *session.Effect) {
	c := f.Gen.User.(*carrier)
	err := fmt.Errorf("rail %d to %s, generation %d: %w", c.rail, e.address, c.generation, ErrNoCard)
	e.log.Warn("a region was not mapped", zap.Error(err))
	e.locked(func(now time.Duration) {
		if e.bug == nil {
			f.Gen.Mapped(now, session.Registration{Region: f.Region, Err: err})
		}
	})
}

func (e *Endpoint) settled(f *session.Effect) {
	c := f.Gen.User.(*carrier)
	var local, remote string
	var gap time.Duration
	var lost, rerouted uint64
	e.look(func() {
		local, remote = e.devicesOf(c.rail)
		gap, lost, rerouted = e.m.now()-f.Gen.Vitals().Heard, f.Gen.LostBytes(), f.Gen.ReroutedBytes()
	})
	e.m.cfg.Events.Publish(rail.Event{Kind: rail.RailRetired, Peer: e.address, Rail: c.rail, Local: local, Remote: remote,
		Generation: c.generation, Cause: f.Err, InFlight: lost, Rerouted: rerouted, Gap: max(gap, 0)})
}

func (e *Endpoint) laneUp(f *session.Effect) {
	c := f.Gen.User.(*carrier)
	e.mu.Lock()
	if r := e.record(c.rail); r != nil {
		r.since = e.m.now()
	}
	local, remote := e.devicesOf(c.rail)
	first := !e.everUp
	e.everUp = true
	over := e.ended != nil
	e.mu.Unlock()
	if over {
		return
	}
	if first {
		close(e.up)
		e.log.Info("endpoint up", zap.String("local", local), zap.String("remote", remote))
		e.m.cfg.Events.Publish(rail.Event{Kind: rail.EndpointUp, Peer: e.address, Rail: c.rail, Local: local, Remote: remote,
			Generation: c.generation})
		e.attempt("the host is told that an endpoint is up", func() { e.m.cfg.Host.EndpointUp(e) })
	}
	e.root.Send(e.pid, &railsChanged{})
}

// undelivered gives a message back that nobody will send again.
func (e *Endpoint) undelivered(f *session.Effect) {
	m := f.Message
	if m.Target.S == toldTarget || m.Target.S == devicesTarget {
		return // who was to hear it has lost its session as well
	}
	out := &Outgoing{Target: NewRef(m.Target.S), Type: NewRef(m.Type.S), System: m.System,
		Headers: m.Headers, Payload: m.Payload, Address: e.address}
	if m.Sender != nil {
		out.Sender = NewRef(m.Sender.S)
	}
	err := f.Err
	if !errors.Is(err, rma.ErrMalformed) {
		err = rma.Unknown(err)
	}
	e.m.giveBack(e, out, err)
}
