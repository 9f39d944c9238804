package verbs

import "errors"

// Why this host, or one of its ports, has no verbs rail. None of them is a fault: rails over TCP work without.
var (
	// ErrNotBuilt: the program knows no verbs on this system, or was built with the tag noverbs.
	ErrNotBuilt = errors.New("this build has no verbs: it takes linux on amd64, without the tag noverbs")
	// ErrNoLibrary: libibverbs is not installed.
	ErrNoLibrary = errors.New("libibverbs.so.1 cannot be opened: install rdma-core's library (Debian: libibverbs1, ibverbs-providers)")
	// ErrNoDevice: the kernel shows no such RDMA device, or none at all.
	ErrNoDevice = errors.New("no such RDMA device here: load the card's driver; for soft-RoCE: rdma link add rxe0 type rxe netdev eth0")
	// ErrNoProvider: the kernel has the device, but the library has no driver for it.
	ErrNoProvider = errors.New("libibverbs does not know the device: install its provider (Debian: ibverbs-providers)")
	// ErrPortDown: the port is not active.
	ErrPortDown = errors.New("the RDMA port is not active: check the cable and ip link")
	// ErrNoGID: the port has no address to be reached at.
	ErrNoGID = errors.New("the RDMA port has no RoCE v2 address: give its network card an IP address")
)

// What goes wrong with cards that are there.
var (
	// ErrMemlock: the process may not pin so much memory.
	ErrMemlock = errors.New("the system refuses to pin so much memory: raise RLIMIT_MEMLOCK (ulimit -l, systemd's LimitMEMLOCK)")
	// ErrPinned: the card's own limit, set when it was opened, is reached.
	ErrPinned = errors.New("the limit on memory pinned for this card is reached: revoke regions, or raise the limit")
	// ErrQueueFull: as many requests are posted as the queue has room for; poll first.
	ErrQueueFull = errors.New("the queue pair has no room for another request until one completes")
	// ErrClosed: the queue is destroyed, or the card closed.
	ErrClosed = errors.New("the queue pair is destroyed")
	// ErrRange: a request names bytes outside of its registered memory.
	ErrRange = errors.New("a request goes beyond the registered memory")
)
