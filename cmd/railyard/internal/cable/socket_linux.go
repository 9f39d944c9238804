package cable

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// queued gives the bytes in a socket's receive queue and those in its send queue that the peer's
// kernel has not acknowledged.
func queued(conn *net.TCPConn) int64 {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	var sum int
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			sum += n
		}
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ); err == nil {
			sum += n
		}
	})
	return int64(sum)
}

// gone tells whether the other end has closed or reset the connection and nothing is left to read.
func gone(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
	return ended || err != nil
}

// smallBuffers keeps the kernel from making a cable seconds long. A wish that is refused does no harm.
func smallBuffers(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, kernelRoom)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, kernelRoom)
	})
}
