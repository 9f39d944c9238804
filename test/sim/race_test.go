//go:build race

package main

// testSeeds: a simulator of one goroutine has no races; a few worlds show that the tests themselves have none.
const testSeeds = 28

// testHashes: of a slower build these few must be the same.
const testHashes = 6
