// Package railtest is for tests: a network in memory whose cables can be pulled, and the suite that every kind of
// rail must pass.
//
// A Network has names where the world has addresses. Its Kind ("pipe") listens and dials by them, and its connections
// keep the contract of rail.Conn with the same two goroutines as a real transport has. Network.Wire gives the cable
// between two hosts, on which faults are set in one direction or both. Nothing here needs a socket, and all waiting
// is on channels and timers, so a Network that was made inside a testing/synctest bubble works in it.
//
// Contract is the suite. It drives a kind with links that generate and check an endless pattern, and that watch the
// rules of rail.Link: brackets closed, halves never concurrent, nothing after the end.
//
// Owner: a test. No package but tests imports this one.
//
// Invariant: bytes written and not yet read, whether in flight or arrived, never exceed the network's buffer size
// for each direction of a connection.
//
// Invariant: locks are taken in the order listener, network, connection, cable, and none is held in a call of a link.
//
// Start reading at Network in network.go, then flow.go; for the suite at Contract in contract.go.
package railtest
