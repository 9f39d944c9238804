package nbd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// keepAlive finds out that a client's host has gone, within half a minute, where nothing is sent to it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// Listen opens the address to serve on: HOST:PORT, or unix:PATH, whose socket only this user may open. A socket that a process that has
// died left at PATH is replaced.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		l, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("nbd: cannot listen at %q (HOST:PORT or unix:PATH): %w", address, err)
		}
		return l, nil
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("nbd: cannot make the socket %q: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("nbd: the socket %q would be open to others: %w", path, err)
	}
	return l, nil
}

// removeStale removes a socket at which nobody listens. Anything else stays.
func removeStale(ctx context.Context, path string) error {
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSocket == 0 {
		return nil //nolint:nilerr // nothing there, or something that the listener will refuse to replace
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("nbd: somebody serves at the socket %q; stop it or choose another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nbd: is the socket %q in use? %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("nbd: the socket %q of a process that has died cannot be removed: %w", path, err)
	}
	return nil
}

// isTemporary tells errors of accept that pass: a caller that has gone again, or no descriptor left.
func isTemporary(err error) bool {
	var n syscall.Errno
	return errors.As(err, &n) && (n.Temporary() || n == syscall.ENOBUFS || n == syscall.ENOMEM)
}
