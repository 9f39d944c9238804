// Command cover measures which statements of the protocol's code are run, by the tests together and by the simulator alone, and
// fails where it is too few.
//
//	main.go      what is measured, and how much it must be
//	profile.go   what the go command writes down about it
//
// Usage: go run ./test/cover, in the repository. Exit codes: 0 enough, 1 too little, 2 it could not be measured.
//
// Invariant: a statement counts once, however many builds have it, and as run where any of them ran it. Generated code
// does not count.
//
// Owner: nobody; it starts the go command and the simulator, one after the other, and leaves nothing behind.
//
// Start reading at main.go.
package main
