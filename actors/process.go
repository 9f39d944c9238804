package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"railyard/endpoint"
	"railyard/rma"
	"railyard/wire"
)

// process stands for one actor of a peer in this actor system: what is sent to its PID comes here,
// in the sender's goroutine, and is written into the peer's stream from here.
//
// It remembers the type and the sender of the last message, which the next one mostly has as well.
type process struct {
	peer   *peer
	id     string
	target *endpoint.Ref

	// givenUp counts the plain Sends in a row that have found no room within their time.
	givenUp atomic.Uint32

	lastType   atomic.Pointer[typeRef]
	lastSender atomic.Pointer[senderRef]
}

type typeRef struct {
	descriptor protoreflect.MessageDescriptor
	ref        *endpoint.Ref
}

type senderRef struct {
	pid *actor.PID
	ref *endpoint.Ref
}

var _ actor.Process = (*process)(nil)

func newProcess(p *peer, id string) *process {
	target := endpoint.NewRef(id)
	if isFuture(id) {
		target = endpoint.NewRefOnce(id)
	}
	return &process{peer: p, id: id, target: target}
}

// SendUserMessage implements actor.Process. It waits, Config.SendWait at most, while the peer's
// window is full.
func (p *process) SendUserMessage(pid *actor.PID, message any) {
	l := letterOf(message)
	if err := p.send(l); err != nil {
		p.peer.node.undelivered(pid, l, err)
	}
}

// SendSystemMessage implements actor.Process. It never waits.
func (p *process) SendSystemMessage(pid *actor.PID, message any) {
	n := p.peer.node
	switch m := message.(type) {
	case *actor.Watch:
		n.watches.watch(p, pid, m.Watcher)
	case *actor.Unwatch:
		n.watches.unwatch(p, m.Watcher)
	case *actor.Terminated:
		n.watched.remove(watchedPair{m.Who.GetId(), p.peer.address, p.id})
		p.sendSystem(pid, &actor.Terminated{Who: n.outward(m.Who), Why: m.Why})
	default:
		p.sendSystem(pid, message)
	}
}

// Stop implements actor.Process.
func (p *process) Stop(pid *actor.PID) { p.SendSystemMessage(pid, &actor.Stop{}) }

func (p *process) sendSystem(pid *actor.PID, message any) {
	l := letter{system: true, message: message}
	if err := p.trySystem(l); err != nil {
		p.peer.node.undelivered(pid, l, err)
	}
}

func (p *process) trySystem(l letter) error {
	o := takeOutgoing()
	defer o.free()
	if err := p.prepare(o, l); err != nil {
		return err
	}
	return p.peer.route.TrySend(&o.Outgoing)
}

// send is a plain Send: it waits for room for as long as the node's settings say.
func (p *process) send(l letter) error {
	o := takeOutgoing()
	defer o.free()
	if err := p.prepare(o, l); err != nil {
		return err
	}
	p.expectAnswer(l)
	err := p.peer.route.TrySend(&o.Outgoing)
	if err == nil || !errors.Is(err, rma.ErrWindowFull) || mustNotWait(l) {
		return err
	}
	n := p.peer.node
	ctx, done := context.WithTimeout(n.ctx, p.patience(n.cfg.SendWait))
	defer done()
	if err = p.peer.route.Send(ctx, &o.Outgoing); errors.Is(err, rma.ErrWindowFull) {
		p.givenUp.Add(1)
	} else if err == nil {
		p.givenUp.Store(0)
	}
	return err
}

// leastPatience is how long a plain Send waits at least, unless SendWait is less.
const leastPatience = 10 * time.Millisecond

// patience halves with each Send in a row that has found no room: two actors that wait for each other inside Receive are
// free again after about twice SendWait, however much they still want to send.
func (p *process) patience(sendWait time.Duration) time.Duration {
	return max(sendWait>>min(p.givenUp.Load(), 30), min(sendWait, leastPatience))
}

