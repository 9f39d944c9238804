package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"syscall"
	"time"

	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

// listen takes connections at one device until the listener closes. device is its address as peers are told.
func (m *Manager) listen(l rail.Listener, device string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || m.closing.Load() {
				return
			}
			m.log.Warn("cannot take a connection; trying on", zap.String("address", l.Addr()), zap.Error(err))
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-m.stop:
				return
			}
		}
		if !m.admit(conn) {
			conn.Kill()
			m.track(conn.Close)
			continue
		}
		m.track(func() {
			defer m.dismiss(conn)
			err := safely(func() error { return m.serve(conn, device) })
			m.judgeCaller(conn, err)
			if err != nil {
				conn.Kill()
				conn.Close()
				m.report(conn, err)
			}
		})
	}
}

// safely calls f; a panic of it, a bug in a transport or of ours, becomes its error. It is for goroutines that no
// supervisor watches: a panic there would end the process.
func safely(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &rail.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return f()
}

// admit counts a connection whose handshake is not done; beyond the bounds another one makes room.
func (m *Manager) admit(conn rail.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing.Load() {
		return false
	}
	if host := hostOf(conn.RemoteAddr()); m.offenders.barred(host, m.now()) {
		if m.kept++; m.kept&(m.kept-1) == 0 { // a line at 1, 2, 4, 8, …
			m.log.Warn("too many handshakes with callers of a host have failed; for a while its calls are not answered",
				zap.String("host", host), zap.Uint64("calls so far, of all such hosts", m.kept))
		}
		return false
	}
	if dropped := m.guests.enter(conn, m.cfg.MaxPending); dropped != nil {
		dropped.Kill()                                          // its handshake ends, and closes it
		if m.turnedAway++; m.turnedAway&(m.turnedAway-1) == 0 { // a line at 1, 2, 4, 8, …
			m.log.Warn("more callers than MaxPending do not finish their handshake; the oldest are dropped",
				zap.Int("MaxPending", m.cfg.MaxPending), zap.Uint64("dropped", m.turnedAway))
		}
	}
	return true
}

func (m *Manager) dismiss(conn rail.Conn) {
	m.mu.Lock()
	m.guests.leave(conn)
	m.mu.Unlock()
}

// report makes one line of a handshake that failed.
func (m *Manager) report(conn rail.Conn, err error) {
	if m.closing.Load() {
		return
	}
	if errors.Is(err, errHungUp) { // it only wanted to know who is here
		m.log.Debug("a caller hung up after the greeting", zap.String("from", conn.RemoteAddr()))
		return
	}
	var refused *RefusedError
	if errors.As(err, &refused) && !refused.stranger() {
		m.log.Debug("rail refused", zap.String("from", conn.RemoteAddr()), zap.Error(err))
		return
	}
	m.caution("connection closed: it is no rail of a peer", zap.String("from", conn.RemoteAddr()),
		zap.String("at", conn.LocalAddr()), zap.Error(err))
}

// serve is the acceptor's handshake. Nothing changes before the dialer has echoed our nonce and proved the secret.
func (m *Manager) serve(conn rail.Conn, device string) error {
	if err := conn.SetDeadline(time.Now().Add(m.cfg.HandshakeTimeout)); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(m.ctx, m.cfg.HandshakeTimeout)
	defer done()
	greeted := m.now()
	g, err := m.greet(conn)
	if err != nil {
		return err
	}
	h := &wire.Hello{}
	if err := wire.ReadHandshake(conn, wire.KindHello, h); err != nil {
		return wordless(err)
	}
	if !session.Echoes(g.challenge, h) {
		return errNoEcho
	}
	a := &acceptance{m: m, c: g.challenge, channel: g.channel, h: h, conn: conn, device: device, greeted: greeted}
	return a.run(ctx)
}

// errNoEcho: a hello to another challenge than ours.
var errNoEcho = errors.New("its hello does not echo the challenge: it is old, or forged")

