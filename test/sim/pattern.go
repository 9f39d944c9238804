package main

import "math/rand/v2"

// patternSize bounds one pattern; patternPool is where all of them are windows of.
const (
	patternSize = 4 << 20
	patternPool = 8 << 20
)

// patterns is random bytes, the same in every run. Nobody writes to it.
var patterns = func() []byte {
	b := make([]byte, patternPool)
	r := rand.New(rand.NewPCG(11, 13))
	for i := 0; i+8 <= len(b); i += 8 {
		v := r.Uint64()
		for k := range 8 {
			b[i+k] = byte(v >> (8 * k))
		}
	}
	return b
}()

// pattern gives the n bytes that belong to id: any two ids differ almost everywhere.
func pattern(id uint64, n int) []byte {
	h := id * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	at := int(h % (patternPool - patternSize))
	return patterns[at : at+n : at+n]
}

// poison is what a buffer holds that nobody may read or write any more.
const poison = 0xDB

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func isAll(b []byte, v byte) bool {
	for _, x := range b {
		if x != v {
			return false
		}
	}
	return true
}

// mixOf tells whether every byte of b is the one at its place in one of the others.
func mixOf(b []byte, others ...[]byte) bool {
	for i, x := range b {
		ok := false
		for _, o := range others {
			if o[i] == x {
				ok = true
				break
			}
		}
		if !ok {
			return false
		}
	}
	return true
}
