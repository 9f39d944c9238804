package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
	"railyard/endpoint/session"
)

// inflow is what one peer has sent in one session, and what of it the actors here have not processed.
//
// Owner: Node.inflows, until the endpoint ends. All methods may be called from any goroutine.
type inflow struct {
	node      *Node
	from      *endpoint.Endpoint
	tellEvery uint64
	held      atomic.Int64 // bytes of the window that are not given back

	mu sync.Mutex
	// busy are the inlets that may hold something. unnamed are those of actors whose names came in full, because the
	// session's table is full; sweepAt is their number at which the empty ones are forgotten.
	busy    []*inlet
	unnamed map[string]*inlet
	sweepAt int
}

// lookEvery is how often inlets are looked at that hold enough for a sender to miss it.
const lookEvery = time.Millisecond

// inflow gives the endpoint's.
func (n *Node) inflow(from *endpoint.Endpoint) *inflow {
	if in, ok := n.inflows.Load(from); ok {
		return in.(*inflow)
	}
	in, _ := n.inflows.LoadOrStore(from,
		&inflow{node: n, from: from, tellEvery: from.TellEvery(), unnamed: make(map[string]*inlet), sweepAt: minSweep})
	if from.Err() != nil { // nobody tells of its end any more
		n.inflows.Delete(from)
	}
	return in.(*inflow)
}

// inlet gives the record of a target, nil where there is none to keep: nobody has that name, and it came in full.
func (n *Node) inlet(from *endpoint.Endpoint, target *session.Name) *inlet {
	if l, ok := from.Inlets.Load(target); ok {
		return l.(*inlet)
	}
	in := n.inflow(from)
	if !target.Interned() {
		return in.inFull(target.S)
	}
	l, _ := from.Inlets.LoadOrStore(target,
		&inlet{in: in, name: target.S, interned: true, pid: n.system.NewLocalPID(target.S)})
	return l.(*inlet)
}

func (in *inflow) inFull(name string) *inlet {
	if actorOf(in.node.system, name) == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	l := in.unnamed[name]
	if l == nil {
		l = &inlet{in: in, name: name, pid: in.node.system.NewLocalPID(name)}
		in.unnamed[name] = l
		if len(in.unnamed) >= in.sweepAt {
			in.sweep(l)
		}
	}
	return l
}

// sweep forgets inlets that hold nothing, but for the newest. Called with mu held.
func (in *inflow) sweep(newest *inlet) {
	for name, l := range in.unnamed {
		// Whoever holds its lock is about to use it.
		if l == newest || !l.mu.TryLock() {
			continue
		}
		if !l.listed {
			delete(in.unnamed, name)
		}
		l.mu.Unlock()
	}
	in.sweepAt = max(minSweep, 2*len(in.unnamed))
}

// actorOf gives the process of an actor of ours; nil: nobody, or no actor.
func actorOf(system *actor.ActorSystem, id string) *actor.ActorProcess {
	local, ok := system.ProcessRegistry.GetLocal(id)
	if !ok {
		return nil
	}
	p, _ := local.(*actor.ActorProcess)
	return p
}

// list notes that an inlet holds something.
func (in *inflow) list(l *inlet) {
	in.mu.Lock()
	in.busy = append(in.busy, l)
	in.mu.Unlock()
}

// give gives window back to the peer, and sees to it that what is left is looked at.
func (in *inflow) give(l *inlet, g given) {
	if g.bytes > 0 {
		in.from.Consumed(g.bytes)
	}
	if g.tell > 0 {
		in.from.Processed(l.name, g.tell)
	}
	if in.pressing() {
		in.node.watchInflows()
	}
}

// pressing: so much is held that a sender may wait for it.
func (in *inflow) pressing() bool { return in.held.Load() >= int64(in.tellEvery) }

// look gives back what has been processed since the last time.
func (in *inflow) look() {
	in.mu.Lock()
	list := in.busy
	in.busy = nil
	in.mu.Unlock()
	kept := list[:0]
	for _, l := range list {
		g, idle := l.look()
		if !idle {
			kept = append(kept, l)
		}
		if g.bytes > 0 {
			in.from.Consumed(g.bytes)
		}
		if g.tell > 0 {
			in.from.Processed(l.name, g.tell)
		}
	}
	in.mu.Lock()
	in.busy = append(kept, in.busy...)
	in.mu.Unlock()
}

// watchInflows starts the goroutine that looks at the inlets, unless it is there. It ends when nobody may be waiting.
func (n *Node) watchInflows() {
	if n.looking.Load() || !n.looking.CompareAndSwap(false, true) {
		return
	}
	if !n.track(n.lookAtInflows) {
		n.looking.Store(false)
	}
}

func (n *Node) lookAtInflows() {
	t := time.NewTimer(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-n.ended:
			return
		}
		began := time.Now()
		if !n.lookOnce() {
			n.looking.Store(false)
			// What became pressing before that line found a goroutine at work.
			if !n.anyPressing() || !n.looking.CompareAndSwap(false, true) {
				return
			}
		}
		// However many there are, most of the time is not ours.
		t.Reset(max(lookEvery, 10*time.Since(began)))
	}
}

// lookOnce tells whether anything is still pressing.
func (n *Node) lookOnce() bool {
	n.inflows.Range(func(_, v any) bool {
		if in := v.(*inflow); in.pressing() {
			in.look()
		}
		return true
	})
	return n.anyPressing()
}

func (n *Node) anyPressing() bool {
	pressing := false
	n.inflows.Range(func(_, v any) bool {
		pressing = v.(*inflow).pressing()
		return !pressing
	})
	return pressing
}

// PeerFlow is how full the windows between this node and a peer are.
type PeerFlow struct {
	// Peer is the peer node's address.
	Peer string
	// Out is about messages to the peer.
	Out endpoint.Flow
	// Unprocessed are the bytes of the peer's messages that actors here have not processed; Busy is how many actors
	// had some when it was looked at last.
	Unprocessed uint64
	Busy        int
}

// Flow tells, for each peer that has an endpoint, how full the windows are, in the order of their addresses.
func (n *Node) Flow() []PeerFlow {
	var list []PeerFlow
	for _, e := range n.manager().Endpoints() {
		f := PeerFlow{Peer: e.Address(), Out: e.Flow()}
		if v, ok := n.inflows.Load(e); ok {
			in := v.(*inflow)
			in.look()
			f.Unprocessed = uint64(max(in.held.Load(), 0))
			in.mu.Lock()
			f.Busy = len(in.busy)
			in.mu.Unlock()
		}
		list = append(list, f)
	}
	return list
}