// wordless marks the end of the stream as that of a caller that says nothing.
func wordless(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return join(errHungUp, err)
	}
	return err
}

// errHungUp: a caller that says nothing, as one that asks who answers at an address.
var errHungUp = errors.New("hung up without a word")

// acceptance is one hello being answered.
type acceptance struct {
	m    *Manager
	c    *wire.Challenge
	h    *wire.Hello
	conn rail.Conn
	// channel is what encrypts the connection; nil: nothing does.
	channel *channel
	// device is where it came in.
	device string
	// key is the session's; proof that of the proofs on this connection.
	key, proof []byte
	e          *Endpoint
	// greeted is when we challenged it. The hello proves that its sender lived after that, and no more.
	greeted time.Duration
}

func (a *acceptance) run(ctx context.Context) error {
	m, h := a.m, a.h
	if reason := a.insecure(); reason != "" {
		return a.refuse(wire.RefusalCode_INSECURE, reason)
	}
	if err := a.authenticate(); err != nil {
		return err
	}
	if code, reason := a.check(); code != wire.RefusalCode_OK {
		return a.refuse(code, reason)
	}
	e, code, reason := a.endpoint(ctx)
	if code != wire.RefusalCode_OK {
		return a.refuse(code, reason)
	}
	if e.downgrades(a.conn, a.channel) {
		return a.refuse(wire.RefusalCode_INSECURE, "a plain rail, where the session's others are encrypted")
	}
	a.e = e
	id, g := wire.RailID(h.GetRail()), wire.Generation(h.GetGeneration())
	ok := false
	e.look(func() { ok = e.over() == nil && e.s.Lane(id).Reserve(g) })
	if !ok {
		return a.refuse(wire.RefusalCode_STALE_GENERATION, fmt.Sprintf("generation %d of rail %d is not the newest", g, id))
	}
	if err := e.fenceOlder(ctx, id, g); err != nil {
		return err
	}
	if err := a.answer(); err != nil {
		return err
	}
	if err := a.hearConfirm(); err != nil {
		return err
	}
	if err := a.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	l := e.newLink(id, g)
	m.dismiss(a.conn) // it is the rail's from here on: a shutdown must not kill it as an unfinished handshake
	if !e.submit(&accepted{
		id: id, local: a.conn.LocalAddr(), remote: h.GetLocal(),
		message: &rail.Accepted{Generation: g, Conn: a.conn, Link: l},
	}) {
		return e.Err()
	}
	return nil
}

// authenticate finds the session's key and checks the proof; a stranger hears nothing.
func (a *acceptance) authenticate() error {
	m, h := a.m, a.h
	e := m.bySession(h.GetSession())
	key, ended := m.hasEnded(h.GetSession())
	switch {
	case e != nil:
		e.mu.Lock()
		a.key = e.key
		e.mu.Unlock()
	case ended:
		a.key = key
	case h.GetFirst() && len(m.cfg.Secret) == 0 && len(h.GetToken()) < 16:
		return a.unauthentic("its first hello has no token, and this node has no secret: set the same Config.Secret on both")
	default:
		a.key = session.Key(m.cfg.Secret, h.GetToken(), h.GetSession())
	}
	a.proof = a.channel.proof(a.key)
	if len(m.cfg.Secret) == 0 && !h.GetFirst() && e == nil && !ended {
		return nil // a join to a session of an earlier life: refused below, without a proof on either side
	}
	if !session.SameProof(h.GetMac(), session.HelloProof(a.proof, a.c, h)) {
		return a.unauthentic("its hello does not prove that it knows the secret")
	}
	return nil
}

func (a *acceptance) unauthentic(reason string) error {
	return &RefusedError{Peer: a.h.GetNode(), Code: wire.RefusalCode_UNAUTHENTIC, Reason: reason}
}

