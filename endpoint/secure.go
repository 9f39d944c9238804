package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/wire"
)

// This file: TLS on rails. The acceptor greets in the clear and says in the features whether it takes TLS, and whether it takes nothing
// else; a dialer that has TLS starts it at once, and all that counts, a fresh greeting first of all, goes inside.

const (
	// protocolName is what both ends agree on inside TLS: a certificate for something else at the same host opens no rail.
	protocolName = "railyard/1"
	// exporterLabel names the secret that both ends of one TLS connection share and nobody between them has.
	exporterLabel = "EXPORTER-railyard-rail"
	// tlsRecord is the first byte of every TLS handshake; that of a frame is its kind.
	tlsRecord = 22
)

// channel is what TLS has established on a connection; nil: the connection is plain.
type channel struct {
	exporter []byte
	peer     *x509.Certificate
}

// greeting is how an acceptor has spoken first, and in what.
type greeting struct {
	challenge *wire.Challenge
	channel   *channel
}

// proof is the key of a connection's proofs: the session's, bound to the connection where that is encrypted (rule 8).
func (c *channel) proof(key []byte) []byte {
	if c == nil {
		return key
	}
	return session.Bind(key, c.exporter)
}

// names tells whether the peer's certificate is for the host of a node's address, or for the one name that all nodes have.
func (c *channel) names(node, shared string) error {
	if shared == "" {
		shared = hostOf(node)
	}
	return c.peer.VerifyHostname(shared)
}

// checkTLS sees whether rails can be as RequireTLS wants them: a node all of whose rails are refused is better not started.
func (c *Config) checkTLS() error {
	if !c.RequireTLS {
		return nil
	}
	if c.TLS == nil {
		return fmt.Errorf("%w: RequireTLS is true and TLS is nil: give TLS a certificate and the authorities to trust", ErrConfig)
	}
	for i, b := range c.Bindings {
		if !secures(c.Kinds[b.Kind]) {
			return fmt.Errorf("%w: RequireTLS is true, and rail %d of Rails (%s) is of kind %q, which cannot be encrypted: "+
				"leave one of them out", ErrConfig, i, b, b.Kind)
		}
	}
	return nil
}

// secures tells whether connections of a kind can be encrypted.
func secures(k rail.Kind) bool {
	s, can := k.(rail.SecurableKind)
	return can && s.Secures()
}

// hardened makes the settings in force of a user's: TLS 1.3, both ends have a certificate, no session outlives its connection.
func hardened(cfg *tls.Config) (*tls.Config, error) {
	if cfg == nil {
		return nil, nil
	}
	refuse := func(why string) error { return fmt.Errorf("%w: TLS: %s", ErrConfig, why) }
	switch {
	case cfg.MaxVersion != 0 && cfg.MaxVersion < tls.VersionTLS13:
		return nil, refuse("MaxVersion is below TLS 1.3, the only version that rails speak: leave it 0")
	case len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil:
		return nil, refuse("it has no certificate: both ends of a rail show one (Certificates, or GetCertificate)")
	case cfg.InsecureSkipVerify && cfg.VerifyConnection == nil:
		return nil, refuse("InsecureSkipVerify without VerifyConnection lets everybody in: give RootCAs, or a VerifyConnection")
	}
	c := cfg.Clone()
	c.MinVersion, c.MaxVersion, c.NextProtos = tls.VersionTLS13, 0, []string{protocolName}
	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil
	c.DynamicRecordSizingDisabled = true // rails carry bulk
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	if c.ClientAuth != tls.RequireAnyClientCert || c.VerifyConnection == nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			got, err := get(hello)
			if got == nil || err != nil {
				return nil, err
			}
			return hardened(got)
		}
	}
	return c, nil
}

// offer is what the acceptor's first frame says of TLS on this connection.
func (m *Manager) offer(conn rail.Conn) uint64 {
	if _, can := conn.(rail.Securable); !can || m.tls == nil {
		return wire.Features
	}
	if m.cfg.RequireTLS {
		return wire.Features | wire.FeatureTLS | wire.FeatureTLSOnly
	}
	return wire.Features | wire.FeatureTLS
}

// secure starts TLS. name is that of the peer, which the dialer knows.
func (m *Manager) secure(conn rail.Securable, name string, dialer bool) (*channel, error) {
	cfg := m.tls
	if dialer {
		cfg = expecting(cfg, name)
	}
	state, err := conn.Secure(cfg, dialer)
	if err != nil {
		linger(conn) // our alert says why
		return nil, err
	}
	if state.NegotiatedProtocol != protocolName || len(state.PeerCertificates) == 0 {
		return nil, fmt.Errorf("%s speaks TLS, but not that of rails (%s)", conn.RemoteAddr(), protocolName)
	}
	exporter, err := state.ExportKeyingMaterial(exporterLabel, nil, 32)
	if err != nil {
		return nil, fmt.Errorf("TLS with %s yields no key for proofs: %w", conn.RemoteAddr(), err)
	}
	return &channel{exporter: exporter, peer: state.PeerCertificates[0]}, nil
}

// expecting makes a dialer's settings: the peer must have the name, unless all nodes have one.
func expecting(shared *tls.Config, name string) *tls.Config {
	cfg := shared.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = name
	}
	further := cfg.VerifyConnection
	cfg.VerifyConnection = func(state tls.ConnectionState) error { // also where the user's own checks are the only ones
		if len(state.PeerCertificates) == 0 {
			return errors.New("it shows no certificate")
		}
		if err := state.PeerCertificates[0].VerifyHostname(cfg.ServerName); err != nil {
			return err
		}
		if further != nil {
			return further(state)
		}
		return nil
	}
	return cfg
}

