//go:build !linux

package cable

import (
	"net"
	"syscall"
)

// queued is known on Linux alone.
func queued(*net.TCPConn) int64 { return 0 }

func gone(*net.TCPConn) bool { return false }

func smallBuffers(_, _ string, _ syscall.RawConn) error { return nil }
