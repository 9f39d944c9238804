package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
)

// watched are the actors of this node that actors of peers watch. An actor keeps its watchers until
// they unwatch it; a peer that is gone cannot, so this table does when its endpoint ends. Otherwise
// a long-lived actor would keep the watchers of every peer that ever was.
type watched struct {
	node *Node
	mu   sync.Mutex
	// by has the watchers of one peer by its address, each with the endpoint that its Watch came
	// by.
	by map[string]map[watchedPair]*endpoint.Endpoint
}

// watchedPair are the ids of both actors, and the watcher's address.
type watchedPair struct{ watchee, address, watcher string }

func (t *watched) add(from *endpoint.Endpoint, watchee string, watcher *actor.PID) {
	t.mu.Lock()
	if t.by[watcher.Address] == nil {
		t.by[watcher.Address] = make(map[watchedPair]*endpoint.Endpoint)
	}
	t.by[watcher.Address][watchedPair{watchee, watcher.Address, watcher.Id}] = from
	t.mu.Unlock()
	if from.Err() != nil {
		t.down(from)
	}
}

func (t *watched) remove(pair watchedPair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by[pair.address], pair)
	if len(t.by[pair.address]) == 0 {
		delete(t.by, pair.address)
	}
}

// down takes the peer's watchers off our actors.
func (t *watched) down(e *endpoint.Endpoint) {
	t.mu.Lock()
	var gone []watchedPair
	for _, pairs := range t.by {
		for pair, from := range pairs {
			if from == e {
				gone = append(gone, pair)
			}
		}
	}
	t.mu.Unlock()
	for _, pair := range gone {
		t.remove(pair)
		if local, ok := t.node.system.ProcessRegistry.GetLocal(pair.watchee); ok {
			local.SendSystemMessage(t.node.system.NewLocalPID(pair.watchee),
				&actor.Unwatch{Watcher: actor.NewPID(pair.address, pair.watcher)})
		}
	}
}
