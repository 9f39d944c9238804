package endpoint

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
	"railyard/wire"
)

// This file: a peer of version 1 as it was before any feature was added. What it says is recorded in testdata/version1, byte by byte, and
// what it proves is computed here, by nothing that the package itself uses. Nodes are restarted one by one when they are given a
// new program: each must talk to it.

// recorded gives a frame of that peer.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/version1/" + name + ".hex")
	require.NoError(t, err)
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	require.NoError(t, err)
	return b
}

// as reads a recorded handshake frame.
func as[M proto.Message](t testing.TB, name string, k wire.Kind, m M) M {
	t.Helper()
	require.NoError(t, wire.ReadHandshake(strings.NewReader(string(recorded(t, name))), k, m))
	return m
}

// elder makes the proofs of version 1.
type elder struct{ key []byte }

func newElder(secret, session []byte) elder {
	return elder{elderMAC(secret, append([]byte("railyard session key 1"), elderField(session)...))}
}

func elderMAC(key, b []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(b)
	return m.Sum(nil)
}

func elderField(b []byte) []byte { return append(elderNumber(uint64(len(b))), b...) }

func elderNumber(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// proof is what a frame of a role proves; the frame's own fields are behind what all of them have in common.
func (e elder) proof(role string, c *wire.Challenge, h *wire.Hello, own ...[]byte) []byte {
	var all []byte
	for _, f := range [][]byte{[]byte(role), c.GetNonce(), h.GetNonce(), []byte(h.GetNode()), h.GetIncarnation(),
		[]byte(h.GetTarget()), h.GetTargetIncarnation(), h.GetSession()} {
		all = append(all, elderField(f)...)
	}
	first := uint64(0)
	if h.GetFirst() {
		first = 1
	}
	for _, n := range []uint64{h.GetEpoch(), first, uint64(h.GetRail()), h.GetGeneration()} {
		all = append(all, elderNumber(n)...)
	}
	for _, b := range own {
		all = append(all, b...)
	}
	return elderMAC(e.key, all)
}

// Nothing of these tests has fenced generations: the list is empty.
var noneFenced = elderNumber(0)

func (e elder) hello(c *wire.Challenge, h *wire.Hello) []byte {
	return e.proof("hello", c, h, elderNumber(h.GetWindow()), elderNumber(h.GetMaxMessage()), noneFenced)
}

func (e elder) answer(c *wire.Challenge, h *wire.Hello, a *wire.Answer) []byte {
	own := [][]byte{elderNumber(uint64(a.GetCode())), elderField([]byte(a.GetNode())), elderField(a.GetIncarnation()),
		elderNumber(a.GetWindow()), elderNumber(a.GetMaxMessage()), noneFenced, elderNumber(a.GetSerial()), elderField([]byte(a.GetDevice()))}
	for _, d := range a.GetDevices() {
		own = append(own, elderField([]byte(d.GetKind())), elderField([]byte(d.GetAddress())))
	}
	return e.proof("answer", c, h, own...)
}

func (e elder) confirm(c *wire.Challenge, h *wire.Hello) []byte {
	return e.proof("confirm", c, h, noneFenced)
}

// What was recorded is read, and what is said with the same content are the same bytes.
func TestFramesOfVersion1(t *testing.T) {
	for name, x := range map[string]struct {
		kind wire.Kind
		m    proto.Message
	}{
		"challenge": {wire.KindChallenge, &wire.Challenge{}}, "hello": {wire.KindHello, &wire.Hello{}},
		"answer": {wire.KindAnswer, &wire.Answer{}}, "confirm": {wire.KindConfirm, &wire.Confirm{}},
	} {
		as(t, name, x.kind, x.m)
		require.Empty(t, x.m.ProtoReflect().GetUnknown(), name)
		b, err := wire.AppendHandshake(nil, x.kind, x.m)
		require.NoError(t, err)
		require.Equal(t, recorded(t, name), b, name)
	}
	c, h := as(t, "challenge", wire.KindChallenge, &wire.Challenge{}), as(t, "hello", wire.KindHello, &wire.Hello{})
	e := newElder(callerSecret, h.GetSession())
	require.Equal(t, e.hello(c, h), h.GetMac(), "the recorded proofs are those of this file")
	a := as(t, "answer", wire.KindAnswer, &wire.Answer{})
	require.Equal(t, e.answer(c, h, a), a.GetMac())
	require.Equal(t, e.confirm(c, h), as(t, "confirm", wire.KindConfirm, &wire.Confirm{}).GetMac())
	require.Equal(t, e.hello(c, h), session.HelloProof(e.key, c, h), "the proofs of today are the same")
	require.Equal(t, e.answer(c, h, a), session.AnswerProof(e.key, c, h, a))
}

// A dialer of version 1 opens a session, and a message of its arrives and is acknowledged.
func TestADialerOfVersion1IsServed(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		conn := call(t, bd)
		c := challenged(t, conn)
		h := as(t, "hello", wire.KindHello, &wire.Hello{})
		h.Challenge, h.Target, h.TargetIncarnation = c.GetNonce(), c.GetNode(), c.GetIncarnation()
		e := newElder(callerSecret, h.GetSession())
		h.Mac = e.hello(c, h)
		say(t, conn, wire.KindHello, h)
		a := &wire.Answer{}
		require.NoError(t, wire.ReadHandshake(conn, wire.KindAnswer, a))
		require.Equal(t, wire.RefusalCode_OK, a.GetCode(), a.GetReason())
		require.Equal(t, e.answer(c, h, a), a.GetMac())
		confirm, err := wire.AppendHandshake(nil, wire.KindConfirm, &wire.Confirm{Mac: e.confirm(c, h)})
		require.NoError(t, err)
		_, err = conn.Write(append(confirm, recorded(t, "batch")...))
		require.NoError(t, err)
		eventually(t, "its message arrives", func() (bool, any) { return bd.b.arrived("elder") == 1, bd.b.faults() })
		heardAck(t, conn)
	})
}

