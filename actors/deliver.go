package actors

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"go.uber.org/zap"

	"railyard/endpoint"
	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
)

// ErrBadMessage: a peer sent a message that lacks something it needs.
var ErrBadMessage = errors.New("the peer's message lacks a target, a type or an actor that it is about: " +
	"the peer speaks another version")

// ErrReserved: peers have nothing to say to the actors that this framework itself consists of.
var ErrReserved = errors.New("that actor belongs to the framework and takes no messages from other nodes")

// reservedPrefix begins the ids of the framework's own actors: the endpoints', their rails' and
// transports'.
const reservedPrefix = "railyard-$"

// watchType is the name of the messages that Watch sends.
const watchType = "actor.Watch"

// Deliver implements endpoint.Host: a message for an actor of this node. It runs in a connection's
// reader.
//
// Invariant: it waits for nothing, and whatever the message is, it costs that message alone.
func (n *Node) Deliver(from *endpoint.Endpoint, d *session.Delivery) {
	n.awaitStart()
	defer func() {
		if value := recover(); value != nil {
			n.log.Error("panic while a message was delivered (a bug in the actor's mailbox or dispatcher)",
				zap.Stringer("target", d.Target), zap.Any("panic", value),
				zap.ByteString("stack", debug.Stack()))
			n.refuse(from, d, &rail.PanicError{Value: value})
		}
		n.giveBack(from, d)
	}()
	if err := n.deliver(from, d); err != nil {
		n.refuse(from, d, err)
	}
}

func (n *Node) deliver(from *endpoint.Endpoint, d *session.Delivery) error {
	if d.Target == nil || d.Type == nil {
		return ErrBadMessage
	}
	if strings.HasPrefix(d.Target.S, reservedPrefix) || d.Target.S == supervisorID {
		return n.deliverReserved(from, d)
	}
	spawn := d.Target.S == activatorName || d.Target.S == activatorID
	if n.guard != nil && !spawn {
		if err := n.authorize(Access{Peer: from.Address(), Target: d.Target.S, Message: d.Type.S}); err != nil {
			return err
		}
	}
	message, err := n.codec.decode(d.Type.S, d.Payload, d.Owned)
	if err != nil {
		return err
	}
	if spawn {
		return n.activate(from, d, message)
	}
	if m, ok := message.(actor.SystemMessage); ok {
		return n.deliverSystem(from, d.Target.S, m)
	}
	headers, err := parseHeaders(d.Headers)
	if err != nil {
		return err
	}
	target, l := n.admit(from, d)
	if l != nil {
		defer l.posted()
	}
	if isFuture(target.Id) {
		n.futures.answered(target.Id)
	}
	if d.Sender == nil && headers == nil {
		n.system.Root.Send(target, message)
		return nil
	}
	n.system.Root.Send(target,
		&actor.MessageEnvelope{Header: headers, Message: message, Sender: n.senderOfDelivery(d)})
	return nil
}

// deliverReserved takes what the framework's own ends say to each other.
func (n *Node) deliverReserved(from *endpoint.Endpoint, d *session.Delivery) error {
	switch {
	case isStream(d.Target.S):
		if err := n.streams.deliver(from, d); err != nil {
			n.refuseFrame(from, d, err)
		}
		return nil
	case d.Target.S == noticeTarget:
		if err := n.refusedThere(from, d.Payload); err != nil {
			n.log.Debug("notice of a refusal dropped", zap.String("peer", from.Address()), zap.Error(err))
		}
		return nil
	default:
		return fmt.Errorf("%s: %w", d.Target, ErrReserved)
	}
}

// admit gives the PID that a message goes to, and the inlet that has noted what it costs of the window: that comes back when
// the actor has processed it. No inlet: it goes to no actor's mailbox.
func (n *Node) admit(from *endpoint.Endpoint, d *session.Delivery) (*actor.PID, *inlet) {
	if l := n.inlet(from, d.Target); l != nil {
		if g, ok := l.take(d.Cost); ok {
			d.Cost = 0
			l.in.give(l, g)
			return l.pid, l
		}
	}
	return n.localPID(d.Target.S), nil
}

// giveBack gives at once back what a message has cost that no actor is to process.
func (n *Node) giveBack(from *endpoint.Endpoint, d *session.Delivery) {
	if d.Cost == 0 {
		return
	}
	if d.Target != nil {
		if l := n.inlet(from, d.Target); l != nil {
			l.in.give(l, l.pass(d.Cost))
			return
		}
	}
	from.Consumed(d.Cost)
}

func (n *Node) senderOfDelivery(d *session.Delivery) *actor.PID {
	if d.Sender == nil {
		return nil
	}
	return n.senderPID(d.Sender.S)
}

