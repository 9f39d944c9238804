package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
)

// watches are the local actors that watch actors of peers. The peer's actor tells them when it
// stops; when the endpoint ends, this table does.
//
// Invariant: a watch leaves the table exactly once, and whoever takes it out tells the watcher,
// unless that was Unwatch.
// Invariant: size counts the watches in byName; those of watchers that have stopped are at most
// half of them, or minSweep.
type watches struct {
	node *Node
	mu   sync.Mutex
	// byName has mostly one element a key: actors of two peers, or one by two addresses, may have
	// the same id.
	byName  map[watchName][]*watch
	size    int
	sweepAt int
}

// watchName are the ids of both actors.
type watchName struct{ watcher, watchee string }

// watch is one local actor watching one remote one.
type watch struct {
	peer    *peer
	watcher *actor.PID
	// who is the watchee as the watcher knows it.
	who *actor.PID
	// on is the endpoint that carried the Watch; nil while it waits for one. Owner: watches.mu.
	on *endpoint.Endpoint
}

func (w *watch) name() watchName { return watchName{w.watcher.Id, w.who.Id} }

// endedBy tells whether the end of e is the end of what the watch relies on.
func (w *watch) endedBy(e *endpoint.Endpoint) bool {
	return w.on == e || ((w.on == nil || w.on.Err() != nil) && w.peer.leadsTo(e))
}

// watchTries bounds how often a Watch is sent again because the endpoint changed while it was being
// sent.
const watchTries = 3

// watch sends a Watch and notes it, if the watcher is ours.
func (t *watches) watch(p *process, who, watcher *actor.PID) {
	if watcher == nil {
		return
	}
	message := letter{system: true, message: &actor.Watch{Watcher: t.node.outward(watcher)}}
	if !t.node.isLocal(watcher.Address) {
		p.sendSystem(who, message.message)
		return
	}
	w, crowded := t.add(&watch{peer: p.peer, watcher: watcher, who: who})
	if crowded {
		t.sweep()
	}
	for range watchTries {
		before := p.peer.route.Endpoint()
		if err := p.trySystem(message); err != nil {
			break
		}
		// A Watch may be sent twice. What must not happen is that its endpoint is not known.
		if p.peer.route.Endpoint() != before {
			continue
		}
		if before == nil {
			p.peer.settleLater()
		} else {
			t.bind(w, before)
		}
		return
	}
	t.tell(w, actor.TerminatedReason_AddressTerminated)
}

// add gives the watch in the table: w, or the one that was there for the same two actors. The table
// is crowded when it is time to sweep it.
func (t *watches) add(w *watch) (kept *watch, crowded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.byName[w.name()] {
		if other.peer.address == w.peer.address {
			return other, false
		}
	}
	t.byName[w.name()] = append(t.byName[w.name()], w)
	t.size++
	if t.size < t.sweepAt {
		return w, false
	}
	t.sweepAt = max(minSweep, 2*t.size)
	return w, true
}

// sweep unwatches for the watchers that have stopped; protoactor leaves that to whoever stops.
func (t *watches) sweep() {
	for _, w := range t.matching(func(*watch) bool { return true }) {
		if _, alive := t.node.system.ProcessRegistry.GetLocal(w.watcher.Id); !alive {
			t.unwatch(w.peer.process(w.who.Id), w.watcher)
		}
	}
}

// bind notes the endpoint that carries the Watch; one that has ended meanwhile ends the watch.
func (t *watches) bind(w *watch, e *endpoint.Endpoint) {
	t.mu.Lock()
	w.on = e
	t.mu.Unlock()
	if e.Err() != nil {
		t.tell(w, actor.TerminatedReason_AddressTerminated)
	}
}

// take removes the watch; false: somebody else has.
func (t *watches) take(w *watch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.byName[w.name()]
	for i, other := range list {
		if other != w {
			continue
		}
		t.size--
		if len(list) == 1 {
			delete(t.byName, w.name())
		} else {
			t.byName[w.name()] = append(list[:i:i], list[i+1:]...)
		}
		return true
	}
	return false
}

// tell ends the watch, and tells the watcher why.
func (t *watches) tell(w *watch, why actor.TerminatedReason) {
	if !t.take(w) {
		return
	}
	if watcher, ok := t.node.system.ProcessRegistry.GetLocal(w.watcher.Id); ok {
		watcher.SendSystemMessage(w.watcher, &actor.Terminated{Who: w.who, Why: why})
	}
}

// unwatch takes the watch out and tells the peer.
func (t *watches) unwatch(p *process, watcher *actor.PID) {
	if watcher == nil {
		return
	}
	name := watchName{watcher.Id, p.id}
	for _, w := range t.named(name, func(w *watch) bool { return w.peer.address == p.peer.address }) {
		t.take(w)
	}
	// Where that fails the peer's actor, or the peer itself, is gone, and there is nothing to
	// unwatch.
	_ = p.trySystem(letter{system: true, message: &actor.Unwatch{Watcher: t.node.outward(watcher)}})
}

// terminated is what a peer says of one of its actors.
func (t *watches) terminated(from *endpoint.Endpoint, watcher string, m *actor.Terminated) {
	name := watchName{watcher, m.Who.GetId()}
	for _, w := range t.named(name, func(w *watch) bool { return w.on == from || w.peer.leadsTo(from) }) {
		t.tell(w, m.Why)
	}
}

// failed: a Watch did not arrive, and will not.
func (t *watches) failed(who, watcher *actor.PID) {
	name := watchName{watcher.GetId(), who.Id}
	match := func(w *watch) bool { return w.peer.address == who.Address || w.names(who.Address) }
	for _, w := range t.named(name, match) {
		t.tell(w, actor.TerminatedReason_AddressTerminated)
	}
}

// names tells whether the watch is carried by the endpoint of that address.
func (w *watch) names(address string) bool { return w.on != nil && w.on.Address() == address }

// named gives the watches of two ids that match.
func (t *watches) named(name watchName, match func(*watch) bool) []*watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*watch
	for _, w := range t.byName[name] {
		if match(w) {
			found = append(found, w)
		}
	}
	return found
}

// settle ends the uncertainty of the watches that have waited for a connection to p: e carries
// them, or, where e is nil, nothing does.
func (t *watches) settle(p *peer, e *endpoint.Endpoint) {
	for _, w := range t.matching(func(w *watch) bool { return w.peer.address == p.address && w.on == nil }) {
		if e == nil {
			t.tell(w, actor.TerminatedReason_AddressTerminated)
		} else {
			t.bind(w, e)
		}
	}
}

// down tells every watcher of the peer's actors that they are gone.
func (t *watches) down(e *endpoint.Endpoint) {
	for _, w := range t.matching(func(w *watch) bool { return w.endedBy(e) }) {
		t.tell(w, actor.TerminatedReason_AddressTerminated)
	}
}

// matching gives all watches that match.
func (t *watches) matching(match func(*watch) bool) []*watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*watch
	for _, list := range t.byName {
		for _, w := range list {
			if match(w) {
				found = append(found, w)
			}
		}
	}
	return found
}
