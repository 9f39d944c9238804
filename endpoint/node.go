package endpoint

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/rail"
	"railyard/rma"
)

// nodeActor is the parent of a node's endpoint actors, and judges their bugs.
type nodeActor struct {
	m *Manager
	// endpoints are those whose actor is there, by its id: some have ended already.
	endpoints map[string]*Endpoint
	sup       actor.Supervisor
}

// spawn makes the node actor and the devices actor.
func (m *Manager) spawn() error {
	devices, err := rail.DevicesProps(rail.DevicesConfig{Track: m.track, Source: m.cfg.Links, Events: m.cfg.Events, Logger: m.log})
	if err != nil {
		return err
	}
	m.watcher = m.cfg.System.Root.SpawnPrefix(devices, "railyard-devices-")
	props := actor.PropsFromProducer(func() actor.Actor { return &nodeActor{m: m, endpoints: make(map[string]*Endpoint)} })
	m.node = m.cfg.System.Root.SpawnPrefix(props, "railyard-")
	return nil
}

// Receive implements actor.Actor.
func (n *nodeActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *spawnEndpoint:
		props := actor.PropsFromProducer(func() actor.Actor { return newEndpointActor(m.e) },
			actor.WithDispatcher(actor.NewSynchronizedDispatcher(throughput)),
			// A bug in a rail actor costs its generation: it starts again, however often.
			actor.WithSupervisor(actor.NewRestartingStrategy()))
		m.e.pid = ctx.SpawnPrefix(props, "endpoint-")
		n.endpoints[m.e.pid.GetId()] = m.e
		ctx.Respond(&spawned{})
	case *rail.CardsChanged:
		n.m.cards.changed()
	case *actor.Terminated:
		delete(n.endpoints, m.Who.GetId())
	case *revive:
		if n.endpoints[m.child.GetId()] != nil { // a stopped actor must not be restarted: it would rise as a ghost
			n.sup.RestartChildren(m.child)
		}
	}
}

// HandleFailure implements actor.SupervisorStrategy: a bug in an endpoint actor ends that epoch (rule 10). A new one begins at
// the next use. The actor stays suspended while the peer is told; then, restarted, it finds its epoch over and completes
// what is in its mailbox before it stops.
func (n *nodeActor) HandleFailure(system *actor.ActorSystem, sup actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	system.EventStream.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: actor.RestartDirective})
	n.sup = sup
	e := n.endpoints[child.GetId()]
	if e == nil {
		return
	}
	_, message, sender := actor.UnwrapEnvelope(message)
	n.m.log.Error("bug in an endpoint actor: its epoch ends", zap.String("peer", e.address),
		zap.Any("panic", reason), zap.String("message", fmt.Sprintf("%T", message)))
	cause := fmt.Errorf("a bug in the endpoint (%v): %w", reason, join(rma.ErrOutcomeUnknown, rma.ErrEndpointDown))
	root, self := system.Root, n.m.node
	e.depart(cause, func() {
		e.cleanUp(message, sender, cause)
		root.Send(self, &revive{child: child})
	})
}

// cleanUp takes care of the message at which the endpoint's actor had a bug, once the epoch is over. How far its service
// had got is not known: nobody may wait for it in vain, and nobody be told twice.
func (e *Endpoint) cleanUp(message any, sender *actor.PID, cause error) {
	switch m := message.(type) {
	case *operation:
		m.complete(e, cause)
	case *accepted:
		e.discard(m)
	case *completed:
		if !m.told {
			e.root.Send(m.o.reply, &rma.Done{ID: m.o.id, Err: m.err})
		}
	default:
		if id, c, ok := asks(message); ok && sender != nil && e.asked[askerOf(sender, id)] == nil {
			e.root.Send(sender, &rma.Done{ID: id, Err: &rma.OpError{Op: c.Kind.String(), Err: cause}})
		}
	}
	if t, ok := message.(counted); ok {
		e.served(t)
	}
}
