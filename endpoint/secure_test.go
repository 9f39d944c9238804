package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"railyard/endpoint/session"
	"railyard/internal/certs"
	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rail/tcp"
	"railyard/rma"
	"railyard/wire"
)

func authority(t testing.TB) *certs.Authority {
	t.Helper()
	a, err := certs.New("nodes of a test")
	require.NoError(t, err)
	return a
}

func nodeTLS(t testing.TB, a *certs.Authority, names ...string) *tls.Config {
	t.Helper()
	cfg, err := a.Node(names...)
	require.NoError(t, err)
	return cfg
}

// expired has a certificate that is of yesterday.
func expired(t testing.TB, a *certs.Authority) *tls.Config {
	cfg := nodeTLS(t, a, "127.0.0.1")
	leaf, err := a.Issue(certs.Request{Names: []string{"127.0.0.1"}, For: -time.Hour})
	require.NoError(t, err)
	cfg.Certificates = []tls.Certificate{leaf.TLS}
	return cfg
}

// nameless shows no certificate to those it dials, though it has one for those who dial it.
func nameless(t testing.TB, a *certs.Authority) *tls.Config {
	cfg := nodeTLS(t, a, "127.0.0.1")
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	return cfg
}

// says waits for a line, of level warn at least, with the words in its text or error.
func says(t testing.TB, whose string, logs *observer.ObservedLogs, words string) {
	t.Helper()
	eventually(t, whose+" log says "+words, func() (bool, any) {
		var seen []string
		for _, l := range logs.All() {
			line := l.Message
			for _, f := range l.Context {
				if err, ok := f.Interface.(error); ok {
					line += ": " + err.Error()
				}
			}
			if l.Level >= zap.WarnLevel && bytes.Contains([]byte(line), []byte(words)) {
				return true, nil
			}
			seen = append(seen, line)
		}
		return false, seen
	})
}

// Whoever is not to be let in is told so, both logs say why, and the node and the talk that it has go on as they were.
func TestTLSRefuses(t *testing.T) {
	good := authority(t)
	for _, c := range []struct {
		name     string
		a        func(t testing.TB) *tls.Config // of the newcomer, who dials; nil: it has none
		fails    string                         // in what its Connect says
		refusing string                         // in b's log
	}{
		{"a certificate of another authority", func(t testing.TB) *tls.Config {
			cfg := nodeTLS(t, authority(t), "127.0.0.1")
			cfg.RootCAs = good.Pool()
			cfg.ClientCAs = cfg.RootCAs
			return cfg
		}, "remote error: tls", "certificate signed by unknown authority"},
		{"an expired certificate", func(t testing.TB) *tls.Config { return expired(t, good) }, "remote error: tls", "expired"},
		{"a certificate for another name", func(t testing.TB) *tls.Config { return nodeTLS(t, good, "elsewhere.example") },
			"the certificate is not that of node", "the certificate is not that of node"},
		{"no certificate", func(t testing.TB) *tls.Config { return nameless(t, good) }, "remote error: tls", "didn't provide a certificate"},
		{"no TLS", func(testing.TB) *tls.Config { return nil }, "a plain rail, where this node takes TLS only",
			"a plain rail, where this node takes TLS only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			noDescriptorLeft(t)
			g := newGround(t, rail.KindTCP, 1)
			g.tls = nodeTLS(t, good, "127.0.0.1")
			seenB, observeB := observed()
			seenA, observeA := observed()
			b := launch(t, g, g.far, observeB)
			peer := launch(t, g, []rail.Binding{rail.TCP("127.0.0.1:0")})
			steady := connectTo(t, peer, b.Address())
			newcomer := launch(t, g, []rail.Binding{rail.TCP("127.0.0.1:0")}, observeA, func(cfg *Config) {
				cfg.TLS, cfg.RequireTLS, cfg.OutageLimit = c.a(t), false, 2*time.Second
			})
			_, err := newcomer.Connect(context.Background(), b.Address())
			require.ErrorIs(t, err, rma.ErrNoRoute)
			require.ErrorContains(t, err, c.fails)
			says(t, "b's", seenB, c.refusing)
			says(t, "the newcomer's", seenA, c.fails)
			require.Nil(t, b.peer(newcomer.Address()), "the newcomer has an endpoint")
			require.NoError(t, steady.Err())
			region := b.register(t, 8, rma.RemoteWrite)
			require.NoError(t, steady.Put(t.Context(), region.Key(), 0, []byte("lives on")))
		})
	}
}

