package endpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

// observed makes a node log to a list.
func observed() (*observer.ObservedLogs, func(*Config)) {
	core, logs := observer.New(zapcore.InfoLevel)
	return logs, func(c *Config) { c.Logger = zap.New(core) }
}

// call dials b's first rail as anybody may.
func call(t testing.TB, bd *bed) rail.Conn {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	local := "a0:1"
	if bd.kind == rail.KindTCP {
		local = "127.0.0.1:0"
	}
	var conn rail.Conn
	eventually(t, "b takes a call", func() (bool, any) { // many at once may be too many for its backlog
		var err error
		conn, err = bd.b.cfg.Kinds[bd.kind].Dial(ctx, local, bd.b.Listening()[0].Address)
		return err == nil, err
	})
	t.Cleanup(conn.Close)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// hungUp waits until the peer has closed the connection, and gives how many bytes came before.
func hungUp(t testing.TB, conn rail.Conn) int {
	t.Helper()
	total := 0
	b := make([]byte, 4<<10)
	for {
		n, err := conn.Read(b)
		total += n
		if err != nil {
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the connection stays open")
			require.False(t, isTimeout(err), "the connection stays open: %v", err)
			return total
		}
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// challenged reads the greeting.
func challenged(t testing.TB, conn rail.Conn) *wire.Challenge {
	t.Helper()
	c := &wire.Challenge{}
	require.NoError(t, wire.ReadHandshake(conn, wire.KindChallenge, c))
	return c
}

// Whatever comes to a rail's port: the connection is closed, one line is logged, and the node and its endpoints live on.
func TestAnyBytesOnARailsPort(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		logs, observe := observed()
		bd := newBed(t, kind, bedSpec{rails: 1, b: func(c *Config) {
			observe(c)
			c.HandshakeTimeout = 300 * time.Millisecond
		}})
		tk := startTalk(t, bd.a, bd.b, talkSpec{targets: 1, pause: time.Millisecond})
		rnd := rand.New(rand.NewPCG(1, 2))
		random := make([]byte, 100<<10)
		for i := range random {
			random[i] = byte(rnd.Uint32())
		}
		hello, err := wire.AppendHandshake(nil, wire.KindHello, (&caller{node: "x"}).hello(&wire.Challenge{Nonce: make([]byte, 32)}))
		require.NoError(t, err)
		huge := append([]byte(nil), hello[:wire.HeaderSize]...)
		copy(huge[4:], []byte{0xff, 0xff, 0xff, 0xff})
		largest := append([]byte(nil), hello[:wire.HeaderSize]...)
		copy(largest[4:], []byte{0, 0, 1, 0})
		beat := (&wire.Beat{Seq: 1}).Append(nil)
		for _, c := range []struct {
			name  string
			bytes []byte
		}{
			{"random bytes", random},
			{"zeros", make([]byte, 4096)},
			{"a header of a huge frame", huge},
			{"a header of the largest frame, and silence", largest},
			{"half a hello, and silence", hello[:len(hello)/2]},
			{"nothing", nil},
			{"an HTTP request", []byte("GET / HTTP/1.1\r\nHost: example\r\nUser-Agent: any browser of today, with a long name\r\n\r\n")},
			{"a frame of a session", beat},
			{"a hello that echoes nothing", hello},
		} {
			before := len(closedLines(logs))
			conn := call(t, bd)
			challenged(t, conn)
			_, _ = conn.Write(c.bytes) // the peer may hang up in the middle
			require.Zero(t, hungUp(t, conn), "%s is answered", c.name)
			eventually(t, c.name+" makes one line", func() (bool, any) { return len(closedLines(logs)) == before+1, closedLines(logs) })
		}
		tk.finish()
		bd.nobodyDown()
		require.Empty(t, bd.a.events.of(rail.RailDown))
		require.Len(t, bd.b.all(), 1)
	})
}

func closedLines(logs *observer.ObservedLogs) []observer.LoggedEntry {
	return logs.FilterMessageSnippet("it is no rail of a peer").FilterLevelExact(zapcore.WarnLevel).All()
}

// Callers that say nothing are bounded, and keep no peer out.
func TestIdleCallersAreBounded(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		const pending, callers = 50, 500
		bd := newBed(t, kind, bedSpec{b: func(c *Config) { c.MaxPending = pending }})
		conns := make([]rail.Conn, callers)
		most := 0
		for i := range conns {
			conns[i] = call(t, bd)
			most = max(most, bd.b.pendingHandshakes())
		}
		require.LessOrEqual(t, most, pending)
		eventually(t, "those that are too many are dropped", func() (bool, any) {
			n := bd.b.pendingHandshakes()
			return n == pending/2, n // they are all of one host
		})
		// A peer still comes in: rails reset now return.
		for _, c := range bd.cables {
			c.Reset()
		}
		eventually(t, "the rails have broken", func() (bool, any) { return len(bd.a.events.of(rail.RailDown)) >= 2, nil })
		bd.allUp()
		for _, c := range conns {
			c.Close()
		}
		eventually(t, "those that hung up are forgotten", func() (bool, any) {
			n := bd.b.pendingHandshakes()
			return n == 0, n
		})
		bd.nobodyDown()
	})
}