// check looks at what needs no session.
func (a *acceptance) check() (wire.RefusalCode, string) {
	m, h := a.m, a.h
	switch {
	case h.GetVersion() < 1:
		return wire.RefusalCode_VERSION, "version 0"
	case h.GetVersion() > wire.Version:
		return wire.RefusalCode_VERSION, fmt.Sprintf("the caller speaks version %d of the protocol, this node %d at most",
			h.GetVersion(), wire.Version)
	case h.GetTarget() != "" && h.GetTarget() != m.address:
		return wire.RefusalCode_WRONG_NODE, "this is node " + m.address
	case len(h.GetTargetIncarnation()) > 0 && !bytes.Equal(h.GetTargetIncarnation(), m.incarnation[:]):
		return wire.RefusalCode_WRONG_NODE, "this is another incarnation"
	case h.GetNode() == "" || h.GetNode() == m.address:
		return wire.RefusalCode_WRONG_NODE, "the hello comes from this node's own address"
	case m.closing.Load():
		return wire.RefusalCode_SHUTTING_DOWN, "shutting down"
	case h.GetRail() >= maxRails:
		return wire.RefusalCode_LIMIT, fmt.Sprintf("at most %d rails between two nodes", maxRails)
	}
	return wire.RefusalCode_OK, ""
}

// endpoint finds the session that the hello belongs to, or opens it.
func (a *acceptance) endpoint(ctx context.Context) (*Endpoint, wire.RefusalCode, string) {
	m, h := a.m, a.h
	incarnation, err := wire.ParseNodeID(h.GetIncarnation())
	if err != nil {
		return nil, wire.RefusalCode_WRONG_NODE, err.Error()
	}
	for range maxTurns {
		ours, old := m.bySession(h.GetSession()), m.peer(h.GetNode())
		switch a.judge(ours, old) {
		case session.Joins:
			if ours.address != h.GetNode() {
				return nil, wire.RefusalCode_UNKNOWN_SESSION, "the session is another node's"
			}
			return ours, wire.RefusalCode_OK, ""
		case session.Opens:
			e, err := m.create(ctx, h.GetNode(), false, func(e *Endpoint) { a.adopt(e) })
			switch {
			case errors.Is(err, errPeerExists):
				continue // somebody else's has just been made
			case errors.Is(err, rma.ErrShutdown):
				return nil, wire.RefusalCode_SHUTTING_DOWN, "shutting down"
			case err != nil:
				return nil, wire.RefusalCode_LIMIT, err.Error()
			}
			return e, wire.RefusalCode_OK, ""
		case session.Replaces:
			old.replaced(incarnation)
		case session.Yields:
			old.root.Send(old.pid, &yielded{})
			return old, wire.RefusalCode_OK, ""
		case session.Busy:
			return nil, wire.RefusalCode_BUSY, "this node opens the session"
		case session.Stale:
			return nil, wire.RefusalCode_BUSY, "another session was agreed on after this caller was greeted"
		case session.Alive:
			return nil, wire.RefusalCode_OLD_SESSION_ALIVE, "the earlier session is still heard of"
		case session.Unknown:
			return nil, wire.RefusalCode_UNKNOWN_SESSION, "no such session here, or it has ended"
		}
	}
	return nil, wire.RefusalCode_BUSY, "other first sessions came at the same time"
}

// maxTurns bounds how often a first hello may find another session made meanwhile.
const maxTurns = 8

// judge decides what the hello means. Where our own attempt yields, its session is the peer's from here on.
func (a *acceptance) judge(ours, old *Endpoint) session.Verdict {
	m, h := a.m, a.h
	id := [wire.SessionSize]byte(h.GetSession())
	_, ended := m.hasEnded(id[:])
	st := session.Standing{Ours: ours != nil, First: h.GetFirst(), Ended: ended, There: old != nil, Lower: m.address < h.GetNode()}
	if old == nil {
		return st.Judge()
	}
	old.mu.Lock()
	defer old.unlock()
	if old.ended != nil { // it is just being taken out of the books
		st.There = false
		return st.Judge()
	}
	st.Agreed, st.Opener, st.Silent = old.agreed, old.opener, old.s.Silent()
	st.Fresh = a.greeted > old.agreedAt
	v := st.Judge()
	if v == session.Yields {
		m.rekey(old, id)
		a.adopt(old)
	}
	return v
}

