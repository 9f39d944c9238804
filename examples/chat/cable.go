package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// cable is a network cable that can be cut: a TCP forwarder. While it is cut there is no connection through it.
//
// Owner: whoever called lay; remove waits for every goroutine.
type cable struct {
	address string // what guests dial
	target  string // where the room's node listens
	work    sync.WaitGroup
	listen  net.Listener

	mu    sync.Mutex
	isCut bool
	ends  map[net.Conn]struct{}
}

// lay puts a cable between address and a free port of the same host.
func lay(address netip.AddrPort) (*cable, error) {
	outer, err := net.Listen("tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("no rail at %s: %w", address, err)
	}
	inner, err := net.Listen("tcp", netip.AddrPortFrom(address.Addr(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("nothing behind the rail at %s: %w", address, err)
	}
	c := &cable{address: outer.Addr().String(), target: inner.Addr().String(), listen: outer, ends: make(map[net.Conn]struct{})}
	if err := inner.Close(); err != nil { // the node is to have it
		return nil, err
	}
	c.work.Go(c.accept)
	return c, nil
}

// cut breaks every connection, and refuses others until it is mended.
func (c *cable) cut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = cut
	if cut {
		c.breakAll()
	}
}

func (c *cable) breakAll() {
	for conn := range c.ends {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		_ = conn.Close()
	}
}

// remove ends it.
func (c *cable) remove() {
	_ = c.listen.Close()
	c.cut(true)
	c.work.Wait()
}

func (c *cable) accept() {
	for {
		near, err := c.listen.Accept()
		if err != nil {
			return // removed
		}
		c.work.Go(func() { c.forward(near) })
	}
}

func (c *cable) forward(near net.Conn) {
	defer c.keep(near)()
	far, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer c.keep(far)()
	var ways sync.WaitGroup
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // whatever ended it
		_ = to.Close()
	}
	ways.Go(func() { carry(far, near) })
	ways.Go(func() { carry(near, far) })
	ways.Wait()
}

// keep notes a connection, until the function that it gives is called. One that comes while the cable is cut is broken.
func (c *cable) keep(conn net.Conn) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[conn] = struct{}{}
	if c.isCut {
		c.breakAll()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ends, conn)
		_ = conn.Close()
	}
}
