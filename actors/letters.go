package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
	"railyard/wire"
)

// letter is a message without its target.
type letter struct {
	// system: for the actor's life, not for its Receive; it has neither header nor sender.
	system  bool
	header  actor.ReadonlyMessageHeader // nil or empty: none
	message any
	sender  *actor.PID // nil: none
}

func letterOf(message any) letter {
	header, m, sender := actor.UnwrapEnvelope(message)
	return letter{header: header, message: m, sender: sender}
}

// MessageUndelivered is published to the actor system's EventStream for every message of this node
// that does not reach, or may not have reached, its target at a peer. The dead letter for the same
// message follows it.
type MessageUndelivered struct {
	// Target is whom it was for, Sender who sent it (nil: nobody who said so).
	Target, Sender *actor.PID
	// Message is what was sent; an Undecoded where it cannot be made from its bytes again.
	Message any
	// Cause is why; compare with errors.Is. rma.ErrOutcomeUnknown: it may have arrived. A RefusedError: it has, and the peer refused it.
	Cause error
}

// Undecoded stands in dead letters for a message that could not be made from its bytes.
type Undecoded struct {
	// Type is the message type's name, Size the payload's length in bytes.
	Type string
	Size int
	// Cause is why.
	Cause error
}

// String leaves the payload out.
func (u *Undecoded) String() string {
	return fmt.Sprintf("undecoded message(type %q, %d bytes): %v", u.Type, u.Size, u.Cause)
}

// undelivered makes a dead letter of a message that does not leave this node, with the cause beside
// it. The dead letter process answers the sender, as it does for local ones.
func (n *Node) undelivered(target *actor.PID, l letter, cause error) {
	n.system.EventStream.Publish(
		&MessageUndelivered{Target: target, Sender: l.sender, Message: l.message, Cause: cause})
	if l.system {
		n.system.DeadLetter.SendSystemMessage(target, l.message)
		return
	}
	n.system.DeadLetter.SendUserMessage(target, &actor.MessageEnvelope{Message: l.message, Sender: l.sender})
}

// Undelivered implements endpoint.Host: a message that was taken, and that nobody will send again.
func (n *Node) Undelivered(_ *endpoint.Endpoint, m *endpoint.Outgoing, err error) {
	n.awaitStart()
	if isStream(m.Target.S) {
		return // both ends learn that the endpoint has ended
	}
	target := actor.NewPID(m.Address, m.Target.S)
	message, errDecode := n.codec.decode(m.Type.S, m.Payload, len(m.Payload) > wire.MaxInline)
	if errDecode != nil {
		n.undelivered(target, letter{
			message: &Undecoded{Type: m.Type.S, Size: len(m.Payload), Cause: errDecode}, sender: n.senderOf(m),
		}, err)
		return
	}
	switch message := message.(type) {
	case *actor.Watch:
		n.watches.failed(target, message.Watcher)
	case *actor.Unwatch:
		// There is nothing left to unwatch.
	default:
		n.undelivered(target, letter{system: m.System, message: message, sender: n.senderOf(m)}, err)
	}
}

func (n *Node) senderOf(m *endpoint.Outgoing) *actor.PID {
	if m.Sender == nil {
		return nil
	}
	return n.senderPID(m.Sender.S)
}
