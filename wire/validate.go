package wire

import "google.golang.org/protobuf/proto"

// checker collects the first fault of a handshake message.
type checker struct {
	kind Kind
	err  error
}

// validate checks lengths and ranges, so that who uses a message may convert its fields without
// looking. What they mean, the version first of all, is the endpoint's to judge.
func validate(k Kind, m proto.Message) error {
	c := &checker{kind: k}
	switch m := m.(type) {
	case *Challenge:
		c.is(KindChallenge)
		c.challenge(m)
	case *Hello:
		c.is(KindHello)
		c.hello(m)
	case *Answer:
		c.is(KindAnswer)
		c.answer(m)
	case *Confirm:
		c.is(KindConfirm)
		c.optional("mac", m.GetMac(), MACSize)
		c.fenced(m.GetFenced())
	default:
		c.fail("%T is no handshake message", m)
	}
	return c.err
}

func (c *checker) challenge(m *Challenge) {
	c.exactly("nonce", m.GetNonce(), NonceSize)
	c.exactly("incarnation", m.GetIncarnation(), NodeIDSize)
	c.text("node", m.GetNode())
	c.text("name", m.GetName())
}

func (c *checker) hello(m *Hello) {
	c.exactly("incarnation", m.GetIncarnation(), NodeIDSize)
	c.exactly("challenge", m.GetChallenge(), NonceSize)
	c.exactly("nonce", m.GetNonce(), NonceSize)
	c.exactly("session", m.GetSession(), SessionSize)
	c.optional("target_incarnation", m.GetTargetIncarnation(), NodeIDSize)
	c.optional("mac", m.GetMac(), MACSize)
	if len(m.GetToken()) > MaxToken {
		c.fail("its token has %d bytes, over the limit of %d", len(m.GetToken()), MaxToken)
	}
	c.rail("its rail", m.GetRail())
	c.text("node", m.GetNode())
	c.text("name", m.GetName())
	c.text("target", m.GetTarget())
	c.text("local", m.GetLocal())
	c.text("remote", m.GetRemote())
	c.devices(m.GetDevices())
	c.fenced(m.GetFenced())
}

func (c *checker) answer(m *Answer) {
	c.exactly("nonce", m.GetNonce(), NonceSize)
	// A node that refuses need not have a session, nor tell a stranger who it is.
	fixed := c.optional
	if m.GetCode() == RefusalCode_OK {
		fixed = c.exactly
	}
	fixed("incarnation", m.GetIncarnation(), NodeIDSize)
	fixed("session", m.GetSession(), SessionSize)
	c.optional("mac", m.GetMac(), MACSize)
	c.text("reason", m.GetReason())
	c.text("node", m.GetNode())
	c.text("name", m.GetName())
	c.text("device", m.GetDevice())
	c.devices(m.GetDevices())
	c.fenced(m.GetFenced())
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = malformed(c.kind, format, args...)
	}
}

// is checks that the message is of the frame's kind.
func (c *checker) is(k Kind) {
	if c.kind != k {
		c.fail("a message of kind %v in it", k)
	}
}

func (c *checker) exactly(field string, b []byte, size int) {
	if len(b) != size {
		c.fail("its %s has %d bytes where %d are due", field, len(b), size)
	}
}

func (c *checker) optional(field string, b []byte, size int) {
	if len(b) != 0 && len(b) != size {
		c.fail("its %s has %d bytes where none or %d are due", field, len(b), size)
	}
}

func (c *checker) text(field, s string) {
	if len(s) > MaxName {
		c.fail("its %s has %d bytes, over the limit of %d", field, len(s), MaxName)
	}
}

func (c *checker) rail(what string, rail uint32) {
	if rail > 1<<16-1 {
		c.fail("%s is %d, over the limit of %d", what, rail, 1<<16-1)
	}
}

func (c *checker) devices(devices []*Device) {
	if len(devices) > MaxDevices {
		c.fail("%d devices, over the limit of %d", len(devices), MaxDevices)
		return
	}
	for _, d := range devices {
		c.text("device's kind", d.GetKind())
		c.text("device's address", d.GetAddress())
		c.text("device's name", d.GetName())
	}
}

func (c *checker) fenced(list []*Fenced) {
	if len(list) > MaxFenced {
		c.fail("%d fenced generations, over the limit of %d", len(list), MaxFenced)
		return
	}
	for _, f := range list {
		c.rail("a fenced generation's rail", f.GetRail())
		_, err := parseRefusals(c.kind, f.GetRefusals(), f.GetCount())
		if err != nil && c.err == nil {
			c.err = err
		}
	}
}
