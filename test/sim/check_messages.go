package main

import (
	"bytes"
	"encoding/binary"

	"railyard/endpoint/session"
	"railyard/wire"
)

// messageCheck: exactly once and in order for each target within the epoch, with the bytes, sender and type that were sent.
type messageCheck struct {
	e       *End // the sending end
	targets map[string]*targetCheck
	names   []string // of the targets, in the order in which they were first used
	open    int      // sent and not delivered
	all     map[uint64]sentMessage
	lost    map[uint64]bool // given up by the sender
}

type targetCheck struct {
	sent, delivered uint64
	expect          []sentMessage // sent and not delivered
	large           uint64        // the newest large one that was delivered; 0: none
}

// sentMessage is what must arrive.
type sentMessage struct {
	id, seq      uint64
	size         int
	system       bool
	sender, kind string
	headers      int
	after        uint64 // the order of the last operation that was started before it
}

func newMessageCheck(e *End) *messageCheck {
	return &messageCheck{e: e, targets: make(map[string]*targetCheck), all: make(map[uint64]sentMessage),
		lost: make(map[uint64]bool)}
}

func (m *messageCheck) target(name string) *targetCheck {
	t := m.targets[name]
	if t == nil {
		t = &targetCheck{}
		m.targets[name] = t
		m.names = append(m.names, name)
	}
	return t
}

func (m *messageCheck) sent(name string, s sentMessage) {
	t := m.target(name)
	t.sent++
	t.expect = append(t.expect, s)
	m.all[s.id] = s
	m.open++
}

// givenUp: the sender gets a message back that is not known to have arrived, once and whole.
func (m *messageCheck) givenUp(got *session.Message) {
	w := m.e.w
	id, seq, ok := identity(got.Headers)
	if !ok {
		id, seq, _ = identity(got.Payload)
	}
	x, known := m.all[id]
	if !known || m.lost[id] {
		w.violate("%s: a message to %s is given up that was never sent, or a second time", m.e, got.Target)
	}
	m.lost[id] = true
	if !bytes.Equal(got.Payload, messageBytes(id, seq, x.size)) || got.Type.String() != x.kind || got.System != x.system ||
		!bytes.Equal(got.Headers, messageBytes(id, seq, x.headers)) || got.Sender.String() != x.sender {
		w.violate("%s: message %d to %s comes back with other content than was sent", m.e, seq, got.Target)
	}
}

// before names a message that was sent before the operation of that order, and has neither arrived nor come back; empty: none.
func (m *messageCheck) before(order uint64) string {
	for _, name := range m.names {
		for _, x := range m.targets[name].expect {
			if x.after < order && !m.lost[x.id] {
				return "message " + itoa(x.seq) + " to " + name
			}
		}
	}
	return ""
}

// overCheck: when both ends are over, each message has arrived or was given up. One behind a large message that did not
// become whole is at the receiver, who cannot deliver it in its order; one behind a large message that was delivered and given up
// was held there when the receiver ended before it had delivered all that it held: until then it does not acknowledge the large one.
func (m *messageCheck) overCheck() {
	for _, name := range m.names {
		large := m.targets[name].large
		held := large != 0 && m.lost[large]
		for _, x := range m.targets[name].expect {
			held = held || m.lost[x.id] && x.size > wire.MaxInline
			if !m.lost[x.id] && !held {
				m.e.w.violate("%s: message %d to %s has neither arrived nor been given up", m.e.peer, x.seq, name)
			}
		}
	}
}

// delivered checks one message.
func (m *messageCheck) delivered(d *session.Delivery) {
	w := m.e.w
	t := m.target(d.Target.S)
	if len(t.expect) == 0 {
		w.violate("%s: a message to %s that was never sent, or a second time", m.e, d.Target)
	}
	x := t.expect[0]
	body := d.Payload
	if x.headers > 0 {
		body = d.Headers
	}
	m.e.app.tell("gets message %d to %s", x.seq, d.Target)
	if id, seq, ok := identity(body); ok && (id != x.id || seq != x.seq) {
		w.violate("%s: message %d to %s came where %d was due", m.e, seq, d.Target, x.seq)
	}
	if len(d.Payload) != x.size || !bytes.Equal(d.Payload, messageBytes(x.id, x.seq, x.size)) {
		w.violate("%s: message %d to %s has other bytes than were sent (%d, %d were sent)",
			m.e, x.seq, d.Target, len(d.Payload), x.size)
	}
	if !bytes.Equal(d.Headers, messageBytes(x.id, x.seq, x.headers)) {
		w.violate("%s: message %d to %s has other headers than were sent", m.e, x.seq, d.Target)
	}
	if d.System != x.system || d.Sender.String() != x.sender || d.Type.String() != x.kind {
		w.violate("%s: message %d to %s has another envelope than was sent", m.e, x.seq, d.Target)
	}
	t.expect = t.expect[1:]
	t.delivered++
	if x.size > wire.MaxInline {
		t.large = x.id
	}
	m.open--
}

// messageBytes is a message: its identity, then its pattern.
func messageBytes(id, seq uint64, n int) []byte {
	b := append([]byte(nil), pattern(id, n)...)
	if n >= identitySize {
		binary.LittleEndian.PutUint64(b, id)
		binary.LittleEndian.PutUint64(b[8:], seq)
	}
	return b
}

const identitySize = 16

func identity(b []byte) (id, seq uint64, ok bool) {
	if len(b) < identitySize {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}

// windowCheck: what has been delivered and not consumed never exceeds the window.
func (a *App) windowCheck() {
	if limit := a.e.s.Config().Window; a.unconsumed > limit {
		a.e.w.violate("%s holds %d bytes of messages; its window is %d", a.e, a.unconsumed, limit)
	}
}