func (m *Manager) pendingHandshakes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.guests.all)
}

// A node with another secret hears nothing, and its Connect fails; so does one without.
func TestWrongSecretIsMetWithSilence(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		for name, secret := range map[string][]byte{"another": []byte("another secret of a node"), "none": nil} {
			t.Run(name, func(t *testing.T) {
				g := newGround(t, kind, 1)
				logs, observe := observed()
				b := launch(t, g, g.far, observe, func(c *Config) { c.Secret = []byte("the secret of all nodes") })
				a := launch(t, g, g.near, func(c *Config) { c.Secret = secret; c.OutageLimit = 500 * time.Millisecond })
				_, err := a.Connect(context.Background(), b.Address())
				require.ErrorIs(t, err, rma.ErrNoRoute)
				require.Empty(t, b.all())
				require.Zero(t, b.witness.upCount())
				require.NotEmpty(t, closedLines(logs))
			})
		}
	})
}

func (w *witness) upCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ups
}

// caller is a peer without a node: it says what a test wants it to.
type caller struct {
	bd           *bed
	node         string
	secret       []byte
	session, key []byte
	incarnation  []byte
}

var callerSecret = []byte("the secret of all nodes")

func newCaller(bd *bed) *caller {
	c := &caller{bd: bd, node: "caller:1", secret: callerSecret, session: bytes.Repeat([]byte{7}, wire.SessionSize),
		incarnation: bytes.Repeat([]byte{8}, wire.NodeIDSize)}
	c.key = session.Key(c.secret, nil, c.session)
	return c
}

// hello makes a first hello for rail 0; it proves the key where there is one.
func (c *caller) hello(ch *wire.Challenge) *wire.Hello {
	h := &wire.Hello{Version: wire.Version, Node: c.node, Incarnation: bytes.Repeat([]byte{8}, wire.NodeIDSize),
		Challenge: ch.GetNonce(), Nonce: bytes.Repeat([]byte{9}, wire.NonceSize), Target: ch.GetNode(),
		TargetIncarnation: ch.GetIncarnation(), Session: bytes.Repeat([]byte{7}, wire.SessionSize), Epoch: 1, First: true,
		Generation: 1, Window: 1 << 20, MaxMessage: 1 << 20}
	if c.key != nil {
		h.Mac = session.HelloProof(c.key, ch, h)
	}
	return h
}

// say sends a handshake frame.
func say(t testing.TB, conn rail.Conn, k wire.Kind, h *wire.Hello) {
	t.Helper()
	b, err := wire.AppendHandshake(nil, k, h)
	require.NoError(t, err)
	_, err = conn.Write(b)
	require.NoError(t, err)
}

