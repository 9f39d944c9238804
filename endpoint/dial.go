package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
	"railyard/wire"
)

// RefusedError is a handshake that the peer, or this side, has refused.
type RefusedError struct {
	// Peer is the node; Code why; Reason its own words.
	Peer   string
	Code   wire.RefusalCode
	Reason string
}

// Error says who refused and why.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("node %s refuses this rail: %s (%s)", r.Peer, r.Code, r.Reason)
}

// stranger tells whether it was who the caller is, or what it speaks, that did not do.
func (r *RefusedError) stranger() bool {
	return r.Code == wire.RefusalCode_UNAUTHENTIC || r.Code == wire.RefusalCode_INSECURE || r.Code == wire.RefusalCode_VERSION
}

// FailureClass implements rail.Classed: refusals are worth another try, unless they are about identity or version.
func (r *RefusedError) FailureClass() supervision.Class {
	switch r.Code {
	case wire.RefusalCode_VERSION:
		return supervision.Peer
	default:
		return supervision.Transient
	}
}

// pendingKey names a generation that is joined and not yet attached.
type pendingKey struct {
	rail       wire.RailID
	generation wire.Generation
}

// pendingLink takes the link that Join or accept has made. Called with the lock held.
func (e *Endpoint) pendingLink(id wire.RailID, g wire.Generation) *link {
	k := pendingKey{id, g}
	l := e.pending[k]
	delete(e.pending, k)
	return l
}

func (e *Endpoint) dropPending(id wire.RailID, g wire.Generation) {
	delete(e.pending, pendingKey{id, g})
}

// newLink makes the link of a generation that both ends have agreed on.
func (e *Endpoint) newLink(id wire.RailID, g wire.Generation) *link {
	l := &link{e: e}
	e.mu.Lock()
	e.pending[pendingKey{id, g}] = l
	e.mu.Unlock()
	return l
}

// join is the dialer's handshake.
func (e *Endpoint) join(ctx context.Context, id wire.RailID, g wire.Generation, conn rail.Conn) (rail.Link, error) {
	l, err := e.shakeHands(ctx, id, g, conn)
	if err != nil {
		e.m.doubt(e.address, err)
	}
	return l, err
}

func (e *Endpoint) shakeHands(ctx context.Context, id wire.RailID, g wire.Generation, conn rail.Conn) (rail.Link, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("handshake with %s: %w", e.address, err)
		}
	}
	greeted, err := e.m.hear(conn, hostOf(e.address), e.mustSecure())
	if err != nil {
		return nil, fmt.Errorf("waiting for %s to greet at %s: %w", e.address, conn.RemoteAddr(), err)
	}
	if err := e.checkChallenge(greeted.challenge); err != nil {
		return nil, err
	}
	if err := e.displace(ctx, id, g); err != nil {
		return nil, err
	}
	hello, err := e.hello(id, g, greeted, conn)
	if err != nil {
		return nil, err
	}
	answer, err := e.exchange(conn, hello)
	if err != nil {
		return nil, err
	}
	confirm, err := e.takeAnswer(greeted, hello, answer)
	if err != nil {
		return nil, err
	}
	l := e.newLink(id, g)
	if err := writeHandshake(conn, wire.KindConfirm, confirm); err != nil {
		e.mu.Lock()
		e.dropPending(id, g)
		e.mu.Unlock()
		return nil, fmt.Errorf("confirming a rail to %s: %w", e.address, err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("a rail to %s: %w", e.address, err)
	}
	if hello.GetFirst() {
		e.root.Send(e.pid, &agreed{})
	}
	return l, nil
}

// checkChallenge sees whether the node at the other end is the one that is meant.
func (e *Endpoint) checkChallenge(c *wire.Challenge) error {
	if c.GetVersion() < 1 {
		return &RefusedError{Peer: e.address, Code: wire.RefusalCode_VERSION, Reason: "its version is 0"}
	}
	if c.GetNode() != e.address {
		return &RefusedError{Peer: e.address, Code: wire.RefusalCode_WRONG_NODE,
			Reason: fmt.Sprintf("node %s answers at this address", c.GetNode())}
	}
	id, err := wire.ParseNodeID(c.GetIncarnation())
	if err != nil {
		return err
	}
	gone := false
	greeting := session.Stranger
	e.look(func() {
		if gone = !e.opener; gone {
			return
		}
		greeting = e.s.Greet(e.agreed, e.incarnation, id)
		if !e.agreed {
			e.incarnation, e.peerName = id, c.GetName()
		}
	})
	if gone { // it greets a dial of the session that we have given up: about the peer's own it says nothing
		return &RefusedError{Peer: e.address, Code: wire.RefusalCode_BUSY, Reason: "the session that this dial was for was given up"}
	}
	switch greeting {
	case session.Meant:
		return nil
	case session.Restarted:
		e.root.Send(e.pid, &peerRestarted{})
	case session.Stranger: // the one that we know is still heard of (rule 8)
	}
	return fmt.Errorf("node %s is another incarnation: %w", e.address, rma.ErrPeerRestarted)
}

