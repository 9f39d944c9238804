//go:build race

package endpoint

// raced: the race detector makes everything slower, above all the looking at memory.
const raced = true
