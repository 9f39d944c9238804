package actors

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"railyard/rma"
)

// ErrAlloc is wrapped by the errors of Node.Alloc.
var ErrAlloc = errors.New("no memory outside the heap")

// arena is the node's memory outside the Go heap.
type arena struct {
	mu     sync.Mutex
	maps   [][]byte
	closed bool
}

// alloc maps size bytes of zeros.
func (a *arena) alloc(size int) ([]byte, error) {
	page := unix.Getpagesize()
	if size <= 0 || size > math.MaxInt-page {
		return nil, fmt.Errorf("%w: a size of %d bytes: give a positive one", ErrAlloc, size)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, fmt.Errorf("%w: %w", ErrAlloc, rma.ErrShutdown)
	}
	mem, err := unix.Mmap(-1, 0, (size+page-1)/page*page,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("%w: the system refused %d bytes (see its limits on memory): %w",
			ErrAlloc, size, err)
	}
	a.maps = append(a.maps, mem)
	return mem[:size:size], nil
}

// close ends it: nothing is handed out any more. free: what was handed out is unmapped as well.
func (a *arena) close(free bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if !free {
		return nil
	}
	var errs []error
	for _, mem := range a.maps {
		if err := unix.Munmap(mem); err != nil {
			errs = append(errs, fmt.Errorf("could not unmap %d bytes: %w", len(mem), err))
		}
	}
	a.maps = nil
	return errors.Join(errs...)
}
