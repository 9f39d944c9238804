// Command core is a model of retire, reroute, cancel, revoke and notify: an initiator A and a target B with two lanes of two
// generations each. A put of two chunks, each written in two halves, with a notification; or two ordered messages. Any
// frame may be delayed for ever, lanes may be reset, suspected (rightly or not) and joined again.
//
//	state.go      the state, and what is forgotten of it
//	initiator.go  what A does and hears
//	target.go     what B does and hears
//
// Checked in every state: nothing is written after the completion or a revoke, the source is not read after the completion,
// no success without all bytes, no early or wrong notification, messages exactly once and in order; and from every state
// a completion can be reached.
//
// Usage: go run ./test/model/core [mutation …]. Without one: the rules as they are, then each mutation.
//
// Invariant: a state is a plain comparable value; nothing outside it decides what follows, but the setting and the mutation.
//
// Start reading at state.go.
package main
