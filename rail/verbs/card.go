//go:build linux && amd64 && !noverbs

package verbs

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Card is an open RDMA port with a protection domain of its own.
type Card struct {
	port    Port
	lib     *library
	context uintptr
	domain  uintptr
	mtu     uint32 // the library's number for it: 5 is 4096 bytes

	pollCQ, arm, postSend, postReceive uintptr

	mu     sync.Mutex
	limit  uint64
	pinned uint64
}

// Open opens a port that Usable has nothing against. limit bounds the bytes that may be registered at once; 0: no bound
// of ours. The error wraps one of this package's.
func Open(port Port, limit uint64) (*Card, error) {
	if err := port.Usable(); err != nil {
		return nil, err
	}
	lib, err := open()
	if err != nil {
		return nil, err
	}
	c := &Card{port: port, lib: lib, limit: limit}
	if c.context, err = lib.openByName(port.Device); err != nil {
		return nil, err
	}
	if c.domain, err = pointer("ibv_alloc_pd", lib.allocPD, c.context); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	attr := new(portAttr)
	if err := number("ibv_query_port", lib.queryPort, c.context, uintptr(port.Port), uintptr(unsafe.Pointer(attr))); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.mtu = attr.activeMTU
	c.pollCQ, c.arm = word(c.context, contextPollCQ), word(c.context, contextArm)
	c.postSend, c.postReceive = word(c.context, contextPostSend), word(c.context, contextPostRecv)
	return c, nil
}

// openByName opens the device of a name, if the library has a driver for it.
func (l *library) openByName(name string) (uintptr, error) {
	n := new(int32)
	list, err := pointer("ibv_get_device_list", l.deviceList, uintptr(unsafe.Pointer(n)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %w", name, ErrNoDevice, err)
	}
	defer func() { _, _, _ = purego.SyscallN(l.freeDeviceList, list) }()
	for i := range uintptr(max(*n, 0)) {
		device := word(list, i*unsafe.Sizeof(list))
		p, _, _ := purego.SyscallN(l.deviceName, device)
		if text(p) == name {
			return pointer("ibv_open_device "+name, l.openDevice, device)
		}
	}
	return 0, fmt.Errorf("%s: %w", name, ErrNoProvider)
}

// Close gives the card back. Its queues are destroyed and its memory released before.
func (c *Card) Close() error {
	var errs []error
	if c.domain != 0 {
		errs = append(errs, number("ibv_dealloc_pd", c.lib.freePD, c.domain))
		c.domain = 0
	}
	if c.context != 0 {
		errs = append(errs, number("ibv_close_device", c.lib.closeDevice, c.context))
		c.context = 0
	}
	return errors.Join(errs...)
}

// Pinned gives the bytes that are registered now.
func (c *Card) Pinned() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pinned
}

// Access is what a peer may do with registered memory, besides what the card does on its owner's behalf.
type Access uint32

// Rights of a peer.
const (
	RemoteWrite Access = accessRemoteWrite
	RemoteRead  Access = accessRemoteRead
)

// Memory is registered, so pinned: the card reads and writes it by itself.
type Memory struct {
	card   *Card
	buf    []byte
	handle uintptr
	local  uint32
	remote uint32
	pinner runtime.Pinner
	once   sync.Once
	err    error
}

// Register makes buf known to the card until Release. ErrPinned and ErrMemlock say which limit was met.
func (c *Card) Register(buf []byte, access Access) (*Memory, error) {
	if len(buf) == 0 {
		return nil, fmt.Errorf("an empty buffer cannot be registered: %w", ErrRange)
	}
	size := uint64(len(buf))
	if !c.reserve(size) {
		return nil, fmt.Errorf("%s: %d bytes more: %w", c.port, size, ErrPinned)
	}
	m := &Memory{card: c, buf: buf}
	m.pinner.Pin(&buf[0])
	var err error
	m.handle, err = pointer("ibv_reg_mr", c.lib.register, c.domain, uintptr(unsafe.Pointer(&buf[0])), uintptr(size),
		uintptr(accessLocalWrite|access))
	if err != nil {
		m.pinner.Unpin()
		c.reserve(-size)
		if errors.Is(err, syscall.ENOMEM) {
			return nil, fmt.Errorf("%s: %d bytes more: %w (%w)", c.port, size, ErrMemlock, err)
		}
		return nil, err
	}
	m.local, m.remote = word32(m.handle, memoryLocalKey), word32(m.handle, memoryRemoteKey)
	return m, nil
}

// reserve counts bytes (or, as a complement, gives them back) and tells whether they fit.
func (c *Card) reserve(size uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.pinned + size; c.limit == 0 || n <= c.limit {
		c.pinned = n
		return true
	}
	return false
}

// Key is what a peer writes and reads the memory by, Address where it begins.
func (m *Memory) Key() uint32 { return m.remote }

// Address is the memory's, as the card and the peer name it.
func (m *Memory) Address() uint64 { return uint64(uintptr(unsafe.Pointer(&m.buf[0]))) }

// Release takes the memory from the card. When it has returned no peer's byte lands in it, whatever is under way; that costs
// the queue pairs that wrote to it. Every call gives the first one's result.
func (m *Memory) Release() error {
	m.once.Do(func() {
		if m.err = number("ibv_dereg_mr", m.card.lib.deregister, m.handle); m.err == nil {
			m.pinner.Unpin()
			m.card.reserve(-uint64(len(m.buf)))
		}
	})
	return m.err
}

// part gives the card's words for a part of the memory.
func (m *Memory) part(offset, length int) (sge, error) {
	if offset < 0 || length < 0 || offset > len(m.buf) || length > len(m.buf)-offset || uint64(length) > 1<<31 {
		return sge{}, fmt.Errorf("%d bytes at %d of %d: %w", length, offset, len(m.buf), ErrRange)
	}
	return sge{address: m.Address() + uint64(offset), length: uint32(length), key: m.local}, nil
}
