//go:build !race

package main

// testSeeds is as many worlds as fit into some seconds of one slow core.
const testSeeds = 196

// testHashes is how many worlds are compared with the committed ones.
const testHashes = 20
