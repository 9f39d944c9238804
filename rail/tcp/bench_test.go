package tcp

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rma"
)

// headerSize is what the reader expects in front of each operation, as a frame's header would be.
const headerSize = 64

// nullLink sends operations of one size, a header and a payload that lies still, and counts those that arrived. It
// does what a link must and no more, so a benchmark with it shows the connection's own cost.
type nullLink struct {
	mu   sync.Mutex
	due  int // bytes that may be written
	held bool

	header, payload []byte
	at              int // written bytes of the operation that has begun

	dst  []byte
	next [headerSize]byte
	rest int // bytes of the operation that are still to come
	done chan struct{}
}

func newNullLink(size, window int) *nullLink {
	return &nullLink{
		header: make([]byte, headerSize), payload: make([]byte, size),
		dst: make([]byte, headerSize+size), rest: headerSize + size,
		done: make(chan struct{}, window),
	}
}

func (l *nullLink) start(c *Conn, inline bool) {
	l.mu.Lock()
	l.due += headerSize + len(l.payload)
	taken := l.held
	l.held = true
	l.mu.Unlock()
	switch {
	case taken:
	case inline:
		c.WriteNow()
	default:
		c.Kick()
	}
}

func (l *nullLink) Fill(g *rma.Gather) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due == 0 {
		l.held = false
		return false
	}
	if l.at < headerSize {
		g.Add(l.header[l.at:])
		g.Add(l.payload)
	} else {
		g.Add(l.payload[l.at-headerSize:])
	}
	for left := l.due - g.Size(); left > 0 && g.Size() < maxWrite && len(g.Bufs) < 64; {
		g.Add(l.header)
		g.Add(l.payload)
		left -= headerSize + len(l.payload)
	}
	return true
}

func (l *nullLink) Wrote(_ *rma.Gather, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due -= n
	l.at = (l.at + n) % (headerSize + len(l.payload))
	return nil
}

func (l *nullLink) Want(s *rma.Scatter) error {
	s.First, s.Then = l.dst[:l.rest], l.next[:]
	return nil
}

func (l *nullLink) Got(_ *rma.Scatter, n int) error {
	for n >= l.rest {
		n -= l.rest
		l.rest = headerSize + len(l.payload)
		l.done <- struct{}{}
	}
	l.rest -= n
	return nil
}

var benchmarkSizes = []int{4 << 10, 64 << 10, 1 << 20, 4 << 20}

func benchmarkPair(b *testing.B, cfg Config, size, window int) (*Conn, *nullLink, *nullLink) {
	b.Helper()
	k := New(cfg)
	l, err := k.Listen(b.Context(), rail.TCP("127.0.0.1:0"))
	require.NoError(b, err)
	near, err := k.Dial(b.Context(), "127.0.0.1", l.Addr())
	require.NoError(b, err)
	far, err := l.Accept()
	require.NoError(b, err)
	require.NoError(b, l.Close())
	from, to := newNullLink(size, window), newNullLink(size, window)
	near.Run(from, func(err error) { b.Error(err) })
	far.Run(to, func(error) {})
	b.Cleanup(func() { near.Close(); far.Close() })
	return near.(*Conn), from, to
}

// BenchmarkStream keeps a window of operations under way in one direction; both ends are in this process.
func BenchmarkStream(b *testing.B) {
	const window = 16
	for _, size := range benchmarkSizes {
		for _, notSent := range []int{-1, DefaultNotSent} {
			name := "size=" + strconv.Itoa(size) + "/notsent=" + strconv.Itoa(notSent)
			b.Run(name, func(b *testing.B) {
				c, from, to := benchmarkPair(b, Config{NotSent: notSent}, size, window)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				open := 0
				for b.Loop() {
					if open == window {
						<-to.done
						open--
					}
					from.start(c, false)
					open++
				}
				for ; open > 0; open-- {
					<-to.done
				}
			})
		}
	}
}

// BenchmarkOneWay sends one operation at a time and waits until it has arrived.
func BenchmarkOneWay(b *testing.B) {
	for _, inline := range []bool{true, false} {
		b.Run("inline="+strconv.FormatBool(inline), func(b *testing.B) {
			c, from, to := benchmarkPair(b, Config{}, 8, 1)
			b.ReportAllocs()
			for b.Loop() {
				from.start(c, inline)
				<-to.done
			}
		})
	}
}
