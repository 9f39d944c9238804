package endpoint

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rail/railtest"
)

// way is a direction of a cable.
type way = railtest.Direction

// The directions: forth is from a, which dials, to b.
const (
	bothWays = railtest.Both
	forth    = railtest.Forth
	back     = railtest.Back
)

// cable is the path of one rail, with faults that hold until Heal.
type cable interface {
	// Reset ends the connections that are there, with resets to both ends. What was under way is lost.
	Reset()
	// BlackHole keeps all bytes, and resets, until Heal, when they go on to where they were sent.
	BlackHole(d way)
	// Slow bounds the bytes a second.
	Slow(d way, bytesPerSecond int)
	// Cut is Reset, and dials fail.
	Cut()
	Heal()
	// Held is how many bytes from a to b the black holes so far have swallowed after the sender had handed them over.
	Held() uint64
}

// pipeWire is a cable in memory. Others lead to the same card from a's other cards: TCP's forwarder stands in those ways too.
type pipeWire struct {
	railtest.Wire
	others []railtest.Wire
	tap    *tap
	from   string
}

// Cut implements cable.
func (w *pipeWire) Cut() {
	for _, o := range append(w.others, w.Wire) {
		o.Cut()
	}
}

// BlackHole also makes a dead sender's bytes arrive later, as those of a kernel that goes on retransmitting.
func (w *pipeWire) BlackHole(d way) {
	for _, o := range append(w.others, w.Wire) {
		o.Zombie(true)
		o.BlackHole(d)
	}
}

func (w *pipeWire) Heal() {
	for _, o := range append(w.others, w.Wire) {
		o.Heal()
		o.Zombie(false)
	}
}

func (w *pipeWire) Held() uint64 { return w.tap.held(w.from) }

// tap is a kind that notes how many bytes a connection had in the network when its dialer killed it.
type tap struct {
	rail.Kind
	mu sync.Mutex
	in map[string]uint64
}

func (k *tap) held(local string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.in[local]
}

func (k *tap) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	c, err := k.Kind.Dial(ctx, local, remote)
	if err != nil {
		return nil, err
	}
	return &tapped{Conn: c, tap: k, local: local}, nil
}

type tapped struct {
	rail.Conn
	tap   *tap
	local string
	once  sync.Once
}

func (c *tapped) Kill() {
	c.once.Do(func() {
		n, _ := c.Unacked()
		c.tap.mu.Lock()
		defer c.tap.mu.Unlock()
		if c.tap.in == nil {
			c.tap.in = make(map[string]uint64)
		}
		c.tap.in[c.local] += uint64(n)
	})
	c.Conn.Kill()
}

func (c *tapped) Close() {
	c.Kill()
	c.Conn.Close()
}

// forwarder is a cable for TCP: what dials it is led to a target.
type forwarder struct {
	l *net.TCPListener
	// Indexed by 0 (forth) and 1 (back).
	hole [2]atomic.Bool
	rate [2]atomic.Int64
	held atomic.Uint64
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	target string
	cut    bool
	pairs  map[*passage]struct{}
}

// passage is one connection through a forwarder.
type passage struct {
	f    *forwarder
	ways [2]*lane
}

// lane is one direction of a passage.
type lane struct {
	p        *passage
	index    int
	src, dst *net.TCPConn

	mu    sync.Mutex // held while dst is written to
	kept  []byte
	ended bool
}

func newForwarder(t testing.TB) *forwarder {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	f := &forwarder{l: l, stop: make(chan struct{}), pairs: make(map[*passage]struct{})}
	f.work.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

func (f *forwarder) address() string { return f.l.Addr().String() }

func (f *forwarder) close() {
	close(f.stop)
	_ = f.l.Close()
	f.Reset()
	f.work.Wait()
}

func (f *forwarder) accept() {
	for {
		c, err := f.l.AcceptTCP()
		if err != nil {
			return
		}
		f.mu.Lock()
		target := f.target
		if f.cut {
			target = ""
		}
		f.mu.Unlock()
		if target == "" {
			reset(c)
			continue
		}
		f.work.Go(func() { f.join(c, target) })
	}
}

// lead says where connections go from now on.
func (f *forwarder) lead(target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target = target
}

// join joins a connection to the target.
func (f *forwarder) join(near *net.TCPConn, target string) {
	c, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		reset(near)
		return
	}
	far := c.(*net.TCPConn)
	for _, c := range []*net.TCPConn{near, far} {
		_ = c.SetReadBuffer(256 << 10)
	}
	p := &passage{f: f}
	p.ways[0] = &lane{p: p, index: 0, src: near, dst: far}
	p.ways[1] = &lane{p: p, index: 1, src: far, dst: near}
	f.mu.Lock()
	select {
	case <-f.stop:
		f.cut = true
	default:
	}
	if f.cut {
		f.mu.Unlock()
		reset(near)
		reset(far)
		return
	}
	f.pairs[p] = struct{}{}
	f.mu.Unlock()
	f.work.Go(p.ways[1].run)
	p.ways[0].run()
}

