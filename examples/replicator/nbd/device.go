package nbd

import (
	"context"
	"errors"
	"syscall"
)

// Device is what lies behind an export. Its methods are called by many goroutines at a time, with ranges that lie within Size and are
// multiples of the export's MinBlock.
//
// The context of a call ends when its connection has died, was replaced by a newer one, or when the server stops. A write must not return
// before it is decided: after WriteAt, Trim or WriteZeroes have returned, with whatever error, nothing of that write may land any more.
// Until then no write that overlaps is let in.
type Device interface {
	// Size gives the size in bytes. It is read at each handshake, and must not shrink.
	Size() int64
	// ReadAt fills p with the bytes from offset on.
	ReadAt(ctx context.Context, p []byte, offset int64) error
	// WriteAt writes; a FUA write is durable when it returns. The data is the server's again afterwards.
	WriteAt(ctx context.Context, w Write) error
	// Flush makes durable whatever was answered before, on every connection.
	Flush(ctx context.Context) error
	// Trim may forget the bytes of a range: they read as anything from then on.
	Trim(ctx context.Context, r Range) error
	// WriteZeroes makes a range read as zeroes.
	WriteZeroes(ctx context.Context, r Range) error
	// Ended says that no call of this connection is in progress and that none will come. It must not block.
	Ended(conn uint64)
}

// Prefetcher is a Device that can make use of a client's announcement that it will read a range.
type Prefetcher interface {
	Prefetch(ctx context.Context, offset, length int64) error
}

// Write is a write of bytes.
type Write struct {
	Conn   uint64 // the generation of the connection: unique in the server's life, and larger than those of all connections before
	Cookie uint64 // the client's name for the request; on one connection no two in flight should share it
	Offset int64  // bytes
	Data   []byte // valid until the call returns
	FUA    bool   // durable before it is answered
}

// Range is a trim, or a write of zeroes.
type Range struct {
	Conn, Cookie   uint64 // as in Write
	Offset, Length int64  // bytes
	FUA            bool   // durable before it is answered
	Allocate       bool   // zeroes for which space is to be kept, so that later writes do not find the disk full
}

// ErrGone is for a Device that cannot tell what has become or would become of a request, such as one that has been deposed: the
// connection ends without an answer, and the client asks again on a new one.
var ErrGone = errors.New("nbd: the device has gone from here; connect again")

// codeOf translates what a device says.
func codeOf(err error) code {
	var n syscall.Errno
	switch {
	case err == nil:
		return codeOK
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return codeShutdown
	case errors.As(err, &n):
		switch n {
		case syscall.EPERM, syscall.EROFS, syscall.EACCES:
			return codePermission
		case syscall.ENOMEM:
			return codeNoMemory
		case syscall.EINVAL:
			return codeInvalid
		case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
			return codeNoSpace
		case syscall.EOPNOTSUPP:
			return codeNotSupported
		case syscall.ESHUTDOWN:
			return codeShutdown
		default:
			return codeIO
		}
	}
	return codeIO
}
