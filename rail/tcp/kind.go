package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"railyard/rail"
)

// KeepSystem as Config.Congestion leaves every socket the system's congestion control.
const KeepSystem = "system"

// DefaultNotSent is the bound on unsent bytes in a socket where Config.NotSent is 0. It is what a card of 100 Gbit/s
// sends while the writer wakes up (80 µs); over loopback no bound from 128 KiB up was slower than none. A
// slower lane sets a few milliseconds of its own rate by Conn.SetNotSent.
const DefaultNotSent = 1 << 20

// Config holds what all connections of a Kind share. Every zero value is a default.
type Config struct {
	// Logger gets one line where the system refuses a socket option; nil: nothing is logged.
	Logger *zap.Logger
	// Congestion names the congestion control of every socket. Empty: cubic where the system's default is a
	// bbr, which is slower than cubic between fast hosts unless a fair queue paces it, else the system's
	// default. KeepSystem: always the system's default.
	Congestion string
	// NotSent bounds the bytes that a socket takes but has not sent yet (TCP_NOTSENT_LOWAT): only what is
	// not in the socket can move to another rail without a retire. 0: DefaultNotSent. Negative: no bound but
	// the socket's own buffer.
	NotSent int
}

// Kind makes TCP connections. It is safe from any goroutine.
type Kind struct {
	cfg  Config
	log  *zap.Logger
	once sync.Once // guards the one log line about congestion control
}

var _ rail.Kind = (*Kind)(nil)

// New returns a kind with the configuration; it has no resources of its own.
func New(cfg Config) *Kind {
	if cfg.NotSent == 0 {
		cfg.NotSent = DefaultNotSent
	}
	log := cfg.Logger
	if log == nil {
		log = zap.NewNop()
	}
	return &Kind{cfg: cfg, log: log}
}

// Name is rail.KindTCP.
func (k *Kind) Name() string { return rail.KindTCP }

// Dial connects from the card that has local's address to remote ("host:port"). local is an IP address, with or
// without a port, which is not used: the system chooses one. Empty or unspecified: routing chooses the card.
// The error wraps the system's and says which of the two addresses it could not use.
func (k *Kind) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	from, err := dialAddr(local)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{
		Control: k.control,
		// Heartbeats watch the connection: probes of the kernel would only add wake-ups to an idle rail.
		KeepAlive: -1,
	}
	if from != nil {
		d.LocalAddr = from
	}
	d.SetMultipathTCP(false)
	c, err := race(ctx, func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", remote) })
	if err != nil {
		return nil, dialError(local, remote, err)
	}
	return k.wrap(c)
}

// dialAddr gives the address to bind a dialing socket to; nil where any will do.
func dialAddr(local string) (*net.TCPAddr, error) {
	if local == "" {
		return nil, nil
	}
	ip, err := netip.ParseAddr(local)
	if err != nil {
		ap, errPort := netip.ParseAddrPort(local)
		if errPort != nil {
			return nil, fmt.Errorf("tcp: cannot dial from %q: give the IP address of a local card: %w", local, err)
		}
		ip = ap.Addr()
	}
	if ip.IsUnspecified() {
		return nil, nil
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)), nil
}

// dialError says whose address failed: only the bind concerns the local one.
func dialError(local, remote string, err error) error {
	var sys *os.SyscallError
	if errors.As(err, &sys) && sys.Syscall == "bind" {
		return fmt.Errorf("tcp: cannot dial from local address %s; is it still on a card of this host? %w", local, err)
	}
	return fmt.Errorf("tcp: cannot reach %s from %q: %w", remote, local, err)
}

// Listen takes connections at b.Address ("ip:port"; port 0: the system chooses). The error names the address.
func (k *Kind) Listen(ctx context.Context, b rail.Binding) (rail.Listener, error) {
	lc := net.ListenConfig{Control: k.control, KeepAlive: -1}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", b.Address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("tcp: %s is in use by another listener; free it or choose another port: %w",
			b.Address, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("tcp: no card of this host has the address of %s: %w", b.Address, err)
	case err != nil:
		return nil, fmt.Errorf("tcp: cannot listen at %s: %w", b.Address, err)
	}
	return &listener{kind: k, l: l}, nil
}

type listener struct {
	kind *Kind
	l    net.Listener
}

// Accept gives the next connection, or an error: net.ErrClosed after Close; any other may pass (too many open
// files), so the caller waits a little and asks again.
func (l *listener) Accept() (rail.Conn, error) {
	c, err := l.l.Accept()
	if err != nil {
		return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), err)
	}
	return l.kind.wrap(c)
}

func (l *listener) Addr() string { return l.l.Addr().String() }

func (l *listener) Close() error { return l.l.Close() }

// wrap makes a Conn of a fresh socket; where that fails the socket is closed.
func (k *Kind) wrap(c net.Conn) (rail.Conn, error) {
	tc, ok := c.(*net.TCPConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("tcp: the system gave a %T where a TCP connection was due", c)
	}
	conn, err := newConn(tc)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return conn, nil
}

// control sets the options of a socket before it connects or listens; accepted sockets inherit them. None of
// them is needed for the rail to work, so a refusal is logged and no more.
func (k *Kind) control(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		if name := k.congestionFor(int(fd)); name != "" {
			if err := setCongestion(int(fd), name); err != nil {
				k.once.Do(func() {
					k.log.Warn("congestion control not set; rails keep the system's default",
						zap.String("congestion", name), zap.Error(err))
				})
			}
		}
		if k.cfg.NotSent > 0 {
			if err := setNotSent(int(fd), k.cfg.NotSent); err != nil {
				k.log.Debug("bound on unsent bytes not set", zap.Error(err))
			}
		}
	})
}

// congestionFor gives the congestion control that a fresh socket should be switched to; empty: none.
func (k *Kind) congestionFor(fd int) string {
	switch k.cfg.Congestion {
	case KeepSystem:
		return ""
	case "":
		return betterCongestion(fd)
	default:
		return k.cfg.Congestion
	}
}
