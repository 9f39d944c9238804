package cable

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through the cable.
type link struct {
	cable *Cable
	near  *net.TCPConn  // the side that dialed the cable
	far   *net.TCPConn  // the target's side; nil until dialed. Owner: cable.mu
	dead  bool          // Owner: cable.mu
	over  chan struct{} // closed when dead becomes true

	// waiting counts the bytes that the pumps have read and not yet written.
	waiting [2]atomic.Int64
}

// run dials the target and pumps until both directions have ended.
func (l *link) run() {
	defer l.forget()
	// A new connection needs both directions: what is half cut cannot shake hands.
	if !l.pass(ToTarget) || !l.pass(ToSource) {
		return
	}
	// A dialer that gave up meanwhile was never heard of by the target: its first packet did not get through.
	if gone(l.near) || !l.dial() {
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { (&pump{link: l, way: ToTarget, src: l.near, dst: l.far, edit: l.editor()}).run() })
	pumps.Go(func() { (&pump{link: l, way: ToSource, src: l.far, dst: l.near}).run() })
	pumps.Wait()
}

func (l *link) editor() Editor {
	if l.cable.config.Edit == nil {
		return nil
	}
	return l.cable.config.Edit()
}

func (l *link) dial() bool {
	c := l.cable
	c.mu.Lock()
	target := c.target
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	dialer := net.Dialer{Control: smallBuffers}
	dialer.SetMultipathTCP(false)
	conn, err := dialer.DialContext(ctx, "tcp", target)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		l.killLocked() // nobody there: the dialer sees a reset, as from a host without a listener
		return false
	}
	l.far = conn.(*net.TCPConn)
	if l.dead {
		reset(l.far)
		return false
	}
	l.deadlineLocked()
	return true
}

// forget ends what is left of the link.
func (l *link) forget() {
	c := l.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.links, l)
	if l.dead {
		return
	}
	l.dead = true
	close(l.over)
	_ = l.near.Close()
	if l.far != nil {
		_ = l.far.Close()
	}
}

// killLocked resets both ends.
func (l *link) killLocked() {
	if l.dead {
		return
	}
	l.dead = true
	close(l.over)
	reset(l.near)
	if l.far != nil {
		reset(l.far)
	}
	l.cable.change.Broadcast()
}

// deadlineLocked interrupts a write that is stuck in a direction that has just been held, and lets it go on
// when the direction is open again.
func (l *link) deadlineLocked() {
	if l.far == nil {
		return
	}
	for way, dst := range [2]*net.TCPConn{ToTarget: l.far, ToSource: l.near} {
		deadline := time.Time{}
		if l.cable.held[way] {
			deadline = time.Unix(1, 0)
		}
		_ = dst.SetWriteDeadline(deadline)
	}
}

// pass waits at the gate of a direction. False: the link is over.
func (l *link) pass(way Direction) bool {
	c := l.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held[way] && !l.dead {
		c.change.Wait()
	}
	return !l.dead
}

// nap waits. False: the link is over.
func (l *link) nap(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.over:
		return false
	case <-timer.C:
		return true
	}
}

func (l *link) inFlight() uint64 {
	sum := l.waiting[ToTarget].Load() + l.waiting[ToSource].Load() + queued(l.near)
	if l.far != nil {
		sum += queued(l.far)
	}
	return uint64(max(sum, 0))
}

// parcel is what a pump keeps under Delay.
type parcel struct {
	due  time.Time
	data []byte
}

// pump moves one direction of a link.
type pump struct {
	link    *link
	way     Direction
	src     *net.TCPConn
	dst     *net.TCPConn
	edit    Editor
	edited  []byte
	parcels []parcel // in order of due; not longer than maxDelayed bytes in all
	size    int      // bytes in parcels
}

func (p *pump) run() {
	buf := make([]byte, chunk)
	for {
		n, err := p.read(buf)
		if n > 0 && !p.take(buf[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		if !p.handOver(err != nil) {
			return
		}
		if err != nil {
			p.sourceEnded(err)
			return
		}
	}
}

// read reads at most until the first parcel is due.
func (p *pump) read(buf []byte) (int, error) {
	if len(p.parcels) == 0 {
		return p.src.Read(buf)
	}
	if p.size >= maxDelayed {
		return 0, nil
	}
	_ = p.src.SetReadDeadline(p.parcels[0].due)
	n, err := p.src.Read(buf)
	_ = p.src.SetReadDeadline(time.Time{})
	return n, err
}

// take forwards what was read, or keeps it for its delay. False: the link is over.
func (p *pump) take(data []byte) bool {
	if p.edit != nil {
		p.edited = p.edit.Edit(p.edited[:0], data)
		data = p.edited
	}
	p.link.waiting[p.way].Add(int64(len(data)))
	c := p.link.cable
	c.mu.Lock()
	delay := c.delay
	c.mu.Unlock()
	if delay == 0 && len(p.parcels) == 0 {
		return p.deliver(data)
	}
	p.parcels = append(p.parcels, parcel{time.Now().Add(delay), append([]byte(nil), data...)})
	p.size += len(data)
	return true
}

// handOver delivers the parcels that are due, or all of them in their time.
func (p *pump) handOver(all bool) bool {
	for len(p.parcels) > 0 {
		wait := time.Until(p.parcels[0].due)
		if wait > 0 && !all && p.size < maxDelayed {
			return true
		}
		if !p.link.nap(wait) {
			return false
		}
		first := p.parcels[0]
		p.parcels = p.parcels[1:]
		p.size -= len(first.data)
		if !p.deliver(first.data) {
			return false
		}
	}
	return true
}

// deliver writes data through the gate. False: the link is over, or dst is.
func (p *pump) deliver(data []byte) bool {
	l := p.link
	for len(data) > 0 {
		if !l.pass(p.way) {
			return false
		}
		piece, pause := p.pace(data)
		n, err := p.dst.Write(piece)
		l.waiting[p.way].Add(-int64(n))
		l.cable.carried[p.way].Add(uint64(n))
		data = data[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			p.targetEnded()
			return false
		}
		if !l.nap(pause) {
			return false
		}
	}
	return true
}

// pace says how much to write at once, and how long to wait behind it, under Slow.
func (p *pump) pace(data []byte) ([]byte, time.Duration) {
	c := p.link.cable
	c.mu.Lock()
	rate := c.rate
	c.mu.Unlock()
	if rate <= 0 {
		return data, 0
	}
	// 5 ms a piece: fine enough to look like a slow wire, coarse enough for timers.
	piece := data[:min(len(data), max(int(rate/200), 512))]
	return piece, time.Duration(float64(len(piece)) / rate * float64(time.Second))
}

// sourceEnded carries the end of the source to the other side, along the pump's own direction.
func (p *pump) sourceEnded(err error) {
	if !p.link.pass(p.way) {
		return
	}
	if errors.Is(err, io.EOF) {
		_ = p.dst.CloseWrite()
		return
	}
	p.kill()
}

// targetEnded tells the source that nobody takes its bytes: news that travels against the pump's direction.
func (p *pump) targetEnded() {
	if p.link.pass(p.way.opposite()) {
		p.kill()
	}
}

func (p *pump) kill() {
	c := p.link.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	p.link.killLocked()
}
