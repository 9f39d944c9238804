// Command both is a model of two nodes that send messages to each other and may both suspect, fence and retire, at the same time.
// Node 0 dials. Retired and its answer are one frame: my final count of that generation, and whether I have yours. It is
// state, said again until it is answered. A reset can be swallowed on its way to node 0.
//
// Checked: each message exactly once and in order, and from every state all of them can still arrive.
//
// Usage: go run ./test/model/both [mutation …]. Without one: the rules as they are, then each mutation.
//
// Invariant: a state is a plain comparable value; nothing outside it decides what follows, but the setting and the mutation.
//
// Start reading at state.go, then moves.go.
package main
