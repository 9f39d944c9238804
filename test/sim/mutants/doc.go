// Command mutants shows that the simulator would notice: a list of deliberate bugs, each of which breaks one rule of the
// protocol, and for each the seed and the checker that caught it.
//
//	mutant.go   what a mutant is, and the whole list
//	list_*.go   the mutants, by the part of the protocol that they break
//	weave.go    all of them in one build: each becomes a switch that is off
//	hunt.go     one mutant at a time, seed after seed, until a checker speaks
//	main.go     the table
//
// Usage: go run ./test/sim/mutants. Exit codes: 0 all were caught, 1 one survived, 2 it could not be tried.
//
// A mutant names a text of today's source, which must be there exactly once, and what stands there instead when it is switched
// on. The woven sources exist only beside the tree, in an overlay of the go command, as does the package with the switch: the
// product's code knows nothing of this. One binary has them all; an environment variable of the run says which one is on.
//
// Invariant: what catches is an ordinary checker of the simulator, in a world that passes when no mutant is on. A panic, a run
// that takes too long and a world that goes round in circles are reported, and do not count.
//
// Owner: nobody; a run shares nothing with another. Start reading at mutant.go, then weave.go.
package main
