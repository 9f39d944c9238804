package actors

import (
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
)

// futurePrefix begins the ids that protoactor gives to futures, and to nothing else.
const futurePrefix = "future$"

func isFuture(id string) bool { return strings.HasPrefix(id, futurePrefix) }

// minSweep is the number of futures below which nobody looks for those that have timed out.
const minSweep = 1024

// futures are this node's futures that wait for an answer from a peer. When its endpoint ends they
// learn at once that none will come.
//
// Invariant: it holds at most twice as many as there are futures that wait, and minSweep.
type futures struct {
	node *Node
	mu   sync.Mutex
	// waiting is by the future's id. A future that timed out stays until the next sweep.
	waiting map[string]waiting
	sweepAt int
}

// waiting says what a future relies on; on is nil while its request waits for an endpoint.
type waiting struct {
	peer *peer
	on   *endpoint.Endpoint
}

func (w waiting) endedBy(e *endpoint.Endpoint) bool {
	return w.on == e || ((w.on == nil || w.on.Err() != nil) && w.peer.leadsTo(e))
}

// expect notes that the future waits for the peer.
func (f *futures) expect(id string, p *peer) {
	on := p.route.Endpoint()
	f.mu.Lock()
	f.waiting[id] = waiting{peer: p, on: on}
	if len(f.waiting) >= f.sweepAt {
		f.sweep()
	}
	f.mu.Unlock()
	if on == nil {
		p.settleLater()
	}
}

// sweep drops the futures that are over.
func (f *futures) sweep() {
	for id := range f.waiting {
		if _, alive := f.node.system.ProcessRegistry.GetLocal(id); !alive {
			delete(f.waiting, id)
		}
	}
	f.sweepAt = max(minSweep, 2*len(f.waiting))
}

// answered: the future has what it waited for.
func (f *futures) answered(id string) {
	f.mu.Lock()
	delete(f.waiting, id)
	f.mu.Unlock()
}

// settle binds the futures whose requests have waited for a connection to p. Where there is none (e
// is nil) the requests come back as dead letters, which answer them.
func (f *futures) settle(p *peer, e *endpoint.Endpoint) {
	f.mu.Lock()
	for id, w := range f.waiting {
		if w.on == nil && w.peer.address == p.address {
			w.on = e
			f.waiting[id] = w
		}
	}
	f.mu.Unlock()
	if e != nil && e.Err() != nil {
		f.down(e)
	}
}

// down answers the futures that wait for the peer as a dead letter would.
func (f *futures) down(e *endpoint.Endpoint) {
	f.mu.Lock()
	var over []string
	for id, w := range f.waiting {
		if w.endedBy(e) {
			over = append(over, id)
			delete(f.waiting, id)
		}
	}
	f.mu.Unlock()
	for _, id := range over {
		if future, ok := f.node.system.ProcessRegistry.GetLocal(id); ok {
			future.SendUserMessage(f.node.system.NewLocalPID(id), &actor.DeadLetterResponse{})
		}
	}
}