// replaced ends the epoch: its peer has opened another.
func (e *Endpoint) replaced(by wire.NodeID) {
	e.mu.Lock()
	cause := rma.ErrPeerRestarted
	if e.incarnation == by {
		cause = rma.ErrEndpointDown
	}
	e.mu.Unlock()
	e.end(fmt.Errorf("node %s opened a new session: %w", e.address, cause))
}

// adopt makes the endpoint's session the peer's. Called with the endpoint's lock held, or before others see it.
func (a *acceptance) adopt(e *Endpoint) {
	e.opener = false
	e.id = [wire.SessionSize]byte(a.h.GetSession())
	e.key, e.agreed, e.agreedAt = a.key, true, a.m.now()
	e.secured = a.channel != nil
	e.incarnation, e.peerName = wire.NodeID(a.h.GetIncarnation()), a.h.GetName()
	e.devices = a.h.GetDevices()
	e.toldSerial = a.m.cards.current.Load().serial // the answer tells them
	e.s.SetOpener(false)
	e.s.SetPeerLimits(a.h.GetWindow(), a.h.GetMaxMessage())
}

func (a *acceptance) refuse(code wire.RefusalCode, reason string) error {
	answer := &wire.Answer{Code: code, Reason: reason, Node: a.m.address, Incarnation: a.m.incarnation[:], Nonce: a.h.GetNonce()}
	answer.Mac = session.AnswerProof(a.proof, a.c, a.h, answer)
	if err := writeHandshake(a.conn, wire.KindAnswer, answer); err != nil {
		return err
	}
	linger(a.conn)
	return &RefusedError{Peer: a.h.GetNode(), Code: code, Reason: reason}
}

// linger waits for the peer to hang up, so that killing the connection does not overtake our last words.
func linger(conn rail.Conn) {
	if err := conn.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return
	}
	var b [1]byte
	_, _ = conn.Read(b[:]) // whatever ends it
}

func (a *acceptance) answer() error {
	e := a.e
	list, err := wire.RetiredOf(a.h.GetFenced())
	if err != nil {
		return err
	}
	var union []wire.Retired
	var cfg session.Config
	local := e.m.cards.current.Load()
	err = errBroken // where this has a bug
	e.locked(func(now time.Duration) {
		cfg = e.s.Config()
		e.toldSerial = max(e.toldSerial, local.serial)
		union, err = e.s.ExchangeFenced(now, list)
	})
	if err != nil {
		return err
	}
	answer := &wire.Answer{
		Code: wire.RefusalCode_OK, Node: a.m.address, Incarnation: a.m.incarnation[:], Name: a.m.cfg.Name,
		Nonce: a.h.GetNonce(), Session: a.h.GetSession(), Epoch: a.h.GetEpoch(), Devices: local.told,
		Serial: local.serial, Device: a.device,
		Fenced: wire.FencedOf(union), Window: cfg.Window, MaxMessage: cfg.MaxMessage,
	}
	answer.Mac = session.AnswerProof(a.proof, a.c, a.h, answer)
	return writeHandshake(a.conn, wire.KindAnswer, answer)
}

func (a *acceptance) hearConfirm() error {
	confirm := &wire.Confirm{}
	if err := wire.ReadHandshake(a.conn, wire.KindConfirm, confirm); err != nil {
		return err
	}
	if !session.SameProof(confirm.GetMac(), session.ConfirmProof(a.proof, a.c, a.h, confirm)) {
		return a.unauthentic("its confirmation does not prove that it knows the secret")
	}
	list, err := wire.RetiredOf(confirm.GetFenced())
	if err != nil {
		return err
	}
	err = errBroken // where this has a bug
	a.e.locked(func(now time.Duration) { _, err = a.e.s.ExchangeFenced(now, list) })
	return err
}
