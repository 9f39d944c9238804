// Upstream runs protoactor-go's own tests of its cluster over rails:
//
//	go run ./test/upstream          all of them
//	go run ./test/upstream -list    what is changed, and what does not run and why
//
// It copies the module from the module cache to a temporary folder, changes the lines that start the remote (patches.go has
// each), and has the go command use the copy. What runs, what does not and why is in docs/upstream.md too.
//
// Invariant: nothing of protoactor's but these lines is changed, and each of them is found where it is expected, or the
// program fails.
//
// Owner: main, which removes the copy. Start reading at patches.go.
package main
