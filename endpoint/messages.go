package endpoint

import (
	"github.com/asynkron/protoactor-go/actor"

	"railyard/rail"
	"railyard/wire"
)

// This file is the whole protocol of the endpoint and node actors, besides rma's messages (rma/messages.go) and
// what rails report (rail/messages.go).

// To the node actor.
type (
	// spawnEndpoint makes the actor of an endpoint; done is closed when e.pid is there.
	spawnEndpoint struct {
		e    *Endpoint
		done chan struct{}
	}
)

// To the endpoint actor, from the endpoint's methods. Those sent by submit are marked; the actor outlives them.
type (
	// *operation itself: start it (submit).

	// takeBack cancels an operation, abandon gives its outcome up (submit).
	takeBack struct{ o *operation }
	abandon  struct{ o *operation }
	// accepted brings a connection whose handshake the peer has confirmed (submit).
	accepted struct {
		id            wire.RailID
		local, remote string
		message       *rail.Accepted
	}
)

// To the endpoint actor, as facts.
type (
	// open says where to dial first.
	open struct {
		binding int
		address string
	}
	// agreed: the peer has answered the first hello; dialed is the rail that it came over.
	agreed struct{ dialed wire.RailID }
	// railsChanged: a rail came, went, or fell silent.
	railsChanged struct{}
	// completed: an operation that an actor asked for has ended.
	completed struct {
		o   *operation
		err error
	}
	// peerLeft: the peer said goodbye. peerRestarted: another incarnation answers, and the old one is silent.
	// sessionLost: the peer does not know our session any more.
	peerLeft      struct{}
	peerRestarted struct{}
	sessionLost   struct{}
	// outage: look whether the last rail has been down for too long.
	outage struct{}
	// finish: the endpoint has ended; stop when nothing submitted is on its way.
	finish struct{}
	// linkHint: a local card's carrier changed.
	linkHint struct {
		device string
		up     bool
	}
)

// asker names an operation that an actor asked for by its own number.
type asker struct {
	pid string
	id  uint64
}

func askerOf(pid *actor.PID, id uint64) asker { return asker{pid.GetAddress() + "/" + pid.GetId(), id} }
