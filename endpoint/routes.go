package endpoint

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// MaxRoutes is how many addresses a node remembers that lead nowhere at present. Those with an endpoint, of which MaxPeers bounds the
// number, do not count as such, and nor do those at which it is looking for a node.
const MaxRoutes = 16 << 10

// routes are the ways to addresses.
//
// Invariant: where there are more than room, the others are in use, or it is about to be looked which are not. Whatever is
// resolving is in by: only what is idle is dropped, and what is dropped enters itself again before it resolves.
type routes struct {
	by       map[string]*Route // Owner: Manager.mu
	room     int
	trimming atomic.Bool
	dropped  atomic.Uint64
}

// Route gives the address's route. It stays good for ever, also where the node itself has forgotten it since.
func (m *Manager) Route(address string) *Route {
	m.mu.Lock()
	r := m.routes.by[address]
	crowded := false
	if r == nil {
		r = &Route{m: m, address: address, used: m.now()}
		m.routes.by[address] = r
		crowded = len(m.routes.by) > m.routes.room
	}
	m.mu.Unlock()
	if crowded && m.routes.trimming.CompareAndSwap(false, true) {
		m.trimRoutes(r)
		m.routes.trimming.Store(false)
	}
	return r
}

// RoutesDropped counts the routes that the node has forgotten so far: who remembers routes by address may look then which of them are
// among these (Route.Dropped).
func (m *Manager) RoutesDropped() uint64 { return m.routes.dropped.Load() }

func (m *Manager) allRoutes() []*Route {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*Route, 0, len(m.routes.by))
	for _, r := range m.routes.by {
		list = append(list, r)
	}
	return list
}

// trimRoutes forgets the routes that have been idle for longest, an eighth more than there must be, so that it is not done each time.
func (m *Manager) trimRoutes(but *Route) {
	type idler struct {
		r    *Route
		used time.Duration
	}
	var idle []idler
	all := m.allRoutes()
	for _, r := range all {
		if used, ok := r.idle(); ok && r != but {
			idle = append(idle, idler{r, used})
		}
	}
	slices.SortFunc(idle, func(a, b idler) int { return cmp.Compare(a.used, b.used) })
	for _, i := range idle[:min(len(idle), len(all)-m.routes.room+m.routes.room/8)] {
		i.r.drop()
	}
}

// idle tells whether the route leads to no endpoint and looks for none, and when it last did.
func (r *Route) idle() (used time.Duration, ok bool) {
	e := r.to.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, !r.resolving && (e == nil || e.Err() != nil)
}

// drop has the node forget the route, unless it is resolving by now.
func (r *Route) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resolving || r.dropped {
		return
	}
	r.dropped = true
	r.to.Store(nil)
	r.m.mu.Lock()
	delete(r.m.routes.by, r.address)
	r.m.mu.Unlock()
	r.m.routes.dropped.Add(1)
}

// Dropped tells whether the node has forgotten the route. It works all the same.
func (r *Route) Dropped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// enter has the node remember a route that it had forgotten, and gives the one that goes for the address: another one where it was
// asked for meanwhile. Of two that resolve at once each could overtake the other. Called with the lock held.
func (r *Route) enter() *Route {
	if !r.dropped {
		return r
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if other := r.m.routes.by[r.address]; other != nil {
		return other
	}
	r.m.routes.by[r.address] = r
	r.dropped = false
	return r
}

// standIn gives the route that goes for the address where this one was dropped; nil: it is this one.
func (r *Route) standIn() *Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dropped {
		return nil
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.m.routes.by[r.address]
}
