package main

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// cable is a network cable: a TCP forwarder that can be pulled. Then nothing passes, no byte, no end and no reset; both
// ends are left to find out. Plugged in again it lets out what was on its way. It can also snap: of that, both ends
// hear at once.
//
// Owner: whoever called lay; remove waits for every goroutine, once the nodes at both ends have ended.
type cable struct {
	name    string
	address string // what the near node dials
	target  string // where the far node listens

	listener net.Listener
	work     sync.WaitGroup
	gate     sync.RWMutex // locked for writing while the cable is pulled
	pulled   bool

	mu   sync.Mutex
	ends map[*net.TCPConn]bool // Owner: mu
}

// lay puts a cable between a free port of 127.0.0.1 and the same port of 127.0.0.2.
func lay(name string) (*cable, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no %s cable: %w", name, err)
	}
	c := &cable{
		name: name, address: listener.Addr().String(), listener: listener, ends: make(map[*net.TCPConn]bool),
		target: fmt.Sprintf("127.0.0.2:%d", listener.Addr().(*net.TCPAddr).Port),
	}
	c.work.Go(c.accept)
	return c, nil
}

func (c *cable) pull() {
	c.gate.Lock()
	c.pulled = true
}

func (c *cable) plug() {
	if c.pulled {
		c.pulled = false
		c.gate.Unlock()
	}
}

func (c *cable) snap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end := range c.ends {
		_ = end.SetLinger(0) // a reset, not an orderly end
		_ = end.Close()
	}
}

func (c *cable) remove() {
	c.plug()
	_ = c.listener.Close()
	c.work.Wait()
}

// pass does something once the cable is whole, which it stays meanwhile.
func (c *cable) pass(do func()) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	do()
}

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return // removed
		}
		c.work.Go(func() { c.forward(near.(*net.TCPConn)) })
	}
}

// forward carries one connection until both directions have ended.
func (c *cable) forward(near *net.TCPConn) {
	defer c.keep(near)()
	var conn net.Conn
	var err error
	c.pass(func() { conn, err = net.Dial("tcp", c.target) }) // nobody shakes hands through a pulled cable
	if err != nil {
		return
	}
	far := conn.(*net.TCPConn)
	defer c.keep(far)()
	var ways sync.WaitGroup
	ways.Go(func() { c.carry(far, near) })
	ways.Go(func() { c.carry(near, far) })
	ways.Wait()
}

// keep notes one end of a connection, until the function that it gives is called.
func (c *cable) keep(end *net.TCPConn) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[end] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ends, end)
		_ = end.Close()
	}
}

func (c *cable) carry(to, from *net.TCPConn) {
	_, _ = io.Copy(gated{c, to}, from) // whatever ended it
	c.pass(func() { _ = to.CloseWrite() })
}

// gated writes while the cable is whole.
type gated struct {
	cable *cable
	to    io.Writer
}

func (g gated) Write(b []byte) (n int, err error) {
	g.cable.pass(func() { n, err = g.to.Write(b) })
	return n, err
}
