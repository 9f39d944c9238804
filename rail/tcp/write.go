package tcp

import (
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"railyard/rail"
	"railyard/rma"
)

const (
	// maxWrite bounds the bytes of one write: what was handed over cannot be overtaken by a more urgent frame.
	maxWrite = 2 << 20
	// maxVectors is the kernel's IOV_MAX.
	maxVectors = 1024
)

// errNothingFilled is a bug in the link: it said that there was something to write and named no byte of it.
var errNothingFilled = errors.New("tcp: the link named no bytes to write")

// outbound is the write half.
//
// Owner: the holder of the write token. It is not touched after Fill has returned false.
type outbound struct {
	plan rma.Gather
	// iov keeps its array from call to call; it grows to maxVectors at most.
	iov []unix.Iovec
	// parking and inline are the two callbacks, made once: a method value costs an allocation.
	parking, inline func(fd uintptr) bool
}

// writeLoop is the writer goroutine.
func (c *Conn) writeLoop() {
	defer c.joined.Done()
	for {
		select {
		case <-c.stop:
			return
		case <-c.kick:
			if !c.pumpWrites() {
				return
			}
		}
	}
}

// pumpWrites writes until the token has been given back; false: the connection is over.
func (c *Conn) pumpWrites() bool {
	defer c.recoverWrite()
	if err := c.raw.Write(c.out.parking); err != nil {
		c.failWrite(over, fmt.Errorf("tcp: the poller gave up writing to %s: %w", c.RemoteAddr(), err))
	}
	return c.state.Load() == running
}

// WriteNow writes in the caller's goroutine; see rail.Conn. Once the connection has failed it does nothing, and the
// token stays with the caller: the generation is over.
func (c *Conn) WriteNow() {
	if c.state.Load() != running {
		return
	}
	defer c.recoverWrite()
	_ = c.raw.Write(c.out.inline) // an error means that the socket has been closed by Kill
}

// writeParking is the writer goroutine's callback: false parks until there is room.
func (c *Conn) writeParking(fd uintptr) bool { return c.write(fd) != wait }

// writeInline is WriteNow's callback: it never parks. The kick comes from inside, where the token is still the
// caller's own for certain.
func (c *Conn) writeInline(fd uintptr) bool {
	if c.write(fd) == wait {
		c.Kick()
	}
	return true
}

// write writes until the link has nothing more (leave: the token has been given back), the socket is full (wait:
// the token is kept) or the connection has failed (leave).
func (c *Conn) write(fd uintptr) step {
	for c.state.Load() == running {
		if c.sec != nil {
			if s := c.flush(fd); s != again {
				return s
			}
		}
		if !c.link.Fill(&c.out.plan) {
			return leave
		}
		if s := c.writePlan(fd); s != again {
			return s
		}
	}
	return leave
}

func (c *Conn) writePlan(fd uintptr) step {
	if c.sec != nil {
		return c.sealOnce()
	}
	return c.writeOnce(fd)
}

// writeOnce is the rest of a bracket that Fill has opened.
func (c *Conn) writeOnce(fd uintptr) step {
	out := &c.out
	out.plan.Acquire()
	n, offered, errno := out.send(fd)
	err := c.wrote(n)
	switch {
	case err != nil:
		c.failWrite(over, err)
	case offered == 0:
		c.failWrite(over, errNothingFilled)
	case errno == 0 && n == offered:
		return again
	case errno == 0 || errno == unix.EAGAIN:
		// The kernel took less than it was offered, so it has marked the socket as waited for: the poller
		// will tell of room.
		return wait
	default:
		c.failWrite(draining, c.opError("writev", errno))
	}
	return leave
}

// wrote closes the bracket that Fill has opened: n bytes of its plan are on their way.
func (c *Conn) wrote(n int) error {
	out := &c.out
	out.plan.Release()
	err := c.link.Wrote(&out.plan, n)
	out.plan.Reset()
	return err
}

// send makes one call with the acquired plan, or with as much of it as one call may carry.
func (out *outbound) send(fd uintptr) (n, offered int, errno syscall.Errno) {
	iov := out.iov[:0]
	for _, b := range out.plan.Bufs {
		b = b[:min(len(b), maxWrite-offered)]
		iov = addIovec(iov, b)
		offered += len(b)
		if offered == maxWrite || len(iov) == maxVectors {
			break
		}
	}
	out.iov = iov
	if offered == 0 {
		return 0, 0, 0
	}
	raceWriting(iov)
	n, errno = vectored(unix.SYS_WRITEV, fd, iov)
	clear(iov) // an idle writer keeps nobody's memory alive
	return n, offered, errno
}

// recoverWrite turns a panic of the link into the end of the connection. It must be deferred directly.
func (c *Conn) recoverWrite() {
	if v := recover(); v != nil {
		c.out.plan.Release() // a lease that nobody gives back would hold up Revoke for ever
		c.failWrite(over, &rail.PanicError{Value: v, Stack: debug.Stack()})
	}
}

// failWrite ends the write half. It may run in WriteNow's caller, under its locks, so it leaves the report to the
// reader, which it wakes: at once (next is over), or when it has read what had arrived before the socket broke
// (next is draining: a goodbye may be among it).
func (c *Conn) failWrite(next uint32, err error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = err
	}
	if next == over {
		c.finish()
	} else {
		c.state.CompareAndSwap(running, draining)
	}
	c.mu.Unlock()
	if next == over {
		c.abort()
		return
	}
	// Both directions: the reader then finds the end of the stream behind what is there.
	_ = c.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
}
