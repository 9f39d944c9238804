// Package load is the traffic of the demo and of chaos, which checks itself. Two sides run the same code, one on each node: each
// sends numbered messages to the other's sinks, puts checksummed bytes into the other's memory, takes some puts
// back and has some keys revoked, and checks what the other one does.
//
// Owner: a Side owns its actors and drivers; the actor "target" owns the target's bookkeeping.
//
// What is checked, and where:
//   - messages: Ledger, one for each pair and direction, at the receiver: once, in order, whole, from the right sender;
//   - bytes landed: Ground, one for each slot of memory, at the target, when a put's Notify arrives;
//   - late writes: Ground too. Bytes that were checked, taken back or revoked are painted over with a guard pattern; the
//     slot is looked at again before it is used again, Config.Watch later;
//   - reuse of the source: the initiator fills a buffer with another pattern as soon as its put has ended;
//   - standing still: Gaps, for each pair and each putter.
//
// Slots and lives: the target's memory is cut into slots, each a region of its own. The initiator fills a slot from its
// start (Layout); when it is full and all its puts have ended, the target watches it and opens it again for the next
// life. A revoke ends a life early.
//
// Invariant: outside of the ranges of puts under way, a slot's memory holds the guard pattern.
//
// Everything but Side and its drivers is pure: time comes in.
//
// Start reading at Counters (what is promised), then Side.
package load

//go:generate go build -o ../../bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
//go:generate protoc -I../.. --plugin=protoc-gen-go=../../bin/protoc-gen-go --go_out=../.. --go_opt=module=railyard internal/load/load.proto
