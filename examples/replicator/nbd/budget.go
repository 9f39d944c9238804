package nbd

import (
	"math/bits"
	"sync"
)

// budget bounds what is in flight on a connection. One goroutine takes, any may give back.
type budget struct {
	maxCount, maxBytes int

	mu    sync.Mutex
	freed sync.Cond // of mu
	count int       // Owner: mu
	bytes int       // Owner: mu
}

func newBudget(count, bytes int) *budget {
	b := &budget{maxCount: count, maxBytes: bytes}
	b.freed.L = &b.mu
	return b
}

// take waits for room. It cannot wait for ever: everything in flight returns once the connection has ended.
func (b *budget) take(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.count == b.maxCount || b.bytes+bytes > b.maxBytes {
		b.freed.Wait()
	}
	b.count++
	b.bytes += bytes
}

func (b *budget) give(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count--
	b.bytes -= bytes
	b.freed.Signal()
}

func (b *budget) inFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// pools keep buffers of 2^i bytes. What is in one is not cleared: a device fills all of what it is given to read into.
var pools [31]sync.Pool

// borrow gives a buffer of n bytes, which is 1 to mostPayload.
func borrow(n int) *[]byte {
	class := bits.Len(uint(n - 1))
	if p, ok := pools[class].Get().(*[]byte); ok {
		*p = (*p)[:n]
		return p
	}
	b := make([]byte, n, 1<<class)
	return &b
}

func giveBack(p *[]byte) { pools[bits.Len(uint(cap(*p)-1))].Put(p) }
