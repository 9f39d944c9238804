package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/wire"
)

// What the dialer of a fuzzed handshake does: each step is one of these bytes, some with bytes behind them.
const (
	sayHello   = 'h' // as a peer with the secret would
	sayConfirm = 'c' // likewise, after our answer
	sayForged  = 'f' // a hello proved with another secret
	sayOld     = 'o' // a true hello, to the challenge of an earlier connection
	sayLie     = 'l' // a true hello, changed after its proof was made; next: which bytes
	sayJoin    = 'j' // a join of a session that is there, without its key
	sayFirst   = 'p' // a first hello in the name of a peer that is there, without the secret
	sayWrong   = 'w' // a confirm that proves nothing
	sayAnswer  = 'a' // what only we may say
	sayGreet   = 'g'
	sayRaw     = 'r' // next: how many of the bytes behind it, as they are
	hearAnswer = 'n'
)

// untouchedRail is a rail that no peer uses: only a stranger's hello names it.
const untouchedRail = 41

// stranger is the dialer's end of one fuzzed handshake.
type stranger struct {
	conn  rail.Conn
	m     *Manager
	peer  *Endpoint // to a peer that is there, at the node under test
	old   *wire.Challenge
	now   *wire.Challenge
	node  string
	key   []byte
	hello *wire.Hello // the last that was true, and to this challenge
	// frames that went out so far, and whether they were a true hello alone, or that and its confirm.
	frames         int
	proved, agreed bool
}

// FuzzHandshake feeds the acceptor any frames in any order, most of them nearly right. Whatever comes, it does not panic, closes
// the connection and ends; and but for a true hello to its own nonce nothing changes: no endpoint is made, the one that is there
// keeps its session, no generation is reserved.
func FuzzHandshake(f *testing.F) {
	secret := []byte("a secret of all nodes")
	bd := newBed(f, railtest.KindPipe, bedSpec{rails: 1, both: func(c *Config) {
		c.Secret = secret
		c.HandshakeTimeout = 2 * time.Second
	}})
	m := bd.b.Manager
	network := railtest.NewNetwork()
	ears, err := network.Kind().Listen(context.Background(), rail.Binding{Kind: railtest.KindPipe, Address: "here:1"})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, ears.Close()) })
	old := challengeOf(f, m, network, ears)

	for _, seed := range []string{
		"hnc", "hc", "hnw", "h", "", "c", "n", "f", "ofnc", "o", "oh", "j", "jnc", "p", "pnc", "a", "g", "ghc", "hh", "hnhc", "hncc", "fh",
		"l\x00", "l\x09", "l\x30", "l\x50hnc", "r\x04abcd", "r\x40" + string(make([]byte, 64)),
	} {
		f.Add([]byte(seed))
	}
	challenge := &wire.Challenge{Version: 1, Nonce: make([]byte, 32), Node: m.address, Incarnation: m.incarnation[:]}
	whole := frame(f, wire.KindHello, forged(secret, m, challenge))
	for _, n := range []int{1, wire.HeaderSize - 1, wire.HeaderSize, wire.HeaderSize + 20, 255} { // true frames, cut off
		f.Add(append([]byte{sayRaw, byte(n)}, whole[:n]...))
	}
	for i, k := range []wire.Kind{wire.KindBeat, wire.KindAck, wire.KindBatch, wire.KindRetired, wire.KindGoodbye, wire.KindChunk} {
		data := make([]byte, wire.HeaderSize)
		data[0] = byte(k)
		f.Add(slices.Concat([]byte{sayRaw, wire.HeaderSize}, data, []byte("hnc"[:i%4])))
	}

	friend := bd.back()
	strangers := 0
	f.Fuzz(func(t *testing.T, script []byte) {
		strangers++
		s := &stranger{m: m, peer: friend, old: old, key: secret, node: fmt.Sprintf("stranger-%d:1", strangers)}
		before := stateOf(m, s.peer)
		end := make(chan error, 1)
		s.conn = dialed(t, network)
		theirs, err := ears.Accept()
		require.NoError(t, err)
		go func() {
			err := m.serve(theirs, "")
			if err != nil {
				theirs.Close()
			}
			end <- err
		}()
		s.play(t, script)
		s.conn.Close()
		var served error
		select {
		case served = <-end:
		case <-time.After(patience):
			t.Fatal("the acceptor goes on after the dialer has hung up")
		}
		made := m.peer(s.node)
		require.False(t, made != nil && !s.proved, "an endpoint for a stranger, after %q", script)
		require.False(t, served == nil && !s.agreed, "taken without a true confirm, after %q", script)
		if made != nil {
			made.end(errors.New("the fuzzer has seen enough of it"))
		}
		require.Equal(t, before, stateOf(m, s.peer), "after %q", script)
	})
}

// state is what a stranger must not change.
type state struct {
	Peers, Sessions int
	Session, Key    string
	Next            wire.Generation
	Ended           bool
}

func stateOf(m *Manager, e *Endpoint) state {
	m.mu.Lock()
	peers, sessions := len(m.peers), len(m.sessions)
	m.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return state{Peers: peers, Sessions: sessions, Session: string(e.id[:]), Key: string(e.key),
		Next: e.s.Lane(untouchedRail).NextGeneration(), Ended: e.ended != nil}
}

