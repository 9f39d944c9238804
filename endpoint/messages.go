package endpoint

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/rail"
	"railyard/wire"
)

// This file is the whole protocol of the endpoint and node actors, besides rma's messages (rma/messages.go) and
// what rails report (rail/messages.go, rail/linkwatch.go).

// To the node actor.
type (
	// spawnEndpoint makes the actor of an endpoint; the answer, spawned, comes when e.pid is there.
	spawnEndpoint struct{ e *Endpoint }
	spawned       struct{}
	// revive restarts an endpoint actor that had a bug, now that its epoch is over.
	revive struct {
		noLetter
		child *actor.PID
	}
)

// To the endpoint actor, from the endpoint's methods. Those sent by submit are marked; the actor outlives them.
type (
	// *operation itself: start it (submit).

	// takeBack cancels an operation, abandon gives its outcome up (submit).
	takeBack struct {
		ticket
		o *operation
	}
	abandon struct {
		ticket
		o *operation
	}
	// accepted brings a connection whose handshake the peer has confirmed (submit).
	accepted struct {
		ticket
		id            wire.RailID
		local, remote string
		message       *rail.Accepted
	}
)

// To the endpoint actor, as facts.
type (
	// open says where to dial first.
	open struct {
		noLetter
		from    rail.Binding
		address string
	}
	// agreed: the peer has answered the first hello.
	agreed struct{ noLetter }
	// yielded: the peer's first session was taken instead of ours; our rails stop dialing.
	yielded struct{ noLetter }
	// devicesChanged: local devices came or went; those at the addresses back were away for a while. devicesTold: the peer has told
	// of its own.
	devicesChanged struct {
		noLetter
		back []string
	}
	devicesTold struct{ noLetter }
	// reached says which pairs of devices reach the peer. doubted: it is time to ask again about those that do not.
	reached struct {
		noLetter
		pairs map[[2]string]bool
	}
	doubted struct{ noLetter }
	// revise: it is time to look at the devices that the peer has told. freed: the rail that had this number has stopped.
	revise struct{ noLetter }
	freed  struct {
		noLetter
		id wire.RailID
	}
	// railsChanged: a rail came, went, or fell silent.
	railsChanged struct{ noLetter }
	// completed: an operation that an actor asked for has ended.
	completed struct {
		ticket
		o   *operation
		err error
		// told: its Done has been sent.
		told bool
	}
	// peerLeft: the peer said goodbye. peerLeaves: it refuses a rail since it is about to.
	// peerRestarted: another incarnation answers, and the old one is silent.
	// sessionLost: the peer does not know our session any more.
	peerLeft      struct{ noLetter }
	peerLeaves    struct{ noLetter }
	peerRestarted struct{ noLetter }
	sessionLost   struct{ noLetter }
	// outage: look whether the peer has been silent on all rails for too long. due is when the look was to be.
	outage struct {
		noLetter
		due time.Duration
	}
	// finish: the endpoint has ended; stop when nothing submitted is on its way.
	finish struct{ noLetter }
)

// ticket is in every message that Endpoint.starting counts. Whoever serves it, or cleans up after a bug in that, takes it
// off the count; only the first does.
type ticket struct{ used atomic.Bool }

func (t *ticket) use() bool { return t.used.CompareAndSwap(false, true) }

// counted is a message with a ticket.
type counted interface{ use() bool }

// served takes a message off the count of those that the actor outlives.
func (e *Endpoint) served(m counted) {
	if m.use() {
		e.starting.Add(-1)
	}
}

// noLetter keeps facts that come too late, after their actor has ended, out of the dead letters' log.
type noLetter struct{}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (noLetter) IgnoreDeadLetterLogging() {}

// asker names an operation that an actor asked for by its own number.
type asker struct {
	pid string
	id  uint64
}

func askerOf(pid *actor.PID, id uint64) asker { return asker{pid.GetAddress() + "/" + pid.GetId(), id} }
