package railtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"railyard/rail"
	"railyard/rma"
)

// patternLength is a prime, so that no piece that is lost or doubled by the power of two keeps the stream in step.
const patternLength = 65521

// pattern is an endless stream of bytes that a seed gives.
type pattern []byte

func newPattern(seed uint64) pattern {
	p := make(pattern, patternLength)
	rng := rand.New(rand.NewPCG(seed, patternLength))
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

// fill writes the stream's bytes from offset on.
func (p pattern) fill(dst []byte, offset uint64) {
	for len(dst) > 0 {
		n := copy(dst, p[offset%patternLength:])
		dst, offset = dst[n:], offset+uint64(n)
	}
}

// check says whether got are the stream's bytes from offset on.
func (p pattern) check(got []byte, offset uint64) error {
	for len(got) > 0 {
		at := offset % patternLength
		n := min(len(got), int(patternLength-at))
		if !bytes.Equal(got[:n], p[at:at+uint64(n)]) {
			return fmt.Errorf("the %d bytes at offset %d are not the stream's", n, offset)
		}
		got, offset = got[n:], offset+uint64(n)
	}
	return nil
}

// The calls of a link, as a hook sees them.
const (
	callFill  = "Fill"
	callWrote = "Wrote"
	callWant  = "Want"
	callGot   = "Got"
)

// bracket watches one half of a link: free, in the opening call, between the two, in the closing call.
type bracket struct{ state atomic.Int32 }

const (
	bracketFree int32 = iota
	bracketOpening
	bracketOpen
	bracketClosing
)

func (b *bracket) move(from, to int32) bool { return b.state.CompareAndSwap(from, to) }

// rules collects what a connection did that the contract forbids.
type rules struct {
	mu     sync.Mutex
	broken []string
	// silent: no call may begin any more.
	silent atomic.Bool
}

func (r *rules) breach(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.broken) < 20 {
		r.broken = append(r.broken, fmt.Sprintf(format, args...))
	}
}

func (r *rules) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// begin checks that a call may begin, and that it is the one due in its half.
func (r *rules) begin(call string, b *bracket, from, to int32) {
	if r.silent.Load() {
		r.breach("%s was called after the connection had ended", call)
	}
	if !b.move(from, to) {
		r.breach("%s was called out of turn: its half was in state %d", call, b.state.Load())
	}
}

// streamLink sends one pattern and checks another, by plans of random shapes.
type streamLink struct {
	rules

	// hook runs at the start of each call. Its error is the call's (Fill has none); it may panic.
	hook func(call string) error
	// plain makes all plans as large as they may be, and none random.
	plain bool
	// region, where set and alive, is what most reads go to.
	region atomic.Pointer[rma.Region]

	tokenMu sync.Mutex
	due     uint64 // bytes that may be written; Owner: tokenMu
	sent    uint64 // Owner: tokenMu, changed by the write half
	held    bool   // somebody has the write token; Owner: tokenMu

	write    bracket
	out      pattern
	outRng   *rand.Rand
	outBytes []byte

	read    bracket
	in      pattern
	inRng   *rand.Rand
	inBytes []byte

	received atomic.Uint64
	inRegion atomic.Uint64 // bytes that were read into a region
	progress chan struct{} // capacity 1; signaled by Got
}

// linkConfig says what a streamLink sends and what it expects. Seeds choose patterns and plans.
type linkConfig struct {
	send, expect uint64
	chunk        int // the longest plan; 0: 256 KiB
	plain        bool
}

func newStreamLink(cfg linkConfig) *streamLink {
	if cfg.chunk == 0 {
		cfg.chunk = 256 << 10
	}
	return &streamLink{
		plain:    cfg.plain,
		out:      newPattern(cfg.send),
		outRng:   rand.New(rand.NewPCG(cfg.send, 1)),
		outBytes: make([]byte, cfg.chunk),
		in:       newPattern(cfg.expect),
		inRng:    rand.New(rand.NewPCG(cfg.expect, 2)),
		inBytes:  make([]byte, 2*cfg.chunk),
		progress: make(chan struct{}, 1),
	}
}

// produce lets n more bytes be written, and gets them going as an endpoint does: whoever finds the token free takes it.
func (l *streamLink) produce(c rail.Conn, n int, inline bool) {
	l.tokenMu.Lock()
	l.due += uint64(n)
	taken := l.held
	l.held = true
	l.tokenMu.Unlock()
	switch {
	case taken:
	case inline:
		c.WriteNow()
	default:
		c.Kick()
	}
}

func (l *streamLink) call(name string) error {
	if l.hook == nil {
		return nil
	}
	return l.hook(name)
}

