package actors

import (
	"sync"
	"sync/atomic"
)

// cache remembers about limit values, those asked for lately first. It may forget anything at any
// time: what it holds must be cheap to make again. All methods may be called from any goroutine; a
// hit takes no lock.
//
// Invariant: young and old together hold at most 2*limit values and as many more as there are
// goroutines in put.
type cache[K comparable, V any] struct {
	limit int64
	// mu is held to change the generations.
	mu         sync.Mutex
	young, old atomic.Pointer[cacheGeneration]
}

type cacheGeneration struct {
	values sync.Map
	size   atomic.Int64
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	c := &cache[K, V]{limit: int64(limit)}
	c.young.Store(new(cacheGeneration))
	c.old.Store(new(cacheGeneration))
	return c
}

func (c *cache[K, V]) get(k K) (V, bool) {
	if v, ok := c.young.Load().values.Load(k); ok {
		return v.(V), true
	}
	if v, ok := c.old.Load().values.Load(k); ok {
		return c.put(k, v.(V)), true
	}
	var none V
	return none, false
}

// put gives the value that is kept for k: v, or the one that another goroutine put first.
func (c *cache[K, V]) put(k K, v V) V {
	g := c.young.Load()
	kept, there := g.values.LoadOrStore(k, v)
	if !there && g.size.Add(1) >= c.limit {
		c.age(g)
	}
	return kept.(V)
}

// age makes the full generation the old one.
func (c *cache[K, V]) age(full *cacheGeneration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young.Load() == full {
		c.old.Store(full)
		c.young.Store(new(cacheGeneration))
	}
}
