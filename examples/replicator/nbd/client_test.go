package nbd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// client speaks NBD as bytes, so that it can also speak it wrongly.
type client struct {
	t          testing.TB
	conn       net.Conn
	structured bool
	size       uint64
	flags      uint16
}

// serving starts a server at a socket, which stops with the test.
func serving(t testing.TB, cfg Config) (s *Server, address string) {
	t.Helper()
	s, address, stop := startServer(t, cfg)
	t.Cleanup(stop)
	return s, address
}

func startServer(t testing.TB, cfg Config) (s *Server, address string, stop func()) {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "nbd")
	listener, err := Listen(context.Background(), "unix:"+path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	return s, path, sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("the server did not stop")
		}
	})
}

// greeted is a client after the greeting.
func greeted(t testing.TB, address string) *client {
	t.Helper()
	conn, err := net.Dial("unix", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	c := &client{t: t, conn: conn}
	hello := c.bytes(18)
	require.Equal(t, "NBDMAGICIHAVEOPT", string(hello[:16]))
	require.Equal(t, uint16(3), binary.BigEndian.Uint16(hello[16:]))
	c.send(uint32(3))
	return c
}

// connected is a client that has chosen an export.
func connected(t testing.TB, address string, structured bool) *client {
	t.Helper()
	c := greeted(t, address)
	if structured {
		c.option(optStructuredReply, nil)
		kind, _ := c.optionReply(optStructuredReply)
		require.Equal(t, repAck, kind)
		c.structured = true
	}
	c.enter("")
	return c
}

// enter chooses an export by GO.
func (c *client) enter(name string) {
	c.t.Helper()
	c.option(optGo, wantInfo(name, infoBlockSize))
	for {
		kind, data := c.optionReply(optGo)
		if kind == repAck {
			return
		}
		require.Equal(c.t, repInfo, kind, "%q", data)
		if binary.BigEndian.Uint16(data) == infoExport {
			c.size, c.flags = binary.BigEndian.Uint64(data[2:]), binary.BigEndian.Uint16(data[10:])
		}
	}
}

func wantInfo(name string, wants ...uint16) []byte {
	return pack(uint32(len(name)), []byte(name), uint16(len(wants)), wants)
}

// pack puts numbers and bytes behind each other as the protocol does.
func pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.BigEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func (c *client) send(values ...any) {
	c.t.Helper()
	_, err := c.conn.Write(pack(values...))
	require.NoError(c.t, err)
}

func (c *client) bytes(n int) []byte {
	c.t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(c.conn, b)
	require.NoError(c.t, err)
	return b
}

func (c *client) option(o option, data []byte) {
	c.t.Helper()
	c.send(magicOption, uint32(o), uint32(len(data)), data)
}

func (c *client) optionReply(o option) (optReply, []byte) {
	c.t.Helper()
	head := c.bytes(20)
	require.Equal(c.t, magicOptReply, binary.BigEndian.Uint64(head))
	require.Equal(c.t, uint32(o), binary.BigEndian.Uint32(head[8:]))
	return optReply(binary.BigEndian.Uint32(head[12:])), c.bytes(int(binary.BigEndian.Uint32(head[16:])))
}

// startTLS goes over to TLS.
func (c *client) startTLS(cfg *tls.Config) {
	c.t.Helper()
	c.option(optStartTLS, nil)
	kind, data := c.optionReply(optStartTLS)
	require.Equal(c.t, repAck, kind, "%q", data)
	inner := tls.Client(c.conn, cfg)
	require.NoError(c.t, inner.Handshake())
	c.conn = inner
}

func (c *client) request(q request, payload ...[]byte) {
	c.t.Helper()
	c.send(requestBytes(q), bytes.Join(payload, nil))
}

func requestBytes(q request) []byte {
	return pack(magicRequest, q.flags, uint16(q.command), q.cookie, q.offset, q.length)
}

// answer is what came for a request.
type answer struct {
	cookie uint64
	result code
	data   []byte
	why    string
}

// reply reads one answer; length is how many bytes a simple one to a read would have.
func (c *client) reply(length int) answer {
	c.t.Helper()
	magic := binary.BigEndian.Uint32(c.bytes(4))
	if magic == magicSimple {
		head := c.bytes(12)
		a := answer{result: code(binary.BigEndian.Uint32(head)), cookie: binary.BigEndian.Uint64(head[4:])}
		if a.result == codeOK && length > 0 {
			a.data = c.bytes(length)
		}
		return a
	}
	require.Equal(c.t, magicStructured, magic)
	require.True(c.t, c.structured, "nobody asked for a structured reply")
	head := c.bytes(16)
	require.Equal(c.t, chunkDone, binary.BigEndian.Uint16(head))
	a := answer{cookie: binary.BigEndian.Uint64(head[4:])}
	body := c.bytes(int(binary.BigEndian.Uint32(head[12:])))
	switch kind := binary.BigEndian.Uint16(head[2:]); kind {
	case chunkOffsetData:
		a.data = body[8:]
	case chunkError:
		a.result = code(binary.BigEndian.Uint32(body))
		require.Equal(c.t, len(body)-6, int(binary.BigEndian.Uint16(body[4:])))
		a.why = string(body[6:])
	default:
		require.Fail(c.t, fmt.Sprint("a chunk of type ", kind))
	}
	return a
}

// do sends a request alone, and gives the answer.
func (c *client) do(q request, payload ...[]byte) answer {
	c.t.Helper()
	q.cookie |= 0xfeed << 32
	c.request(q, payload...)
	length := 0
	if q.command == cmdRead {
		length = int(q.length)
	}
	a := c.reply(length)
	require.Equal(c.t, q.cookie, a.cookie)
	return a
}

func (c *client) write(offset uint64, data []byte, flags ...uint16) answer {
	c.t.Helper()
	q := request{command: cmdWrite, offset: offset, length: uint32(len(data))}
	for _, f := range flags {
		q.flags |= f
	}
	return c.do(q, data)
}

func (c *client) read(offset uint64, n int) []byte {
	c.t.Helper()
	a := c.do(request{command: cmdRead, offset: offset, length: uint32(n)})
	require.Equal(c.t, codeOK, a.result, a.why)
	return a.data
}

// hungUp waits until the server has closed the connection without another word.
func (c *client) hungUp() {
	c.t.Helper()
	n, err := io.Copy(io.Discard, c.conn)
	require.Zero(c.t, n, "there came an answer")
	var timeout net.Error
	if err != nil { // a reset is an end as well
		require.False(c.t, asTimeout(err, &timeout), "the connection goes on")
	}
}

func (c *client) disconnect() {
	c.t.Helper()
	c.request(request{command: cmdDisconnect})
	c.hungUp()
}

func fill(n int, with byte) []byte { return bytes.Repeat([]byte{with}, n) }
