package nbd

import (
	"context"
	"sync"
)

// Memory is a Device that forgets everything with its process: for trying clients out, and the smallest example of a Device.
type Memory struct {
	mu   sync.RWMutex
	data []byte // Owner: mu
}

// NewMemory makes a device of so many bytes, all zero.
func NewMemory(size int) *Memory { return &Memory{data: make([]byte, size)} }

// Size is Device's.
func (m *Memory) Size() int64 { return int64(len(m.data)) }

// ReadAt is Device's.
func (m *Memory) ReadAt(_ context.Context, p []byte, offset int64) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	copy(p, m.data[offset:])
	return nil
}

// WriteAt is Device's. What is in memory is as durable as it gets.
func (m *Memory) WriteAt(ctx context.Context, w Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	copy(m.data[w.Offset:], w.Data)
	return nil
}

// Flush is Device's.
func (m *Memory) Flush(context.Context) error { return nil }

// Trim is Device's. What was trimmed reads as zeroes.
func (m *Memory) Trim(ctx context.Context, r Range) error { return m.WriteZeroes(ctx, r) }

// WriteZeroes is Device's.
func (m *Memory) WriteZeroes(ctx context.Context, r Range) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	clear(m.data[r.Offset : r.Offset+r.Length])
	return nil
}

// Ended is Device's.
func (m *Memory) Ended(uint64) {}