func (l *streamLink) Fill(g *rma.Gather) bool {
	l.begin(callFill, &l.write, bracketFree, bracketOpening)
	_ = l.call(callFill)
	if g.Size() != 0 || len(g.Bufs) != 0 {
		l.breach("Fill was given a plan that was not empty")
	}
	l.tokenMu.Lock()
	defer l.tokenMu.Unlock()
	left := l.due - l.sent
	if left == 0 {
		l.write.move(bracketOpening, bracketFree) // before the token is free
		l.held = false
		return false
	}
	plan := l.outBytes[:min(uint64(len(l.outBytes)), left)]
	if !l.plain {
		plan = plan[:1+l.outRng.IntN(len(plan))]
	}
	l.out.fill(plan, l.sent)
	for len(plan) > 0 {
		n := len(plan)
		if !l.plain {
			n = 1 + l.outRng.IntN(n)
		}
		g.Add(plan[:n])
		plan = plan[n:]
	}
	l.write.move(bracketOpening, bracketOpen)
	return true
}

func (l *streamLink) Wrote(g *rma.Gather, n int) error {
	l.begin(callWrote, &l.write, bracketOpen, bracketClosing)
	defer l.write.move(bracketClosing, bracketFree)
	if n < 0 || n > g.Size() {
		l.breach("Wrote(%d) of a plan of %d bytes", n, g.Size())
	}
	l.tokenMu.Lock()
	l.sent += uint64(n)
	l.tokenMu.Unlock()
	return l.call(callWrote)
}

func (l *streamLink) Want(s *rma.Scatter) error {
	l.begin(callWant, &l.read, bracketFree, bracketOpening)
	defer l.read.move(bracketOpening, bracketOpen)
	if err := l.call(callWant); err != nil {
		return err
	}
	half := len(l.inBytes) / 2
	s.First, s.Then = l.inBytes[:half], l.inBytes[half:]
	if !l.plain {
		s.First = s.First[:l.inRng.IntN(half)]
		s.Then = s.Then[:1+l.inRng.IntN(half)]
		if len(s.First) > 0 && l.inRng.IntN(4) == 0 {
			s.Then = nil
		}
	}
	region := l.region.Load()
	if region == nil || region.Revoked() || len(s.First) == 0 {
		return nil
	}
	buf := region.Bytes()
	at := l.inRng.IntN(len(buf))
	s.First, s.Region = buf[at:min(len(buf), at+len(s.First))], region
	return nil
}

func (l *streamLink) Got(s *rma.Scatter, n int) error {
	l.begin(callGot, &l.read, bracketOpen, bracketClosing)
	defer l.read.move(bracketClosing, bracketFree)
	if n < 0 || n > len(s.First)+len(s.Then) {
		l.breach("Got(%d) of a plan of %d and %d bytes", n, len(s.First), len(s.Then))
		return nil
	}
	first := min(n, len(s.First))
	offset := l.received.Load()
	l.checkFirst(s, first, offset)
	if err := l.in.check(s.Then[:n-first], offset+uint64(first)); err != nil {
		l.breach("Then: %v", err)
	}
	l.received.Add(uint64(n))
	signal(l.progress)
	return l.call(callGot)
}

// checkFirst looks at memory of a region only under its lease, as everybody must.
func (l *streamLink) checkFirst(s *rma.Scatter, n int, offset uint64) {
	if s.Region != nil {
		l.inRegion.Add(uint64(n))
		if !s.Region.Enter() {
			return
		}
		defer s.Region.Leave()
	}
	if err := l.in.check(s.First[:n], offset); err != nil {
		l.breach("First: %v", err)
	}
}

// scriptLink writes given pieces and keeps what it reads.
type scriptLink struct {
	mu     sync.Mutex
	pieces []piece
	held   bool
	buf    []byte
	got    bytes.Buffer

	progress chan struct{}
	// empty makes the next plan of that call name no bytes.
	empty string
}

// piece is a buffer to write; region owns it, or is nil.
type piece struct {
	buf    []byte
	region *rma.Region
}

func newScriptLink(pieces ...piece) *scriptLink {
	return &scriptLink{
		pieces: pieces, held: true, buf: make([]byte, 64<<10), progress: make(chan struct{}, 1),
	}
}

func (l *scriptLink) Fill(g *rma.Gather) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.empty == callFill {
		return true
	}
	for _, p := range l.pieces {
		if p.region != nil {
			g.AddPinned(p.buf, p.region)
		} else {
			g.Add(p.buf)
		}
	}
	l.held = g.Size() > 0
	return l.held
}

func (l *scriptLink) Wrote(_ *rma.Gather, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n > 0 {
		step := min(n, len(l.pieces[0].buf))
		n -= step
		if l.pieces[0].buf = l.pieces[0].buf[step:]; len(l.pieces[0].buf) == 0 {
			l.pieces = l.pieces[1:]
		}
	}
	return nil
}

func (l *scriptLink) Want(s *rma.Scatter) error {
	if l.empty != callWant {
		s.First = l.buf
	}
	return nil
}

func (l *scriptLink) Got(s *rma.Scatter, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got.Write(s.First[:n])
	signal(l.progress)
	return nil
}

func (l *scriptLink) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.got.Bytes())
}

func (l *scriptLink) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.Len()
}