// displace fences the rail's older generations, once a silent one has stayed silent for one more beat (rule 6), and waits
// until their counts are fixed.
func (e *Endpoint) displace(ctx context.Context, id wire.RailID, g wire.Generation) error {
	nonce := e.m.now()
	var old *session.Generation
	alive, reserved := false, false
	e.look(func() {
		old = e.s.Lane(id).Current()
		alive = old != nil && !old.Fenced()
	})
	if alive {
		select {
		case <-time.After(e.m.beat()):
		case <-ctx.Done():
			return fmt.Errorf("a rail to %s: %w", e.address, ctx.Err())
		}
		spoke := false
		e.look(func() { spoke = !old.Fenced() && old.Vitals().Heard > nonce })
		if spoke {
			return rail.ErrNotNeeded
		}
	}
	e.look(func() { reserved = e.s.Lane(id).Reserve(g) })
	if !reserved {
		return fmt.Errorf("generation %d of rail %d to %s: %w", g, id, e.address, rail.ErrSuperseded)
	}
	return e.fenceOlder(ctx, id, g)
}

// fenceOlder cuts off a rail's generations below g and waits until no socket call of theirs is in progress.
func (e *Endpoint) fenceOlder(ctx context.Context, id wire.RailID, g wire.Generation) error {
	for {
		var calm <-chan struct{}
		quiet := false
		e.locked(func(now time.Duration) {
			calm = e.calm
			quiet = e.s.Lane(id).FenceOlder(now, g, session.ErrReplaced)
		})
		if quiet {
			return nil
		}
		select {
		case <-calm:
		case <-e.down:
			return e.Err()
		case <-ctx.Done():
			return fmt.Errorf("waiting for the old connection of rail %d to %s to end: %w", id, e.address, ctx.Err())
		}
	}
}

func (e *Endpoint) hello(id wire.RailID, g wire.Generation, with *greeting, conn rail.Conn) (h *wire.Hello, err error) {
	c := with.challenge
	e.mu.Lock()
	defer e.unlock()
	if err := e.over(); err != nil {
		return nil, err
	}
	if !e.opener {
		return nil, &RefusedError{Peer: e.address, Code: wire.RefusalCode_BUSY, Reason: "its own first session was taken"}
	}
	err = errBroken //nolint:wastedassign // what it gives where this has a bug: release recovers
	local, remote := e.devicesOf(id)
	h = &wire.Hello{
		Version: wire.Version, Features: e.m.offer(conn), Node: e.m.address, Incarnation: e.m.incarnation[:], Name: e.m.cfg.Name,
		Challenge: c.GetNonce(), Nonce: make([]byte, wire.NonceSize), Target: e.address, TargetIncarnation: c.GetIncarnation(),
		Session: bytes.Clone(e.id[:]), Epoch: 1, First: !e.agreed, Rail: uint32(id), Generation: uint64(g),
		Local: local, Remote: remote, Devices: e.m.cards.current.Load().told,
		Fenced: wire.FencedOf(e.s.Fenced()), Window: e.s.Config().Window, MaxMessage: e.s.Config().MaxMessage,
	}
	e.m.random(h.Nonce)
	if h.First && len(e.m.cfg.Secret) == 0 {
		h.Token = e.token
	}
	h.Mac = session.HelloProof(with.channel.proof(e.key), c, h)
	return h, nil
}

// exchange says the hello and hears the answer.
func (e *Endpoint) exchange(conn rail.Conn, hello *wire.Hello) (*wire.Answer, error) {
	if err := writeHandshake(conn, wire.KindHello, hello); err != nil {
		return nil, fmt.Errorf("hello to %s: %w", e.address, err)
	}
	answer := &wire.Answer{}
	if err := wire.ReadHandshake(conn, wire.KindAnswer, answer); err != nil {
		return nil, fmt.Errorf("waiting for the answer of %s to a hello (none comes where the secrets differ): %w", e.address, err)
	}
	return answer, nil
}

