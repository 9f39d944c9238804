package actors

import (
	"sync/atomic"

	"railyard/endpoint"
)

// Bounds of what is remembered about one peer, to send faster; all of it can be made again.
const (
	maxProcesses    = 64 << 10
	maxSenders      = 16 << 10
	maxPeerTypes    = 4096
	maxLocalTargets = 64 << 10
)

// peer is another node by one of its addresses: its route, and the names that messages on it use.
//
// Owner: Node.peers, until its route is dropped; and the PIDs that remember it, for which it works on. So there may be two of one
// address: what concerns the peer is compared by address. All methods may be called from any goroutine.
type peer struct {
	node      *Node
	address   string
	route     *endpoint.Route
	processes *cache[string, *process]
	senders   *cache[string, *endpoint.Ref]
	types     *cache[string, *endpoint.Ref]
	// settling: a goroutine is about to learn which endpoint carries what waits for a connection.
	settling atomic.Bool
}

// peer gives the peer of that address.
func (n *Node) peer(address string) *peer {
	if p, ok := n.peers.Load(address); ok {
		return p.(*peer)
	}
	p, known := n.peers.LoadOrStore(address, &peer{
		node: n, address: address, route: n.manager().Route(address),
		processes: newCache[string, *process](maxProcesses),
		senders:   newCache[string, *endpoint.Ref](maxSenders),
		types:     newCache[string, *endpoint.Ref](maxPeerTypes),
	})
	if dropped := n.manager().RoutesDropped(); !known && n.swept.Swap(dropped) != dropped {
		n.sweep()
	}
	return p.(*peer)
}

// sweep forgets the peers whose routes the manager has forgotten.
func (n *Node) sweep() {
	n.peers.Range(func(address, p any) bool {
		if p.(*peer).route.Dropped() {
			n.peers.CompareAndDelete(address, p)
		}
		return true
	})
}

// process gives the Process of a remote actor. PIDs keep it for ever, so it depends on nothing that
// ends before the node does. Those of futures are used once and not remembered.
func (p *peer) process(id string) *process {
	if isFuture(id) {
		return newProcess(p, id)
	}
	if found, ok := p.processes.get(id); ok {
		return found
	}
	return p.processes.put(id, newProcess(p, id))
}

// sender gives the name of a sending PID, "address/id".
func (p *peer) sender(address, id string) *endpoint.Ref {
	name := address + "/" + id
	if isFuture(id) {
		return endpoint.NewRefOnce(name)
	}
	if ref, ok := p.senders.get(name); ok {
		return ref
	}
	return p.senders.put(name, endpoint.NewRef(name))
}

func (p *peer) typeName(name string) *endpoint.Ref {
	if ref, ok := p.types.get(name); ok {
		return ref
	}
	return p.types.put(name, endpoint.NewRef(name))
}

// settleLater finds out which endpoint carries what has just been sent, where there was none yet:
// watches and futures need to know whose end concerns them.
func (p *peer) settleLater() {
	if !p.settling.CompareAndSwap(false, true) {
		return
	}
	started := p.node.track(func() {
		e, err := p.node.manager().Connect(p.node.ctx, p.address)
		// Whoever comes after this line starts another goroutine; whoever came before is in the
		// tables.
		p.settling.Store(false)
		if err != nil {
			e = nil
		}
		p.node.watches.settle(p, e)
		p.node.futures.settle(p, e)
	})
	if !started {
		p.settling.Store(false)
		p.node.watches.settle(p, nil)
	}
}

// leadsTo tells whether messages to this address go to that endpoint now, or went there by its own
// name.
func (p *peer) leadsTo(e *endpoint.Endpoint) bool {
	return p.address == e.Address() || p.route.Endpoint() == e
}