// deliverSystem hands over what is about the life of actors.
func (n *Node) deliverSystem(from *endpoint.Endpoint, target string, message actor.SystemMessage) error {
	pid := n.localPID(target)
	local, alive := n.system.ProcessRegistry.GetLocal(target)
	switch m := message.(type) {
	case *actor.Terminated:
		if m.Who == nil {
			return fmt.Errorf("terminated, without who: %w", ErrBadMessage)
		}
		n.watches.terminated(from, target, m)
		return nil
	case *actor.Watch:
		if m.Watcher == nil {
			return fmt.Errorf("watch, without a watcher: %w", ErrBadMessage)
		}
		if alive {
			n.watched.add(from, target, m.Watcher)
		}
	case *actor.Unwatch:
		if m.Watcher == nil {
			return fmt.Errorf("unwatch, without a watcher: %w", ErrBadMessage)
		}
		n.watched.remove(watchedPair{target, m.Watcher.Address, m.Watcher.Id})
		if !alive {
			return nil
		}
	}
	// A Watch for nobody ends in the dead letter process, which tells the watcher.
	local.SendSystemMessage(pid, message)
	return nil
}

// refuse drops one message, and says so: to whoever listens here, and to its sender.
func (n *Node) refuse(from *endpoint.Endpoint, d *session.Delivery, cause error) {
	u := &Undecoded{Type: d.Type.String(), Size: len(d.Payload), Cause: cause}
	n.events.Publish(rail.Event{Kind: rail.MessageRefused, Peer: from.Address(),
		Cause: fmt.Errorf("message for %q: %w", d.Target.String(), cause)})
	n.log.Debug("message refused", zap.String("peer", from.Address()),
		zap.Stringer("target", d.Target), zap.Error(cause))
	n.system.DeadLetter.SendUserMessage(n.system.NewLocalPID(d.Target.String()),
		&actor.MessageEnvelope{Message: u, Sender: n.senderOfDelivery(d)})
	n.refuseWatch(d)
	n.tellRefused(from, d, cause)
}

// refuseWatch tells whoever watches what it may not: there is nothing to wait for.
func (n *Node) refuseWatch(d *session.Delivery) {
	if d.Type == nil || d.Type.S != watchType {
		return
	}
	message, err := n.codec.decode(d.Type.S, d.Payload, d.Owned)
	if w, ok := message.(*actor.Watch); err == nil && ok && w.Watcher != nil && !n.isLocal(w.Watcher.Address) {
		who := &actor.Terminated{Who: actor.NewPID(n.address, d.Target.String()), Why: actor.TerminatedReason_NotFound}
		n.peer(w.Watcher.Address).process(w.Watcher.Id).SendSystemMessage(w.Watcher, who)
	}
}

// EndpointUp implements endpoint.Host. What has waited for the endpoint learns of it in
// peer.settleLater.
func (n *Node) EndpointUp(e *endpoint.Endpoint) {
	n.books.open(e)
	tellConnected(n.system, e.Address())
}

// EndpointDown implements endpoint.Host.
func (n *Node) EndpointDown(e *endpoint.Endpoint, cause error) {
	n.awaitStart()
	n.watches.down(e)
	n.futures.down(e)
	n.watched.down(e)
	n.inflows.Delete(e)
	n.streams.down(e, cause)
	n.books.close(e)
	n.system.EventStream.Publish(&remote.EndpointTerminatedEvent{Address: e.Address()})
}

// Marshal implements endpoint.Host.
func (n *Node) Marshal(pid rma.PID, message any) (*endpoint.Outgoing, error) {
	if pid == nil || pid.GetId() == "" {
		return nil, fmt.Errorf("notify: %w", ErrNoTarget)
	}
	if f, ok := message.(*frame); ok {
		return f.notify(pid.GetId()), nil
	}
	l := letterOf(message)
	o := new(outgoing)
	if err := n.peer(pid.GetAddress()).process(pid.GetId()).prepare(o, l); err != nil {
		return nil, fmt.Errorf("notify %s/%s: %w", pid.GetAddress(), pid.GetId(), err)
	}
	o.Sender = nil
	return &o.Outgoing, nil
}

// localPID gives the PID of an actor of ours; for actors that are there it remembers it, with the
// process that it stands for. PIDs notice when an actor has died, which they cannot for other
// processes: those are looked up.
func (n *Node) localPID(id string) *actor.PID {
	if pid, ok := n.targets.get(id); ok {
		return pid
	}
	pid := n.system.NewLocalPID(id)
	if local, ok := n.system.ProcessRegistry.GetLocal(id); ok {
		if _, isActor := local.(*actor.ActorProcess); isActor {
			return n.targets.put(id, pid)
		}
	}
	return pid
}

// senderPID makes the PID of "address/id".
func (n *Node) senderPID(name string) *actor.PID {
	if pid, ok := n.senders.get(name); ok {
		return pid
	}
	address, id, _ := strings.Cut(name, "/")
	pid := actor.NewPID(address, id)
	if isFuture(id) {
		return pid
	}
	return n.senders.put(name, pid)
}
