// Package endpoint joins the pure protocol core (session) to actors and sockets.
//
//	Manager            the node's side: listeners, handshakes, one Endpoint a peer, one Route an address
//	└─ node actor      parent of the endpoint actors; a bug in one of them ends that epoch, not the node
//	   └─ Endpoint     one epoch with one peer: the session behind one lock, and its actor
//	      ├─ rail 0    (package rail)
//	      └─ rail 1 …
//
// # Who calls whom
//
// The session is called by the endpoint actor (operations, what rails report), by each connection's reader
// and writer (link.go), by senders of messages (route.go), and by one timer. All of them take Endpoint.mu, call
// the session, take its effects, release the lock, and carry the effects out (effects.go). So the lock is held for
// bookkeeping only: never during a socket call, a delivery, or a message to an actor.
//
// An operation goes application → endpoint actor → session → rail.Put to each lane's transport actor → session's
// queue of that lane → the connection's writer. A cancel takes the same way. A message is put into its lane's
// batch by the sender itself.
//
// # Invariants
//
//   - No lock is held while anything outside this package is called, but for the session and rma.
//   - Effects of one call are carried out in order; those of different calls in any order. Each of them is safe to
//     be late: the session takes what is over as nothing to do.
//   - The lock is taken with a deferred release or unlock (guard.go), or by locked and look, round whatever calls the session: a panic
//     there is a bug that ends the epoch, and leaves the lock free (rule 10).
//   - An Endpoint ends once (end), and then: every operation has completed, Host.EndpointDown has been called, its
//     actor and rails stop. A new epoch is a new Endpoint.
//
// Start reading at endpoint.go, then effects.go, link.go, joiner.go (what rails ask), dial.go and accept.go (handshakes),
// guard.go (what becomes of a bug).
package endpoint