// A dialer judges as strictly: it does not talk to a node whose certificate will not do, or that has none.
func TestTLSDialerRefuses(t *testing.T) {
	good := authority(t)
	for name, c := range map[string]struct {
		b        func(t testing.TB) *tls.Config
		fails    string
		refusing string // in b's log
	}{
		"a certificate of another authority": {func(t testing.TB) *tls.Config { return nodeTLS(t, authority(t), "127.0.0.1") },
			"certificate signed by unknown authority", "remote error: tls"},
		"an expired certificate":         {func(t testing.TB) *tls.Config { return expired(t, good) }, "expired", "remote error: tls"},
		"a certificate for another name": {func(t testing.TB) *tls.Config { return nodeTLS(t, good, "10.1.2.3") }, "127.0.0.1", "remote error: tls"},
		"no TLS":                         {func(testing.TB) *tls.Config { return nil }, "it offers no TLS", "it asks for TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t, rail.KindTCP, 1)
			g.tls = nodeTLS(t, good, "127.0.0.1")
			seenB, observeB := observed()
			b := launch(t, g, g.far, observeB, func(cfg *Config) { cfg.TLS, cfg.RequireTLS = c.b(t), false })
			a := launch(t, g, g.near, func(cfg *Config) { cfg.OutageLimit = 2 * time.Second })
			_, err := a.Connect(context.Background(), b.Address())
			require.ErrorContains(t, err, c.fails)
			says(t, "b's", seenB, c.refusing)
			require.Empty(t, b.all())
		})
	}
}

// Nodes that are being given TLS, one after the other, stay connected to those that have none yet.
func TestTLSMayComeLater(t *testing.T) {
	good := authority(t)
	for name, has := range map[string][2]bool{"the dialer has it": {true, false}, "the acceptor has it": {false, true}} {
		t.Run(name, func(t *testing.T) {
			side := func(i int) func(*Config) {
				return func(c *Config) {
					if has[i] {
						c.TLS = nodeTLS(t, good, "127.0.0.1")
					}
				}
			}
			bd := newBed(t, rail.KindTCP, bedSpec{a: side(0), b: side(1)})
			require.False(t, bd.ab.secured)
			bd.nobodyDown()
		})
	}
}

// A relay that rewrites the first greeting, so that neither side knows that the other has TLS, opens no plain rail: not where TLS is
// required, and not for a session that has it.
func TestTLSDowngradeIsRefused(t *testing.T) {
	g := newGround(t, rail.KindTCP, 1)
	g.tls = nodeTLS(t, authority(t), "127.0.0.1")
	relay := stripper(t)
	seen, observe := observed()
	b := launch(t, g, []rail.Binding{rail.TCP("127.0.0.1:0", rail.Advertised(relay.Addr().String()))}, observe)
	go relay.run(b.Listening()[0].Address)
	a := launch(t, g, g.near)
	require.True(t, connectTo(t, a, b.Address()).secured, "who requires TLS starts it whatever the greeting says")
	c := &caller{bd: &bed{t: t, kind: rail.KindTCP, b: b}, node: "127.0.0.1:9", session: bytes.Repeat([]byte{7}, wire.SessionSize)}
	conn := call(t, c.bd)
	h := c.hello(challenged(t, conn))
	say(t, conn, wire.KindHello, h)
	answer := &wire.Answer{}
	require.NoError(t, wire.ReadHandshake(conn, wire.KindAnswer, answer))
	require.Equal(t, wire.RefusalCode_INSECURE, answer.GetCode())
	says(t, "b's", seen, "a plain rail, where this node takes TLS only")
}

type strippingRelay struct {
	net.Listener
	t testing.TB
}

func stripper(t testing.TB) *strippingRelay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return &strippingRelay{Listener: l, t: t}
}

// run relays until the listener closes, and takes the features out of each acceptor's greeting.
func (r *strippingRelay) run(target string) {
	for {
		near, err := r.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = near.Close() }()
			far, err := net.Dial("tcp", target)
			if err != nil {
				return
			}
			defer func() { _ = far.Close() }()
			c := &wire.Challenge{}
			if wire.ReadHandshake(far, wire.KindChallenge, c) != nil {
				return
			}
			c.Features = 0
			b, err := wire.AppendHandshake(nil, wire.KindChallenge, c)
			if err != nil {
				return
			}
			if _, err := near.Write(b); err != nil {
				return
			}
			done := make(chan struct{}, 2)
			go func() { _, _ = io.Copy(far, near); _ = far.Close(); done <- struct{}{} }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close(); done <- struct{}{} }()
			<-done
			<-done
		}()
	}
}