// sendWithin is a Send that waits for room until ctx ends.
func (p *process) sendWithin(ctx context.Context, l letter) error {
	o := takeOutgoing()
	defer o.free()
	if err := p.prepare(o, l); err != nil {
		return err
	}
	p.expectAnswer(l)
	return p.peer.route.Send(ctx, &o.Outgoing)
}

// mustNotWait: the dead letter process answers in the goroutine that met the dead letter, which may
// be a connection's reader. It waits for nothing.
func mustNotWait(l letter) bool {
	_, answer := l.message.(*actor.DeadLetterResponse)
	return answer
}

// expectAnswer notes a future of ours that waits for the peer.
func (p *process) expectAnswer(l letter) {
	if n := p.peer.node; l.sender != nil && isFuture(l.sender.Id) && n.isLocal(l.sender.Address) {
		n.futures.expect(l.sender.Id, p.peer)
	}
}

// outgoing is a message with the memory that it is written in.
type outgoing struct {
	endpoint.Outgoing
	payload, headers []byte
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

func takeOutgoing() *outgoing { return outgoings.Get().(*outgoing) }

// free gives the memory back. The endpoint keeps none of it: what is larger is in memory of its
// own.
func (o *outgoing) free() {
	o.Outgoing = endpoint.Outgoing{}
	outgoings.Put(o)
}

// prepare writes the message, in this goroutine.
func (p *process) prepare(o *outgoing, l letter) error {
	s, err := p.peer.node.codec.choose(l)
	if err != nil {
		return err
	}
	if s != nil {
		err = p.writeWith(o, s, l.message)
	} else {
		err = p.write(o, l.message)
	}
	if err != nil {
		return err
	}
	if l.header != nil && l.header.Length() > 0 {
		headers := appendHeaders(o.headers[:0], l.header)
		if len(headers) > wire.MaxHeaders {
			return fmt.Errorf("headers of %d bytes; at most %d travel with a message: %w",
				len(headers), wire.MaxHeaders, rma.ErrTooLarge)
		}
		o.headers, o.Headers = headers, headers
	}
	o.System = l.system
	o.Target, o.Sender = p.target, p.senderOf(l.sender)
	return nil
}

// write sets payload and type of a protobuf message.
func (p *process) write(o *outgoing, message any) error {
	m, err := messageOf(message)
	if err != nil {
		return err
	}
	size := proto.Size(m)
	switch {
	case size > maxMaxMessage:
		return tooLarge(m, size)
	case size > wire.MaxInline:
		o.Payload, err = appendMessage(make([]byte, 0, size), m)
	default:
		o.payload, err = appendMessage(o.payload[:0], m)
		o.Payload = o.payload
	}
	o.Type = p.typeOf(m)
	return err
}

// writeWith is write by another serializer. The payload stays where that has it.
func (p *process) writeWith(o *outgoing, s Serializer, message any) error {
	name, payload, err := p.peer.node.codec.encode(s, message)
	if err != nil {
		return err
	}
	if len(payload) > maxMaxMessage {
		return tooLarge(message, len(payload))
	}
	o.Payload, o.Type = payload, p.peer.typeName(name)
	return nil
}

func (p *process) typeOf(m proto.Message) *endpoint.Ref {
	d := m.ProtoReflect().Descriptor()
	if last := p.lastType.Load(); last != nil && last.descriptor == d {
		return last.ref
	}
	ref := p.peer.typeName(string(d.FullName()))
	p.lastType.Store(&typeRef{descriptor: d, ref: ref})
	return ref
}

func (p *process) senderOf(pid *actor.PID) *endpoint.Ref {
	if pid == nil {
		return nil
	}
	if last := p.lastSender.Load(); last != nil && last.pid == pid {
		return last.ref
	}
	ref := p.peer.sender(p.peer.node.outwardAddress(pid.Address), pid.Id)
	if !isFuture(pid.Id) {
		p.lastSender.Store(&senderRef{pid: pid, ref: ref})
	}
	return ref
}
