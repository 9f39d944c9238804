// Package lint holds the project's walls and habits as tests: who may import whom, what the pure packages must not do, what
// every file has to look like, and that the pages people read (README, docs) say nothing that the tree does not have.
//
// A rule is a function from sources to findings. Each has two tests: one over the whole tree, and one over a snippet that
// breaks it, which must be caught; so a rule cannot rot into one that passes everything.
//
// Invariant: rules read source only. Nothing of the project is imported, built or run here, except that the rule about
// maps asks the go command for types.
//
// Owner: nobody; the tests share one read-only copy of the tree. Start reading at tree_test.go, then walls_test.go.
package lint