// takeAnswer checks the answer and takes over what it says.
func (e *Endpoint) takeAnswer(with *greeting, h *wire.Hello, a *wire.Answer) (*wire.Confirm, error) {
	c := with.challenge
	e.mu.Lock()
	key := with.channel.proof(e.key)
	e.mu.Unlock()
	if a.GetCode() != wire.RefusalCode_OK {
		refused := &RefusedError{Peer: e.address, Code: a.GetCode(), Reason: a.GetReason()}
		if session.SameProof(a.GetMac(), session.AnswerProof(key, c, h, a)) {
			e.believe(a.GetCode())
		}
		return nil, refused
	}
	if !bytes.Equal(a.GetNonce(), h.GetNonce()) || !session.SameProof(a.GetMac(), session.AnswerProof(key, c, h, a)) {
		return nil, &RefusedError{Peer: e.address, Code: wire.RefusalCode_UNAUTHENTIC,
			Reason: "its answer does not prove that it knows the secret"}
	}
	list, err := wire.RetiredOf(a.GetFenced())
	if err != nil {
		return nil, err
	}
	union, news, err := e.agree(with, h, a, list)
	if news {
		e.root.Send(e.pid, &devicesTold{})
	}
	if err != nil {
		return nil, err
	}
	confirm := &wire.Confirm{Fenced: wire.FencedOf(union)}
	confirm.Mac = session.ConfirmProof(key, c, h, confirm)
	return confirm, nil
}

// believe does what follows from a refusal that the peer has proved to be its own.
func (e *Endpoint) believe(code wire.RefusalCode) {
	switch code {
	case wire.RefusalCode_UNKNOWN_SESSION:
		e.root.Send(e.pid, &sessionLost{})
	case wire.RefusalCode_SHUTTING_DOWN:
		e.root.Send(e.pid, &peerLeaves{})
	default: // another attempt may meet with something else
	}
}

// agree takes over an answer that was checked. news: the actor has to look at the peer's devices.
func (e *Endpoint) agree(with *greeting, h *wire.Hello, a *wire.Answer, list []wire.Retired) (union []wire.Retired, news bool, err error) {
	e.mu.Lock()
	defer e.release()
	if err := e.over(); err != nil || !e.opener {
		return nil, false, join(rail.ErrSuperseded, err)
	}
	err = errBroken //nolint:wastedassign // what it gives where this has a bug: release recovers
	first := !e.agreed
	if first {
		e.agreed, e.agreedAt, e.secured = true, e.m.now(), with.channel != nil
		e.s.SetPeerLimits(a.GetWindow(), a.GetMaxMessage())
	}
	if r := e.record(wire.RailID(h.GetRail())); r != nil && r.device == "" {
		r.device = a.GetDevice()
	}
	news = e.learn(&wire.Devices{Serial: a.GetSerial(), Devices: a.GetDevices()})
	if first { // agreed sees to it
		news, e.news = false, nil
	}
	union, err = e.s.ExchangeFenced(e.m.now(), list)
	return union, news, err
}

func writeHandshake(conn rail.Conn, k wire.Kind, m proto.Message) error {
	b, err := wire.AppendHandshake(nil, k, m)
	if err != nil {
		return err
	}
	_, err = conn.Write(b)
	return err
}

// identify asks who answers at an address, and closes the connection again.
func (m *Manager) identify(ctx context.Context, address string) (node string, from rail.Binding, err error) {
	var errs []error
	for _, b := range m.bindingsFor(address) {
		try, done := context.WithTimeout(ctx, 2*time.Second)
		var node string
		err := safely(func() (err error) {
			node, err = m.ask(try, b, address, hostOf(address))
			return err
		})
		done()
		if err == nil {
			return node, b, nil
		}
		m.doubt(address, err)
		errs = append(errs, fmt.Errorf("from %s: %w", b.Address, err))
		if ctx.Err() != nil {
			break
		}
	}
	return "", rail.Binding{}, join(errs...)
}

// ask hears who greets at an address. name is the host that the certificate there must have, where TLS is spoken.
func (m *Manager) ask(ctx context.Context, b rail.Binding, address, name string) (string, error) {
	conn, err := m.cfg.Kinds[b.Kind].Dial(ctx, b.Address, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	greeted, err := m.hear(conn, name, m.cfg.RequireTLS)
	if err != nil {
		return "", fmt.Errorf("no node greets at %s: %w", address, err)
	}
	c := greeted.challenge
	m.log.Debug("identified", zap.String("address", address), zap.String("node", c.GetNode()))
	return c.GetNode(), nil
}
