package rma

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Mapping is a region's registration with a card, by which a peer's card reaches the memory without anybody's help here.
//
// All methods may be called from any goroutine.
//
// Invariant: its release runs exactly once: inside the region's Revoke, or in the first Release. Whoever calls either
// returns only when it has run.
type Mapping struct {
	once    sync.Once
	release func()
	// region is nil once the mapping is released: a mapping that outlives its region keeps no memory.
	region atomic.Pointer[Region]
}

// Map has register make the region known to a card, and keeps it so until the mapping's Release or the region's Revoke,
// whichever is first. Register gets the region's memory; what it returns takes the registration back, after which the card
// touches the memory no more: it may block for as long as the card needs, but for no network and no peer.
//
// A Revoke that begins meanwhile waits for register, and then takes back what it has made.
//
// Errors: ErrRevoked, and register's own.
func (r *Region) Map(register func(buf []byte) (release func(), err error)) (*Mapping, error) {
	if !r.Enter() {
		return nil, fmt.Errorf("region %d cannot be mapped: %w", r.key.region, ErrRevoked)
	}
	defer r.Leave()
	release, err := register(r.buf)
	if err != nil {
		return nil, fmt.Errorf("region %d of %d bytes cannot be mapped: %w", r.key.region, len(r.buf), err)
	}
	m := &Mapping{release: release}
	m.region.Store(r)
	r.mapsMu.Lock()
	r.maps = append(r.maps, m)
	r.mapsMu.Unlock()
	return m, nil
}

// Region is whose memory is mapped; nil: the mapping has been released.
func (m *Mapping) Region() *Region { return m.region.Load() }

// Release takes the registration back, unless that has been done.
func (m *Mapping) Release() {
	m.once.Do(func() {
		m.release()
		r := m.region.Swap(nil)
		r.mapsMu.Lock()
		if i := slices.Index(r.maps, m); i >= 0 {
			r.maps = slices.Delete(r.maps, i, i+1)
		}
		r.mapsMu.Unlock()
	})
}

// unmap releases every mapping. The lease is closed: none can come.
func (r *Region) unmap() {
	r.mapsMu.Lock()
	maps := slices.Clone(r.maps)
	r.mapsMu.Unlock()
	for _, m := range maps {
		m.Release()
	}
}
