package rail

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/supervision"
	"railyard/wire"
)

// This file is the whole protocol of the rail and transport actors. All messages are sent as pointers.
//
// Invariant: everything about a generation carries its number. A mailbox may hold messages for the generation
// before; whoever receives one for a generation that it does not hold drops it.

// Joiner makes the session's decisions for a rail; the endpoint implements it. All methods may be called
// from any goroutine, none may block but Join, and each takes a generation that is over as nothing to do.
type Joiner interface {
	// NextGeneration gives the number for the next dial of this rail.
	NextGeneration(id wire.RailID) wire.Generation
	// Join runs the dialer's handshake on conn (blocking, within ctx) and returns the link of the live
	// generation. An error leaves nothing joined; the connection is killed then, at the latest when ctx
	// ends. ErrNotNeeded says that the rail's older connection has answered meanwhile.
	Join(ctx context.Context, id wire.RailID, g wire.Generation, conn Conn) (Link, error)
	// Vitals of the generation for its health; ok is false when it is over.
	Vitals(id wire.RailID, g wire.Generation) (v Vitals, ok bool)
	// Beat makes the session send a heartbeat on the lane now (it wakes the writer itself).
	Beat(id wire.RailID, g wire.Generation)
	// Attach tells the session which transport carries g from now on. Run comes right after; the lane starts
	// to take work. It may come after Lost for the same generation, and is void then.
	Attach(id wire.RailID, g wire.Generation, t *actor.PID, conn Conn)
	// Suspect: the health machine has not heard from the lane for too long. The session decides: it retires
	// the generation once another lane has answered, and sends Retire to the rail.
	Suspect(id wire.RailID, g wire.Generation, cause error)
	// Trust: healthy again after Suspect.
	Trust(id wire.RailID, g wire.Generation)
	// Lost: the stream of g is over (socket error, panic, killed); the session fences it. It comes exactly
	// once for each generation whose Join returned a link or that came as Accepted.
	Lost(id wire.RailID, g wire.Generation, cause error)
	// Offer: op (of Put, Get, Serve) may be worked on by this generation's lane. Withdraw: of Cancel.
	Offer(id wire.RailID, g wire.Generation, op any)
	Withdraw(id wire.RailID, g wire.Generation, op any)
}

// late is in every message that may reach an actor that has just ended: it stays out of the dead letters' log.
type late struct{}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (late) IgnoreDeadLetterLogging() {}

// Endpoint to rail.
type (
	// Connect makes the rail dial now, whatever it was waiting for. Nothing happens where it is
	// connected or dialing, where the peer dials, and where the rail was given up.
	Connect struct{ late }
	// Accepted gives the rail a generation whose handshake the peer has confirmed. The rail owns Conn from now on. Local and
	// Remote are its devices: the peer may have given the rail's number to another pair. Empty: as they were.
	Accepted struct {
		late
		Generation    wire.Generation
		Conn          Conn
		Link          Link
		Local, Remote string
	}
	// Retire says that the session has fenced a generation. It counts as the generation's failure, with Cause.
	Retire struct {
		late
		Generation wire.Generation
		Cause      error
		// InFlight are the bytes that were not acknowledged then.
		InFlight uint64
	}
	// DialBeside makes the rail dial a candidate while it keeps the silent connection.
	DialBeside struct{ late }
	// LinkHint says that the local card's carrier went up or down. Never the proof of anything.
	LinkHint struct {
		late
		Up bool
	}
	// Reachable says whether the peer is reachable on another rail.
	Reachable struct {
		late
		Yes bool
	}
	// Probe asks for a heartbeat and a fresh look now: work has begun on an idle rail, or another rail is suspect.
	Probe struct{ late }
	// Describe is answered with a Status by a request's sender: what the rail itself knows (state, reason, restarts).
	Describe struct{ late }
)

// Rail to endpoint (its parent).
type (
	// Joined says that a generation carries work from now on. Rejoined and Outage say that the rail was down before.
	// Ramp is how its weight grows; the zero Ramp is full weight at once.
	Joined struct {
		late
		Rail       wire.RailID
		Generation wire.Generation
		Rejoined   bool
		Outage     time.Duration
		Ramp       Ramp
	}
	// Broke says that a generation, or a dial for one (Carried is false then), has failed and has been judged.
	Broke struct {
		late
		Rail       wire.RailID
		Generation wire.Generation
		Carried    bool
		Failure    supervision.Failure
		Directive  supervision.Directive
	}
	// GaveUp says that the policy has stopped the rail for the endpoint's life.
	GaveUp struct {
		late
		Rail    wire.RailID
		Failure supervision.Failure
	}
	// Escalated says that the policy wants the endpoint to end because of a failure.
	Escalated struct {
		late
		Rail    wire.RailID
		Failure supervision.Failure
	}
)

// Endpoint to transport. Lane and Generation say whom it is for; Op is the endpoint's own.
type (
	// Put offers an operation to one lane.
	Put struct {
		late
		Op         any
		Lane       wire.RailID
		Generation wire.Generation
	}
	// Get is the same for a get, whose request it sends.
	Get struct {
		late
		Op         any
		Lane       wire.RailID
		Generation wire.Generation
	}
	// Serve is the same for the data of a peer's get.
	Serve struct {
		late
		Op         any
		Lane       wire.RailID
		Generation wire.Generation
	}
	// Cancel takes it back.
	Cancel struct {
		late
		Op         any
		Lane       wire.RailID
		Generation wire.Generation
	}
)

// Transport to itself, from the goroutines that work for it.
type (
	// dialed: the handshake is done.
	dialed struct {
		late
		line *line
		link Link
	}
	// broken: the dial, the handshake or the stream has failed.
	broken struct {
		late
		line  *line
		cause error
	}
)

// Rail to transport.
type (
	// fail: the session has fenced the generation; fail with this.
	fail struct {
		late
		line    *line
		failure *supervision.Failure
	}
	// renewed: the dial in progress began before the card's link came up; it was dropped, begin this one.
	renewed struct {
		late
		line *line
	}
)

// Transport to rail.
type (
	// carrying: the line is attached and runs.
	carrying struct {
		late
		line *line
	}
	// withdrawn: a candidate that nobody needs any more. It is no failure.
	withdrawn struct {
		late
		line *line
	}
)

// Rail to itself, from timers. life tells this incarnation's timers from those of one before a restart.
type (
	tick struct {
		late
		life  *railActor
		round uint64
	}
	again struct {
		late
		life    *railActor
		carrier *carrier
		round   uint64
	}
	overdue struct {
		late
		life *railActor
	}
	settled struct {
		late
		life  *railActor
		round uint64
	}
)
