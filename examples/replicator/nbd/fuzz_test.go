package nbd

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// strict is memory that panics where the server lets through what it must not.
type strict struct {
	*Memory
	min int64
}

func (d strict) check(offset, length int64) {
	if offset < 0 || length <= 0 || offset > d.Size() || length > d.Size()-offset || offset%d.min != 0 || length%d.min != 0 {
		panic(fmt.Sprint("a range that should have been refused: ", offset, " ", length))
	}
}

func (d strict) ReadAt(ctx context.Context, p []byte, offset int64) error {
	d.check(offset, int64(len(p)))
	return d.Memory.ReadAt(ctx, p, offset)
}

func (d strict) WriteAt(ctx context.Context, w Write) error {
	d.check(w.Offset, int64(len(w.Data)))
	return d.Memory.WriteAt(ctx, w)
}

func (d strict) Trim(ctx context.Context, r Range) error { return d.WriteZeroes(ctx, r) }

func (d strict) WriteZeroes(ctx context.Context, r Range) error {
	d.check(r.Offset, r.Length)
	return d.Memory.WriteZeroes(ctx, r)
}

func (d strict) Prefetch(_ context.Context, offset, length int64) error {
	d.check(offset, length)
	return nil
}

func fuzzed(t testing.TB) *Server {
	s, err := New(Config{MaxPayload: 64 << 10, Exports: []Export{
		{Name: "disk", Device: strict{NewMemory(256 << 10), 512}, MinBlock: 512},
		{Name: "fine", Device: strict{NewMemory(100_000), 1}, MultiConn: true},
		{Name: "ro", Device: strict{NewMemory(100_000), 1}, ReadOnly: true},
	}})
	require.NoError(t, err)
	return s
}

// tape is a connection that plays bytes, then ends, and records what comes back.
type tape struct {
	net.Conn // nil: nothing else is called
	bytes.Reader

	mu     sync.Mutex
	got    bytes.Buffer // Owner: mu
	closed bool         // Owner: mu
}

func (c *tape) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (c *tape) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	return c.got.Write(p)
}

func (c *tape) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (c *tape) RemoteAddr() net.Addr            { return &net.UnixAddr{} }
func (c *tape) SetDeadline(time.Time) error     { return nil }
func (c *tape) SetReadDeadline(time.Time) error { return nil }

// play gives all that a server answers to these bytes.
func play(s *Server, sent []byte) []byte {
	c := &tape{Reader: *bytes.NewReader(sent)}
	s.serve(context.Background(), c)
	return c.got.Bytes()
}

// FuzzHandshake: whatever comes is answered by options' replies, or with the end.
func FuzzHandshake(f *testing.F) {
	opt := func(o option, data []byte) []byte { return pack(magicOption, uint32(o), uint32(len(data)), data) }
	for _, o := range []option{optExportName, optAbort, optList, optStartTLS, optInfo, optGo, optStructuredReply, 10, 99} {
		f.Add(uint32(3), opt(o, nil))
		f.Add(uint32(3), opt(o, wantInfo("disk", infoBlockSize, infoName)))
		f.Add(uint32(1), append(opt(o, wantInfo("fine")), opt(optGo, wantInfo("", infoBlockSize))...))
	}
	f.Add(uint32(3), append(opt(optGo, wantInfo("disk", infoBlockSize)), requestBytes(request{command: cmdRead, length: 512})...))
	f.Add(uint32(0), []byte{})
	s := fuzzed(f)
	f.Fuzz(func(t *testing.T, flags uint32, sent []byte) {
		got := play(s, append(pack(flags), sent...))
		if len(got) < 18 || string(got[:16]) != "NBDMAGICIHAVEOPT" {
			t.Fatalf("a greeting of %q", got)
		}
		if len(s.Clients()) != 0 {
			t.Fatal("the connection was not forgotten")
		}
	})
}