// join dials and does the whole handshake for a rail's generation; change edits the hello before its proof.
func (c *caller) join(t testing.TB, change func(*wire.Hello)) (rail.Conn, *wire.Answer) {
	t.Helper()
	conn := call(t, c.bd)
	ch := challenged(t, conn)
	h := c.hello(ch)
	change(h)
	h.Mac = session.HelloProof(c.key, ch, h)
	say(t, conn, wire.KindHello, h)
	answer := &wire.Answer{}
	require.NoError(t, wire.ReadHandshake(conn, wire.KindAnswer, answer))
	require.True(t, session.SameProof(answer.GetMac(), session.AnswerProof(c.key, ch, h, answer)))
	if answer.GetCode() != wire.RefusalCode_OK {
		return conn, answer
	}
	confirm := &wire.Confirm{}
	confirm.Mac = session.ConfirmProof(c.key, ch, h, confirm)
	b, err := wire.AppendHandshake(nil, wire.KindConfirm, confirm)
	require.NoError(t, err)
	_, err = conn.Write(b)
	require.NoError(t, err)
	return conn, answer
}

func secretBed(t *testing.T, kind string) *bed {
	bd := newBed(t, kind, bedSpec{rails: 1, both: func(c *Config) { c.Secret = callerSecret }})
	bd.b.drain = 100 * time.Millisecond // a caller that is gone settles nothing
	return bd
}

// A hello of which anything was changed on its way is met with silence, and changes nothing.
func TestForgedHelloIsMetWithSilence(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		c := newCaller(bd)
		forgeries := map[string]func(*wire.Hello){
			"mac":           func(h *wire.Hello) { h.Mac[3] ^= 1 },
			"no mac":        func(h *wire.Hello) { h.Mac = nil },
			"node":          func(h *wire.Hello) { h.Node = bd.a.Address() },
			"rail":          func(h *wire.Hello) { h.Rail = 1 },
			"generation":    func(h *wire.Hello) { h.Generation = 3 },
			"session":       func(h *wire.Hello) { h.Session[0] ^= 1 },
			"incarnation":   func(h *wire.Hello) { h.Incarnation[0] ^= 1 },
			"window":        func(h *wire.Hello) { h.Window++ },
			"nonce":         func(h *wire.Hello) { h.Nonce[0] ^= 1 },
			"first":         func(h *wire.Hello) { h.First = false },
			"old nonce":     func(h *wire.Hello) { h.Challenge = bytes.Repeat([]byte{1}, wire.NonceSize) },
			"its own token": func(h *wire.Hello) { h.Token = bytes.Repeat([]byte{1}, 32); h.Mac[0] ^= 1 },
		}
		for name, forge := range forgeries {
			conn := call(t, bd)
			h := c.hello(challenged(t, conn))
			forge(h)
			say(t, conn, wire.KindHello, h)
			require.Zero(t, hungUp(t, conn), "a hello with another %s is answered", name)
		}
		require.Len(t, bd.b.all(), 1)
		// The true one is taken.
		conn, answer := c.join(t, func(*wire.Hello) {})
		require.Equal(t, wire.RefusalCode_OK, answer.GetCode())
		eventually(t, "the caller has an endpoint", func() (bool, any) { return bd.b.peer(c.node) != nil, nil })
		conn.Close()
		bd.nobodyDown()
	})
}

// A join that is not the newest of its rail is refused.
func TestStaleGenerationIsRefused(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		c := newCaller(bd)
		generation := func(g uint64, first bool) func(*wire.Hello) {
			return func(h *wire.Hello) { h.Generation, h.First = g, first }
		}
		_, answer := c.join(t, generation(5, true))
		require.Equal(t, wire.RefusalCode_OK, answer.GetCode())
		for _, g := range []uint64{1, 5} {
			conn, answer := c.join(t, generation(g, false))
			require.Equal(t, wire.RefusalCode_STALE_GENERATION, answer.GetCode(), "generation %d", g)
			require.Zero(t, hungUp(t, conn))
		}
		_, answer = c.join(t, generation(7, false))
		require.Equal(t, wire.RefusalCode_OK, answer.GetCode())
		bd.nobodyDown()
	})
}

// answers pings the peer on a joined connection and waits for the answer.
func answers(conn rail.Conn, seq uint64) error {
	if _, err := conn.Write((&wire.Beat{Seq: seq}).Append(nil)); err != nil {
		return err
	}
	for {
		head := make([]byte, wire.HeaderSize)
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, conn, int64(h.Body)); err != nil {
			return err
		}
		if h.Kind != wire.KindBeat {
			continue
		}
		if b, err := wire.ParseBeat(h, head); err != nil || b.Echo == seq {
			return err
		}
	}
}