// A join that was seen on one encrypted connection is worth nothing on another, though its sender has a good certificate.
func TestTLSReplayedJoinIsRefused(t *testing.T) {
	g := newGround(t, rail.KindTCP, 1)
	g.tls = nodeTLS(t, authority(t), "127.0.0.1")
	seen, observe := observed()
	b := launch(t, g, g.far, observe)
	c := &caller{bd: &bed{t: t, kind: rail.KindTCP, b: b}, node: "127.0.0.1:9", session: bytes.Repeat([]byte{7}, wire.SessionSize)}
	token := bytes.Repeat([]byte{3}, 32)
	key := session.Key(nil, token, c.session)
	open := func() (rail.Conn, *greeting) {
		conn := call(t, c.bd)
		m := &Manager{tls: b.tls}
		greeted, err := m.hear(conn, "127.0.0.1", true)
		require.NoError(t, err)
		return conn, greeted
	}
	conn, greeted := open()
	hello := c.hello(greeted.challenge)
	hello.Token = token
	hello.Mac = session.HelloProof(greeted.channel.proof(key), greeted.challenge, hello)
	say(t, conn, wire.KindHello, hello)
	require.NoError(t, wire.ReadHandshake(conn, wire.KindAnswer, &wire.Answer{}), "the first time it is good")

	again, _ := open()
	say(t, again, wire.KindHello, hello)
	require.Zero(t, hungUp(t, again))
	says(t, "b's", seen, "does not echo the challenge")

	fresh, other := open() // the nonce of this connection, and the proof of another one
	hello.Challenge = other.challenge.GetNonce()
	hello.Mac = session.HelloProof(greeted.channel.proof(key), other.challenge, hello)
	say(t, fresh, wire.KindHello, hello)
	require.Zero(t, hungUp(t, fresh))
	says(t, "b's", seen, "does not prove that it knows the secret")
}

// What is written over an encrypted rail is not on the wire: the cable sees no run of it.
func TestTLSHidesWhatIsWritten(t *testing.T) {
	for kind, visible := range map[string]bool{rail.KindTCP: true, kindTLS: false} {
		bd := newBed(t, kind, bedSpec{rails: 1})
		require.Equal(t, !visible, bd.ab.secured)
		require.Equal(t, !visible, bd.back().secured)
		secret := bytes.Repeat([]byte("what nobody may read. "), 1000)
		region := bd.b.register(t, len(secret), rma.RemoteWrite)
		cable := bd.cables[0].(*forwarder)
		cable.BlackHole(forth) // it keeps what is sent
		op := bd.ab.StartPut(region.Key(), 0, secret)
		eventually(t, "the cable has the put", func() (bool, any) { return cable.Held() > uint64(len(secret)), cable.Held() })
		require.Equal(t, visible, bytes.Contains(cable.keeps(), secret[:200]), kind)
		cable.Heal()
		<-op.Done()
		require.NoError(t, op.Err())
	}
}

// keeps gives the bytes that wait in black holes on their way forth.
func (f *forwarder) keeps() (all []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.pairs {
		l := p.ways[0]
		l.mu.Lock()
		all = append(all, l.kept...)
		l.mu.Unlock()
	}
	return all
}

// Rails that cannot be encrypted are no use beside RequireTLS: the node says so instead of coming up without any.
func TestRequireTLSRefusesKindsThatCannotBeEncrypted(t *testing.T) {
	tlsConfig := nodeTLS(t, authority(t), "127.0.0.1")
	g := newGround(t, railtest.KindPipe, 1)
	g.kinds[rail.KindTCP] = tcp.New(tcp.Config{})
	g.near = append(g.near, rail.TCP("127.0.0.1:0"))
	system := actor.NewActorSystem()
	defer system.Shutdown()
	cfg := Config{System: system, Host: newWitness(), Kinds: g.kinds, Bindings: g.near, TLS: tlsConfig, RequireTLS: true, Links: noLinks}
	m, err := Start(cfg)
	require.Nil(t, m)
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "RequireTLS is true, and rail 0 of Rails")
	require.ErrorContains(t, err, `kind "pipe"`)

	cfg.Bindings = g.near[1:]
	m, err = Start(cfg)
	require.NoError(t, err, "the kind is no hindrance where no rail is of it")
	require.NoError(t, m.Shutdown(t.Context()))
}

// A node that anybody may reach and join says so once, naming the first such rail; one on loopback does not, nor one with a secret or TLS.
func TestOpenRailsAreWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		rails []string
		with  func(*Config)
		names string
	}{
		"loopback":    {rails: []string{"127.0.0.1:1", "[::1]:1"}},
		"open":        {rails: []string{"192.0.2.1:1", "192.0.2.2:1"}, names: "192.0.2.1:1"},
		"one is open": {rails: []string{"127.0.0.1:1", "[2001:db8::1]:1"}, names: "[2001:db8::1]:1"},
		"secret":      {rails: []string{"192.0.2.1:1"}, with: func(c *Config) { c.Secret = callerSecret }},
		"TLS":         {rails: []string{"192.0.2.1:1"}, with: func(c *Config) { c.TLS = nodeTLS(t, authority(t), "192.0.2.1") }},
	} {
		t.Run(name, func(t *testing.T) {
			core, seen := observer.New(zap.WarnLevel)
			g := newGround(t, railtest.KindPipe, 1) // it takes any address: no traffic leaves the process
			var bindings []rail.Binding
			for _, address := range c.rails {
				bindings = append(bindings, rail.Binding{Kind: railtest.KindPipe, Address: address})
			}
			launch(t, g, bindings, func(cfg *Config) { cfg.Logger = zap.New(core) }, c.with)
			lines := seen.FilterMessageSnippet("no Secret and no TLS").All()
			if c.names == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Equal(t, c.names, lines[0].ContextMap()["address"])
		})
	}
}
