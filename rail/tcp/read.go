package tcp

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"railyard/rail"
	"railyard/rma"
)

// maxRead bounds the bytes of one read into Scatter.First, and so for how long the call keeps its processor and
// a region its lease.
const maxRead = 1 << 20

// errNoRoom is a bug in the link: reading nothing would look like the end of the stream.
var errNoRoom = errors.New("tcp: the link named no memory to read into")

// inbound is the read half.
//
// Owner: the reader goroutine.
type inbound struct {
	plan rma.Scatter
	iov  [2]unix.Iovec
	err  error // why the loop ended; nil: it was told to
}

// step says how a loop goes on after one bracket of the link.
type step uint8

const (
	again step = iota
	// wait: park until the poller sees the socket change.
	wait
	// leave: the loop is over.
	leave
)

// readLoop is the reader goroutine. It alone reports the end of the stream, so lost is called once at most.
func (c *Conn) readLoop() {
	defer c.joined.Done()
	err := c.verdict(c.pumpReads())
	if err == nil {
		return
	}
	c.abort()
	c.lost(err)
}

// pumpReads reads until the stream ends and gives the reason.
func (c *Conn) pumpReads() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &rail.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if c.sec != nil {
		return c.unseal()
	}
	if err := c.raw.Read(c.readReady); err != nil {
		return fmt.Errorf("tcp: the poller gave up the socket to %s: %w", c.RemoteAddr(), err)
	}
	return c.in.err
}

// readReady is the whole read loop: it runs inside one callback of the poller, so that a wake-up costs no more
// than the reads. False parks.
func (c *Conn) readReady(fd uintptr) bool {
	for c.state.Load() != over {
		switch c.readOnce(fd) {
		case again:
		case wait:
			return false
		case leave:
			return true
		}
	}
	return true
}

// readOnce is one bracket Want, read, Got.
func (c *Conn) readOnce(fd uintptr) step {
	in := &c.in
	in.plan = rma.Scatter{}
	if in.err = c.link.Want(&in.plan); in.err != nil {
		return leave
	}
	n, errno := 0, unix.EINTR // as if interrupted: where the region was revoked, the next plan discards
	room := len(in.plan.First)+len(in.plan.Then) > 0
	if room && in.plan.Acquire() {
		n, errno = in.read(fd)
	}
	if in.err = c.link.Got(&in.plan, n); in.err != nil {
		return leave
	}
	switch {
	case !room:
		in.err = errNoRoom
	case n > 0 || errno == unix.EINTR:
		return again
	case errno == unix.EAGAIN:
		return wait
	case errno == 0:
		in.err = fmt.Errorf("tcp: %s ended the stream: %w", c.RemoteAddr(), io.EOF)
	default:
		in.err = c.opError("readv", errno)
	}
	return leave
}

// read makes one call into the acquired plan: First up to maxRead, and Then only if all of First is named. The lease ends
// with it, whatever happens: one that nobody gives back would hold up Revoke for ever.
func (in *inbound) read(fd uintptr) (int, syscall.Errno) {
	defer in.plan.Release()
	iov := in.iov[:0]
	first := in.plan.First
	if len(first) > maxRead {
		iov = addIovec(iov, first[:maxRead])
	} else {
		iov = addIovec(iov, first)
		iov = addIovec(iov, in.plan.Then[:min(len(in.plan.Then), maxRead)])
	}
	n, errno := vectored(unix.SYS_READV, fd, iov)
	raceReading(iov, n)
	clear(iov) // an idle reader keeps nobody's memory alive
	return n, errno
}

// addIovec adds b unless it is empty.
func addIovec(iov []unix.Iovec, b []byte) []unix.Iovec {
	if len(b) == 0 {
		return iov
	}
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return append(iov, v)
}
