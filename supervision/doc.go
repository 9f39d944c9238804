// Package supervision judges failures of rails: what class a failure is of (Class, ClassOf), what a
// rail's past looks like (Record, History), what to do (Policy, Directive), and the adapter by
// which protoactor asks (Strategy).
//
// Everything but adapter.go is pure: no goroutine, no clock, no global randomness; the same
// history, failure, now and random numbers give the same directive. Time is a time.Duration since
// the node's start.
//
// Owner: a Record and a Strategy belong to one rail actor and are used by its goroutine alone. A
// Policy is shared by all rails of a node and is safe for use by many goroutines.
//
// Invariant: a directive says only when and whether the rail is tried again. Work is rerouted at
// once in any case; no policy can delay that.
//
// Invariant: each failure is judged once and published once, as one actor.SupervisorEvent.
//
// Start reading at policy.go, then default.go, then adapter.go.
package supervision
