// Package verbs is what a rail of the kind "verbs" stands on: RDMA cards, through libibverbs, which is opened when the program
// runs. It needs neither cgo nor headers to build. It is not a rail.Kind yet: queue pairs, registrations and the cards'
// states are here, the wire-up over a TCP rail and the pump round a rail.Link are not.
//
// A host without the library, without a card, with a port that is down or has no address is an ordinary host: each
// is an error of its own that names what is missing. So is a build with the tag noverbs, which stays statically linked, and any
// system or processor but those whose layouts are verified: linux on amd64 (layout.go).
//
// Look reads sysfs and calls nothing else. Open gives a Card, a Card registers Memory and makes Queues.
//
// Owner: a Card, its Memory and its Queues belong to whoever made them, which closes them in the opposite order. A Queue's posts
// belong to one goroutine at a time, its polls to one; Memory may be made and released from any.
//
// Invariant: every posted request has exactly one completion, or none where its Queue is destroyed first; after Destroy has returned
// the card applies nothing of that queue pair's, and reads no source of it.
//
// Invariant: after Release has returned no byte lands in the memory by its key.
//
// A queue pair that had an error is never used again: destroy it and make another.
//
// Start reading at Look in ports.go, then card.go and queue.go.
package verbs
