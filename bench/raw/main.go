// Raw is the measure of the others: what a plain Go program over one TCP connection does with the same load. No promise of any kind:
// who reads gets bytes, and knows nothing of what they are for.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"railyard/bench/internal/cell"
)

func main() { cell.Main(cell.Contender{Serve: serve, Drive: drive}) }

// serve reads what one connection brings.
func serve(s cell.Setup) (cell.Reach, error) {
	var taken func(net.Conn) error
	switch s.Spec.Load {
	case cell.Put:
		region := make([]byte, s.Spec.Region())
		for i := range region { // touched, as memory that is in use has been
			region[i] = 1
		}
		taken = func(c net.Conn) error { return land(s, c, region) }
	case cell.Ping:
		taken = func(c net.Conn) error { return echo(s, c) }
	case cell.Messages:
		taken = func(c net.Conn) error { return sink(s, c) }
	default:
		return cell.Reach{}, cell.ErrNoLoad
	}
	config := net.ListenConfig{Control: better}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return cell.Reach{}, fmt.Errorf("a port on loopback: %w", err)
	}
	go func() {
		conn, err := l.Accept()
		if err == nil && s.Spec.TLS {
			conn, err = secured(conn, s.Papers, tls.Server)
		}
		if err == nil {
			err = taken(conn)
		}
		s.Tally.Fail(err)
	}()
	return cell.Reach{Address: l.Addr().String()}, nil
}

func drive(s cell.Setup) (func() error, error) {
	dialer := net.Dialer{Control: better, Timeout: 10 * time.Second}
	conn, err := dialer.Dial("tcp", s.Peer.Address)
	if err != nil {
		return nil, fmt.Errorf("the server cannot be reached: %w", err)
	}
	if s.Spec.TLS {
		if conn, err = secured(conn, s.Papers, tls.Client); err != nil {
			return nil, err
		}
	}
	switch s.Spec.Load {
	case cell.Put:
		return func() error { return pour(conn, s.Spec.Size) }, nil
	case cell.Ping:
		return func() error { return ping(s, conn) }, nil
	case cell.Messages:
		return func() error { return newSenders(s.Spec, conn).run() }, nil
	default:
		return nil, cell.ErrNoLoad
	}
}

// better sets the congestion control that is faster between processes of one host, as rails do.
func better(_, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) {
		var name string
		if name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil && strings.HasPrefix(name, "bbr") {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
		}
	})
	if outer != nil {
		return outer
	}
	return err
}

func secured(conn net.Conn, p *cell.Papers, side func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, error) {
	cert, pool, err := p.Pair()
	if err != nil {
		return nil, err
	}
	c := side(conn, &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: pool, ClientCAs: pool, ServerName: "127.0.0.1",
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	})
	if err := c.Handshake(); err != nil {
		return nil, fmt.Errorf("TLS between the two ends: %w", err)
	}
	return c, nil
}

// pour writes the same memory again and again.
func pour(conn net.Conn, size int64) error {
	source := make([]byte, size)
	for i := range source {
		source[i] = 2
	}
	for {
		if _, err := conn.Write(source); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
}

// readAtOnce is the most that one read is asked for.
const readAtOnce = 4 << 20

// land reads into memory, round and round, as puts would.
func land(s cell.Setup, conn net.Conn, region []byte) error {
	counter := s.Tally.Counter(s.Spec.Size)
	for at := 0; ; {
		n, err := conn.Read(region[at:min(at+readAtOnce, len(region))])
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		counter.Add(int64(n))
		at = (at + n) % len(region)
	}
}

// ping sends and waits.
func ping(s cell.Setup, conn net.Conn) error {
	counter := s.Tally.Counter(s.Spec.Size)
	out, in := make([]byte, s.Spec.Size), make([]byte, s.Spec.Size)
	for {
		began := time.Now()
		if _, err := conn.Write(out); err != nil {
			return fmt.Errorf("sending a ping: %w", err)
		}
		if _, err := io.ReadFull(conn, in); err != nil {
			return fmt.Errorf("waiting for a ping to come back: %w", err)
		}
		s.Tally.Took(time.Since(began))
		counter.Add(s.Spec.Size)
	}
}

func echo(s cell.Setup, conn net.Conn) error {
	b := make([]byte, s.Spec.Size)
	for {
		if _, err := io.ReadFull(conn, b); err != nil {
			return fmt.Errorf("waiting for a ping: %w", err)
		}
		if _, err := conn.Write(b); err != nil {
			return fmt.Errorf("sending a ping back: %w", err)
		}
	}
}