func dialed(t testing.TB, network *railtest.Network) rail.Conn {
	conn, err := network.Kind().Dial(context.Background(), "there:1", "here:1")
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// challengeOf has one connection greeted, and hangs up.
func challengeOf(t testing.TB, m *Manager, network *railtest.Network, ears rail.Listener) *wire.Challenge {
	near := dialed(t, network)
	far, err := ears.Accept()
	require.NoError(t, err)
	end := make(chan error, 1)
	go func() { end <- m.serve(far, "") }()
	c := &wire.Challenge{}
	require.NoError(t, wire.ReadHandshake(near, wire.KindChallenge, c))
	near.Close()
	require.Error(t, <-end)
	far.Close()
	return c
}

// forged makes the hello of a node that is no peer yet, proved with the key that a secret gives.
func forged(secret []byte, m *Manager, c *wire.Challenge) *wire.Hello {
	h := &wire.Hello{Version: wire.Version, Node: "stranger:1", Incarnation: bytes.Repeat([]byte{7}, 16), Challenge: c.GetNonce(),
		Nonce: bytes.Repeat([]byte{8}, wire.NonceSize), Target: m.address, TargetIncarnation: m.incarnation[:],
		Session: bytes.Repeat([]byte{9}, wire.SessionSize), Epoch: 1, First: true, Rail: untouchedRail, Generation: 1,
		Window: 1 << 20, MaxMessage: 1 << 19}
	h.Mac = session.HelloProof(session.Key(secret, nil, h.GetSession()), c, h)
	return h
}

func frame(t testing.TB, k wire.Kind, m proto.Message) []byte {
	b, err := wire.AppendHandshake(nil, k, m)
	require.NoError(t, err)
	return b
}

// play does what the script says, until a write or a read fails: then we have been hung up on.
func (s *stranger) play(t testing.TB, script []byte) {
	s.now = &wire.Challenge{}
	if wire.ReadHandshake(s.conn, wire.KindChallenge, s.now) != nil {
		t.Fatal("the acceptor does not speak first")
	}
	for i := 0; len(script) > 0 && i < 20; i++ {
		step := script[0]
		script = script[1:]
		if step == hearAnswer {
			// Not for long: without a hello there is nothing to hear, and the acceptor has patience.
			_ = s.conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
			if wire.ReadHandshake(s.conn, wire.KindAnswer, &wire.Answer{}) != nil {
				return
			}
			continue
		}
		var b []byte
		b, script = s.say(t, step, script)
		if len(b) == 0 {
			continue
		}
		if _, err := s.conn.Write(b); err != nil {
			return
		}
	}
	// What is still to be judged has to be read first: hanging up drops what the pipe holds.
	if s.proved || s.frames > 0 {
		_ = s.conn.SetDeadline(time.Now().Add(5 * time.Millisecond))
		_, _ = io.Copy(io.Discard, io.LimitReader(s.conn, 1<<16))
	}
}

// say gives the bytes of a step, and what is left of the script.
func (s *stranger) say(t testing.TB, step byte, script []byte) (b, rest []byte) {
	s.frames++
	next := func() byte {
		if len(script) == 0 {
			return 0
		}
		n := script[0]
		script = script[1:]
		return n
	}
	switch step {
	case sayHello:
		h := s.helloWith(s.key, s.now)
		if s.frames == 1 {
			s.proved, s.hello = true, h
		}
		b = frame(t, wire.KindHello, h)
	case sayConfirm:
		c := &wire.Confirm{}
		if s.hello != nil {
			c.Mac = session.ConfirmProof(session.Key(s.key, nil, s.hello.GetSession()), s.now, s.hello, c)
			s.agreed = s.agreed || s.frames == 2
		}
		b = frame(t, wire.KindConfirm, c)
	case sayForged:
		b = frame(t, wire.KindHello, s.helloWith([]byte("another secret"), s.now))
	case sayOld:
		b = frame(t, wire.KindHello, s.helloWith(s.key, s.old))
	case sayLie:
		h := s.helloWith(s.key, s.now)
		h.Mac[int(next())%len(h.Mac)] ^= 1 << (next() % 8)
		b = frame(t, wire.KindHello, h)
	case sayJoin:
		h := s.helloWith(s.key, s.now)
		h.First, h.Session, h.Node, h.Generation = false, s.peer.id[:], s.peer.address, 1<<20
		h.Mac = session.HelloProof(session.Key([]byte("another secret"), nil, h.GetSession()), s.now, h)
		b = frame(t, wire.KindHello, h)
	case sayFirst:
		h := s.helloWith(s.key, s.now)
		h.Node = s.peer.address
		h.Mac = session.HelloProof(session.Key([]byte("another secret"), nil, h.GetSession()), s.now, h)
		b = frame(t, wire.KindHello, h)
	case sayWrong:
		b = frame(t, wire.KindConfirm, &wire.Confirm{Mac: make([]byte, wire.MACSize)})
	case sayAnswer:
		b = frame(t, wire.KindAnswer, &wire.Answer{Nonce: s.now.GetNonce(), Code: wire.RefusalCode_BUSY})
	case sayGreet:
		b = frame(t, wire.KindChallenge, s.now)
	case sayRaw:
		n := min(int(next()), len(script))
		b, script = script[:n], script[n:]
	default:
		s.frames--
	}
	return b, script
}

// helloWith makes this stranger's hello to a challenge.
func (s *stranger) helloWith(secret []byte, c *wire.Challenge) *wire.Hello {
	h := forged(secret, s.m, c)
	h.Node = s.node
	copy(h.Session, s.node)
	h.Mac = session.HelloProof(session.Key(secret, nil, h.GetSession()), c, h)
	return h
}
