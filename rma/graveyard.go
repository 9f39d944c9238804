package rma

import (
	"sync"

	"railyard/wire"
)

// graveyard remembers the newest revoked keys.
//
// Invariant: len(ring) <= limit, and index maps exactly the ids in ring to their places.
type graveyard struct {
	limit int

	mu    sync.RWMutex
	ring  []grave
	index map[uint64]int
	// oldest is the place that is overwritten next, once the ring is full.
	oldest int
}

type grave struct {
	region uint64
	token  wire.Token
}

// add is idempotent while the key is remembered.
func (g *graveyard) add(region uint64, token wire.Token) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.index[region]; there || g.limit == 0 {
		return
	}
	if g.index == nil {
		g.index = make(map[uint64]int)
	}
	if len(g.ring) < g.limit {
		g.index[region] = len(g.ring)
		g.ring = append(g.ring, grave{region, token})
		return
	}
	delete(g.index, g.ring[g.oldest].region)
	g.index[region] = g.oldest
	g.ring[g.oldest] = grave{region, token}
	g.oldest = (g.oldest + 1) % g.limit
}

func (g *graveyard) find(region uint64) (token wire.Token, known bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	place, known := g.index[region]
	if !known {
		return token, false
	}
	return g.ring[place].token, true
}
