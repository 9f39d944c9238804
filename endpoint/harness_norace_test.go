//go:build !race

package endpoint

const raced = false