// heardAck reads frames, all of them such as version 1 knows, until one acknowledges something.
func heardAck(t *testing.T, conn rail.Conn) {
	t.Helper()
	for {
		head := make([]byte, wire.HeaderSize)
		readFull(t, conn, head)
		h, err := wire.ParseHeader(head)
		require.NoError(t, err)
		require.Contains(t, []wire.Kind{wire.KindBeat, wire.KindAck, wire.KindCredit}, h.Kind, "a peer that was offered nothing")
		body := make([]byte, h.Body)
		readFull(t, conn, body)
		if h.Kind != wire.KindAck {
			continue
		}
		f, err := wire.ParseAck(h, head, body)
		require.NoError(t, err)
		if f.Count == 1 {
			return
		}
	}
}

func readFull(t *testing.T, conn rail.Conn, b []byte) {
	t.Helper()
	for at := 0; at < len(b); {
		n, err := conn.Read(b[at:])
		require.NoError(t, err)
		at += n
	}
}

// An acceptor of version 1 is dialed, and told nothing that it does not know.
func TestAnAcceptorOfVersion1IsDialed(t *testing.T) {
	g := newGround(t, railtest.KindPipe, 1)
	ears, err := g.kinds[railtest.KindPipe].Listen(t.Context(), g.far[0])
	require.NoError(t, err)
	a := launch(t, g, g.near, func(c *Config) { c.Secret, c.OutageLimit = callerSecret, 5*time.Second })
	a.drain = 100 * time.Millisecond
	says := elderWords{as(t, "challenge", wire.KindChallenge, &wire.Challenge{}), as(t, "answer", wire.KindAnswer, &wire.Answer{})}
	served := make(chan error, 1)
	go func() { served <- says.accept(ears) }()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	e, err := a.Connect(ctx, g.far[0].Address)
	require.NoError(t, err)
	require.NoError(t, e.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte("to an elder")}))
	require.NoError(t, <-served)
	require.NoError(t, ears.Close())
}

// elderWords are what an acceptor of version 1 says.
type elderWords struct {
	challenge *wire.Challenge
	answer    *wire.Answer
}

// accept answers whoever asks who is there, shakes hands once, and hears a message.
func (w *elderWords) accept(ears rail.Listener) error {
	w.challenge.Node = ears.Addr()
	for {
		conn, err := ears.Accept()
		if err != nil {
			return err
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := rand.Read(w.challenge.Nonce); err != nil {
			return err
		}
		h := &wire.Hello{}
		err = writeHandshake(conn, wire.KindChallenge, w.challenge)
		if err == nil {
			err = wire.ReadHandshake(conn, wire.KindHello, h)
		}
		if err == nil {
			err = w.serve(conn, h)
			conn.Close()
			return err
		}
		conn.Close() // it only asked
	}
}

func (w *elderWords) serve(conn rail.Conn, h *wire.Hello) error {
	c, a, e := w.challenge, w.answer, newElder(callerSecret, h.GetSession())
	if !bytes.Equal(e.hello(c, h), h.GetMac()) {
		return errors.New("the hello proves nothing to version 1")
	}
	a.Node, a.Nonce, a.Session, a.Devices[0].Address = c.GetNode(), h.GetNonce(), h.GetSession(), c.GetNode()
	a.Mac = e.answer(c, h, a)
	if err := writeHandshake(conn, wire.KindAnswer, a); err != nil {
		return err
	}
	confirm := &wire.Confirm{}
	if err := wire.ReadHandshake(conn, wire.KindConfirm, confirm); err != nil {
		return err
	}
	if !bytes.Equal(e.confirm(c, h), confirm.GetMac()) {
		return errors.New("the confirmation proves nothing to version 1")
	}
	s, err := session.New(session.Config{}, rma.NewTable(nil, 0))
	if err != nil {
		return err
	}
	g := s.Lane(wire.RailID(h.GetRail())).Attach(0, wire.Generation(h.GetGeneration()), nil)
	for {
		var in rma.Scatter
		if err := g.Want(0, &in); err != nil {
			return err
		}
		n, err := conn.Read(in.First)
		if err != nil {
			return err
		}
		d, err := g.Got(0, &in, n)
		if err != nil || len(d) > 0 {
			return err
		}
	}
}
