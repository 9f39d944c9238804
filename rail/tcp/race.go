//go:build race

package tcp

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioSync orders what happened before a write with what happens after a read, as package syscall does: a test
// that learns something from a socket may rely on it.
var ioSync int64

// raceReading tells the race detector that a read has changed the first n bytes of iov: memory that somebody
// uses without the lease is then reported.
func raceReading(iov []unix.Iovec, n int) {
	eachPart(iov, n, runtime.RaceWriteRange)
	if n > 0 {
		runtime.RaceAcquire(unsafe.Pointer(&ioSync))
	}
}

// raceWriting tells the race detector that a write is about to use all of iov.
func raceWriting(iov []unix.Iovec) {
	runtime.RaceReleaseMerge(unsafe.Pointer(&ioSync))
	for i := range iov {
		runtime.RaceReadRange(unsafe.Pointer(iov[i].Base), int(iov[i].Len))
	}
}

func eachPart(iov []unix.Iovec, n int, mark func(unsafe.Pointer, int)) {
	for i := 0; i < len(iov) && n > 0; i++ {
		part := min(n, int(iov[i].Len))
		mark(unsafe.Pointer(iov[i].Base), part)
		n -= part
	}
}
