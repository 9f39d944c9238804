// Command chaos runs several nodes over real links for a while, cuts the links in every way, stops, kills and restarts the nodes,
// all from one seed, and says whether anybody noticed.
//
//	go run ./test/chaos --seed 7 --time 2m
//	go run ./test/chaos --soak 1h --json
//
// The nodes are processes on the two hosts of a lab (test/lab), one after the other at host A and B; each pair of nodes at different
// hosts is under the load that checks itself (internal/load). A run is a row of rounds. In a round the script of that round is
// played; then everything is healed, the load comes to rest, is checked to the last byte, and memory and descriptors are
// measured, at this same quiet point each time. The seed makes the scripts (plan.go); when exactly bytes are in flight it cannot.
//
// What must hold:
//   - lost, doubled, reordered, corrupted, late writes and endpoint errors are 0 wherever no node was killed;
//   - the survivor of a killed peer: all that was open ends, the endpoint and each watcher are told once, no number of a message comes
//     twice or out of order, what is reported as surely not delivered had not been, what is not reported had arrived, and
//     nothing lands in memory after the end of the endpoint;
//   - the nodes that live through the run hold no more memory, descriptors and goroutines at its end than after its beginning.
//
// Exit codes: 0 all of it held, 1 something did not, 2 wrong usage. It needs root (see lab.Enter).
//
// Owner: the director owns the lab, the nodes' processes and the books of each pair's bouts; a node process owns its node.
//
// Start reading at plan.go, then director_linux.go; node_linux.go is the other process.
package main