// doubt says in the log that the two ends do not go together: an outage alone would not.
func (m *Manager) doubt(peer string, err error) {
	var refused *RefusedError
	var distrust *distrustError
	if errors.As(err, &distrust) || errors.As(err, &refused) && refused.stranger() {
		m.caution("no rail: this node and its peer do not go together", zap.String("peer", peer), zap.Error(err))
	}
}

// distrustError is TLS that one of the two ends has refused.
type distrustError struct{ err error }

func (d *distrustError) Error() string { return "no TLS: " + d.err.Error() }

func (d *distrustError) Unwrap() error { return d.err }

// greet is the acceptor's first word, said again inside TLS where the dialer starts that.
func (m *Manager) greet(conn rail.Conn) (*greeting, error) {
	c, err := m.challenge(conn)
	if err != nil {
		return nil, err
	}
	sec, can := conn.(rail.Securable)
	if !can {
		return &greeting{challenge: c}, nil
	}
	first, err := sec.Peek()
	switch {
	case err != nil:
		return nil, wordless(err)
	case first != tlsRecord:
		return &greeting{challenge: c}, nil
	case m.tls == nil:
		return nil, errors.New("it asks for TLS, which this node does not have: set Config.TLS on both")
	}
	ch, err := m.secure(sec, "", false)
	if err != nil {
		return nil, err
	}
	c, err = m.challenge(conn)
	return &greeting{challenge: c, channel: ch}, err
}

func (m *Manager) challenge(conn rail.Conn) (*wire.Challenge, error) {
	c := &wire.Challenge{Version: wire.Version, Features: m.offer(conn), Nonce: make([]byte, wire.NonceSize),
		Node: m.address, Incarnation: m.incarnation[:], Name: m.cfg.Name}
	m.random(c.Nonce)
	return c, writeHandshake(conn, wire.KindChallenge, c)
}

// hear is the dialer's side of greet. name is the host that the peer's certificate must have; must: a plain rail will not do.
func (m *Manager) hear(conn rail.Conn, name string, must bool) (*greeting, error) {
	c := &wire.Challenge{}
	if err := wire.ReadHandshake(conn, wire.KindChallenge, c); err != nil {
		return nil, err
	}
	sec, can := conn.(rail.Securable)
	if !can && m.cfg.RequireTLS {
		return nil, &RefusedError{Peer: c.GetNode(), Code: wire.RefusalCode_INSECURE,
			Reason: "rails of this kind are not encrypted, and this node takes no others (RequireTLS)"}
	}
	if m.tls == nil || !can {
		return &greeting{challenge: c}, nil
	}
	offered := c.GetFeatures()&wire.FeatureTLS != 0
	if !offered && !must {
		return &greeting{challenge: c}, nil
	}
	ch, err := m.secure(sec, name, true) // also where it cannot succeed: so that the other end's log says why, too
	if err != nil && !offered {
		return nil, &RefusedError{Peer: c.GetNode(), Code: wire.RefusalCode_INSECURE,
			Reason: "it offers no TLS, and this node takes no plain rail to it: set Config.TLS on both"}
	}
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", c.GetNode(), &distrustError{err})
	}
	inside := &wire.Challenge{}
	if err := wire.ReadHandshake(conn, wire.KindChallenge, inside); err != nil {
		return nil, fmt.Errorf("node %s did not accept our side: %w", c.GetNode(), &distrustError{err})
	}
	return &greeting{challenge: inside, channel: ch}, nil
}

// insecure is what is wrong with how a hello came; empty: nothing.
func (a *acceptance) insecure() string {
	m := a.m
	switch {
	case a.channel != nil:
		if err := a.channel.names(a.h.GetNode(), m.tls.ServerName); err != nil {
			return fmt.Sprintf("the certificate is not that of node %s: %s", a.h.GetNode(), err)
		}
	case m.cfg.RequireTLS:
		return "a plain rail, where this node takes TLS only: set Config.TLS on both"
	case m.tls != nil && a.h.GetFeatures()&wire.FeatureTLS != 0:
		return "a plain rail, though both nodes have TLS: somebody between them has changed the greeting"
	}
	return ""
}

// downgrades tells whether a plain connection wants to join a session that was agreed on inside TLS.
func (e *Endpoint) downgrades(conn rail.Conn, ch *channel) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, can := conn.(rail.Securable)
	return can && ch == nil && e.agreed && e.secured
}

// mustSecure tells whether a plain rail to the peer is out of the question.
func (e *Endpoint) mustSecure() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.m.cfg.RequireTLS || e.agreed && e.secured
}

// hostOf gives the host of an address "host:port"; the address itself where it has no port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// warnOpen says once that whoever reaches this node may be its peer.
func (m *Manager) warnOpen() {
	if m.tls != nil || len(m.cfg.Secret) > 0 {
		return
	}
	for _, b := range m.Listening() {
		if ip := net.ParseIP(hostOf(b.Address)); ip == nil || ip.IsLoopback() {
			continue
		}
		m.log.Warn("no Secret and no TLS: whoever reaches this node may be its peer, and read what passes; "+
			"set Config.Secret or Config.TLS on all nodes", zap.String("address", b.Address))
		return
	}
}