// run passes on what comes until the source ends.
func (l *lane) run() {
	f := l.p.f
	buf := make([]byte, 64<<10)
	for {
		room := buf
		rate := int(f.rate[l.index].Load())
		if rate > 0 {
			room = buf[:min(len(buf), max(rate/200, 1<<10))]
		}
		n, err := l.src.Read(room)
		if n > 0 {
			l.pass(room[:n])
		}
		if err != nil {
			l.end()
			return
		}
		if rate > 0 {
			select {
			case <-time.After(time.Duration(n) * time.Second / time.Duration(rate)):
			case <-f.stop:
			}
		}
	}
}

// pass writes to the destination, or keeps in a black hole.
func (l *lane) pass(b []byte) {
	f := l.p.f
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.hole[l.index].Load() {
		l.kept = append(l.kept, b...)
		if l.index == 0 {
			f.held.Add(uint64(len(b)))
		}
		return
	}
	l.release()
	_, _ = l.dst.Write(b) // its end shows at the other lane
}

// release sends what was kept on its way. The caller holds mu.
func (l *lane) release() {
	if len(l.kept) > 0 {
		_, _ = l.dst.Write(l.kept)
		l.kept = nil
	}
}

// end passes the source's end on, unless a black hole hides it.
func (l *lane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if !l.p.f.hole[l.index].Load() {
		l.hangUp()
	}
}

// hangUp closes the passage with resets. The caller holds mu of a lane.
func (l *lane) hangUp() {
	reset(l.src)
	reset(l.dst)
	f := l.p.f
	f.mu.Lock()
	delete(f.pairs, l.p)
	f.mu.Unlock()
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

func (f *forwarder) passages() []*passage {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*passage
	for p := range f.pairs {
		list = append(list, p)
	}
	return list
}

// Reset implements cable.
func (f *forwarder) Reset() {
	for _, p := range f.passages() {
		for _, l := range p.ways {
			reset(l.src)
		}
		f.mu.Lock()
		delete(f.pairs, p)
		f.mu.Unlock()
	}
}

// Cut implements cable.
func (f *forwarder) Cut() {
	f.mu.Lock()
	f.cut = true
	f.mu.Unlock()
	f.Reset()
}

func indices(d way) []int {
	switch d {
	case forth:
		return []int{0}
	case back:
		return []int{1}
	default:
		return []int{0, 1}
	}
}

// BlackHole implements cable.
func (f *forwarder) BlackHole(d way) {
	for _, i := range indices(d) {
		f.hole[i].Store(true)
	}
}

// Slow implements cable.
func (f *forwarder) Slow(d way, bytesPerSecond int) {
	for _, i := range indices(d) {
		f.rate[i].Store(int64(bytesPerSecond))
	}
}

// Held implements cable.
func (f *forwarder) Held() uint64 { return f.held.Load() }

// Heal implements cable. What was kept arrives before it returns, as far as its receivers take it.
func (f *forwarder) Heal() {
	f.mu.Lock()
	f.cut = false
	f.mu.Unlock()
	for i := range f.hole {
		f.hole[i].Store(false)
		f.rate[i].Store(0)
	}
	for _, p := range f.passages() {
		for _, l := range p.ways {
			l.mu.Lock()
			_ = l.dst.SetWriteDeadline(time.Now().Add(5 * time.Second))
			l.release()
			_ = l.dst.SetWriteDeadline(time.Time{})
			if l.ended {
				l.hangUp()
			}
			l.mu.Unlock()
		}
	}
}