// FuzzRequests: whatever comes, the device sees proper ranges only, and each answer is for something that was asked for.
func FuzzRequests(f *testing.F) {
	for i, q := range []request{
		{command: cmdRead, length: 512}, {command: cmdRead, flags: flagDF, offset: 1024, length: 4096},
		{command: cmdWrite, offset: 512, length: 16}, {command: cmdWrite, flags: flagFUA, length: 512},
		{command: cmdFlush}, {command: cmdTrim, length: math.MaxUint32}, {command: cmdTrim, offset: 4096, length: 4096},
		{command: cmdWriteZeroes, flags: flagNoHole, length: 200 << 10}, {command: cmdCache, length: 512}, {command: 7, length: 1},
		{command: cmdRead, offset: math.MaxUint64, length: 2}, {command: cmdRead, offset: 256<<10 - 512, length: 1024},
		{command: cmdDisconnect},
	} {
		q.cookie = uint64(i)
		var payload []byte
		if q.command == cmdWrite {
			payload = fill(int(q.length), 'w')
		}
		one := append(requestBytes(q), payload...)
		for export := range byte(3) {
			f.Add(export, i%2 == 0, one)
			f.Add(export, i%2 == 1, append(requestBytes(request{command: cmdFlush}), append(one, one...)...))
		}
	}
	s := fuzzed(f)
	f.Fuzz(func(t *testing.T, export byte, structured bool, sent []byte) {
		name := s.cfg.Exports[int(export)%len(s.cfg.Exports)].Name
		hello := pack(uint32(3))
		if structured {
			hello = append(hello, pack(magicOption, uint32(optStructuredReply), uint32(0))...)
		}
		hello = append(hello, pack(magicOption, uint32(optGo), uint32(len(wantInfo(name))), wantInfo(name))...)
		got := play(s, append(hello, sent...))
		at := 18 + 20 + 12 + 20 // greeting, what the export is, acknowledgement
		if structured {
			at += 20
		}
		if len(got) < at {
			t.Fatalf("no export: %q", got)
		}
		checkReplies(t, got[at:], asked(sent), structured)
	})
}

// asked gives the lengths of the reads that a stream may contain by cookie; -1 for other requests. Where the stream has lost its step,
// nothing that follows may be answered; so this reads it as the server has to.
func asked(sent []byte) map[uint64][]int {
	all := make(map[uint64][]int)
	for len(sent) >= requestLength && binary.BigEndian.Uint32(sent) == magicRequest {
		q := parseRequest([requestLength]byte(sent))
		sent = sent[requestLength:]
		if q.command == cmdDisconnect {
			break
		}
		n := -1
		switch q.command {
		case cmdRead:
			n = int(q.length)
		case cmdWrite:
			if int(q.length) > len(sent) {
				return all
			}
			sent = sent[q.length:]
		default:
		}
		all[q.cookie] = append(all[q.cookie], n)
	}
	return all
}

// checkReplies reads answers until they end, which may be in the middle of one where the connection was cut.
func checkReplies(t *testing.T, got []byte, asked map[uint64][]int, structured bool) {
	t.Helper()
	answered := make(map[uint64]int)
	for len(got) >= 16 {
		var cookie uint64
		length := 0
		switch magic := binary.BigEndian.Uint32(got); magic {
		case magicSimple:
			cookie = binary.BigEndian.Uint64(got[8:])
			if result := binary.BigEndian.Uint32(got[4:]); result == 0 && len(asked[cookie]) == 1 {
				length = max(0, asked[cookie][0])
			} else if len(asked[cookie]) > 1 {
				return // which of them it is cannot be told
			}
			got = got[16:]
		case magicStructured:
			if !structured || len(got) < 20 {
				if structured {
					return
				}
				t.Fatal("nobody asked for structured replies")
			}
			cookie, length = binary.BigEndian.Uint64(got[8:]), int(binary.BigEndian.Uint32(got[16:]))
			got = got[20:]
		default:
			t.Fatalf("an answer begins with %#x", magic)
		}
		if answered[cookie]++; answered[cookie] > len(asked[cookie]) {
			t.Fatalf("%d answers for the cookie %d, which was asked for %d times", answered[cookie], cookie, len(asked[cookie]))
		}
		if length > len(got) {
			return
		}
		got = got[length:]
	}
}