// A peer that is one, and then sends what is no frame, loses that generation and nothing else.
func TestGarbageAfterTheHandshakeEndsOneGeneration(t *testing.T) {
	batch := func(records []byte, count int) []byte {
		b := append(wire.AppendBatchHeader(nil), records...)
		wire.PatchBatch(b, len(records), count)
		return b
	}
	message := wire.AppendMessage(nil, &wire.Message{Target: wire.Ref{Name: "x"}, Type: wire.Ref{Name: "y"}, Payload: []byte("z")})
	garbage := map[string][]byte{
		"random":             []byte("this is not a frame, but it is long enough to be taken for the header of one, surely"),
		"an unknown kind":    append([]byte{99}, make([]byte, 63)...),
		"a handshake":        append([]byte{byte(wire.KindConfirm)}, make([]byte, 63)...),
		"an ack of nothing":  (&wire.Ack{Count: 1000}).Append(nil),
		"an echo of nothing": (&wire.Beat{Echo: 1000}).Append(nil),
		"more than it says":  batch(append(message, message...), 1),
		"less than it says":  batch(message, 2),
		"half a record":      batch(message[:len(message)-1], 1),
		"an undefined name":  batch(wire.AppendMessage(nil, &wire.Message{Target: wire.Ref{Slot: 77}, Type: wire.Ref{Name: "y"}}), 1),
		"a message too large": batch(wire.AppendPlaceholder(nil, &wire.Placeholder{Target: wire.Ref{Name: "x"},
			Type: wire.Ref{Name: "y"}, ID: 1, Total: 1 << 40}), 1),
		"more than the window": batch(bytes.Repeat(wire.AppendPlaceholder(nil, &wire.Placeholder{Target: wire.Ref{Name: "x"},
			Type: wire.Ref{Name: "y"}, ID: 1, Total: 60 << 20}), 3), 3),
	}
	bothKinds(t, func(t *testing.T, kind string) {
		bd := secretBed(t, kind)
		tk := startTalk(t, bd.a, bd.b, talkSpec{targets: 1, pause: time.Millisecond})
		c := newCaller(bd)
		steady, answer := c.join(t, func(*wire.Hello) {})
		require.Equal(t, wire.RefusalCode_OK, answer.GetCode())
		seq := uint64(1)
		require.NoError(t, answers(steady, seq))
		generation := uint64(1)
		for name, b := range garbage {
			conn, answer := c.join(t, func(h *wire.Hello) { h.First, h.Rail, h.Generation = false, 1, generation })
			require.Equal(t, wire.RefusalCode_OK, answer.GetCode(), name)
			generation += 2
			require.NoError(t, answers(conn, 1), name)
			_, err := conn.Write(b)
			require.NoError(t, err, name)
			hungUp(t, conn)
			seq++
			require.NoError(t, answers(steady, seq), "the other rail, after %s", name)
		}
		tk.finish()
		bd.nobodyDown()
		require.Len(t, bd.b.all(), 2)
	})
}

// A peer of a later version may offer more than this node knows; one that speaks another protocol is refused in words, and logged.
func TestLaterVersions(t *testing.T) {
	logs, observe := observed()
	bd := newBed(t, rail.KindTCP, bedSpec{rails: 1, both: func(c *Config) { c.Secret = callerSecret }, b: observe})
	bd.b.drain = 100 * time.Millisecond
	c := newCaller(bd)
	_, answer := c.join(t, func(h *wire.Hello) { h.Version = wire.Version + 1 })
	require.Equal(t, wire.RefusalCode_VERSION, answer.GetCode())
	require.Contains(t, answer.GetReason(), "speaks version 2")
	says(t, "b's", logs, "speaks version 2")
	_, answer = c.join(t, func(h *wire.Hello) {
		h.Features = 1 << 40
		h.ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 1}) // field 1023: a number
	})
	require.Equal(t, wire.RefusalCode_OK, answer.GetCode())
	bd.nobodyDown()
}
