// Command sim plays the replication protocol from seeds: members with stores that lose what is not on the disk, staging memory
// in which puts land late, connections that break, a consensus that elects whom it likes, and clients, in one goroutine on a
// virtual clock.
//
//	options.go    what a seed chooses
//	world.go      clock, event queue, randomness, story
//	node.go       one incarnation of a member, and how its effects are carried out
//	store.go      its log and image, and what a crash leaves of them
//	net.go        messages, puts, staging memory
//	consensus.go  the roster: commands that come late, twice or not at all
//	clients.go    reads, writes and flushes; what nobody answered is unknown
//	faults.go     crashes, stalls, cuts, elections, lost disks; ending.go then all heals, and everything is compared
//	linear.go     whether a block's reads and writes have an order
//	mutants.go    deliberate bugs, each of which a checker must see
//
// What is checked: reads and writes of each block are linearizable, those at the end included, so nothing acknowledged is
// lost; the same (epoch, sequence) is the same record at every member; no byte lands in staging memory that belongs to
// another write by then; replicas are identical at the end, in bounded time, and a damaged extent is found and repaired.
//
// Invariant: the same seed gives the same world.
//
// Owner: a world owns everything in it. Usage: go run ./examples/replicator/sim --seeds 5000, or --mutants. Exit codes: 0 all
// held, 1 something did not, 2 wrong usage. Start reading at world.go, then node.go.
package main
