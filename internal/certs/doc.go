// Package certs makes certificates for programs and tests that need TLS and have nobody who would issue any: an authority of its own,
// and leaves for names and addresses. It is no way to run a real network: nothing is stored, nothing is renewed.
//
// Owner: whoever made the Authority; a Leaf is plain data.
//
// Invariant: keys never leave the process, unless its owner writes a Leaf to files.
//
// Start reading at Authority in certs.go.
package certs
