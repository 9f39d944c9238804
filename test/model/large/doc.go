// Command large is a model of a large message between two small ones to the same actor: its placeholder keeps its place in line,
// its two pieces travel over either of two rails, each of which may be lost. What comes behind it is held until it is whole.
//
// Checked: the three arrive once and in order, the large one whole; and from every state all of them can still arrive.
//
// Usage: go run ./test/model/large [mutation …]. Without one: the rules as they are, then each mutation.
//
// Invariant: a state is a plain comparable value; nothing outside it decides what follows, but the setting and the mutation.
package main
