// Package rail holds what the network of one peer is made of: rails, the transports that carry them, their
// health, and the local cards that they use.
//
// A rail is the actor that stands for one path, a pair of devices, to one peer. It has a state and a generation:
//
//	connecting ──► up ──► suspect ──► down ──► probation ──► up
//	                ▲        │          ▲          │
//	                └────────┘          └──────────┘
//
// Its child, the transport, holds one generation's connection and offers the endpoint's operations to the lane.
// What goes wrong with a connection is a failure of the transport (it panics with a *supervision.Failure); the
// rail, its supervisor, asks the policy and restarts it with the next generation, or stops it.
//
// Owner: the endpoint actor spawns one rail for each pair of devices and implements Joiner for it. The rail
// owns its transports, they own their connections. All work that blocks (dial, handshake, close) runs in goroutines that
// Config.Track counts, and ends within the configured timeouts, or when the transport stops.
//
// Invariants:
//   - at most one generation of a rail carries work; a second connection (a candidate dialed beside a silent one) only
//     takes its place after the session has fenced the first;
//   - each generation that was joined is reported Lost exactly once;
//   - each failure is judged once: one actor.SupervisorEvent, one Broke message;
//   - generations of one rail only rise;
//   - no lock is held while a message is sent.
//
// Start reading at port.go (what a kind of transport must do), then messages.go (the actors' protocol), rail.go (the
// state machine) with carriers.go (which connection a rail has), judge.go (what its failures lead to) and watch.go (when
// it is looked at), then transport.go and line.go (one connection's life). health.go is pure and has its own story;
// binding.go, status.go and events.go are what users see; devices.go finds the local cards, linkwatch.go hears of
// their carriers.
package rail
