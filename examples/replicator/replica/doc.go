// Package replica is the replication protocol of the replicator, pure: a Member takes what happens (a client's write, a
// message, a put that completed, a roster, time) and gives out what has to be done about it (Effect). It has no goroutine,
// clock, file or socket; the simulator beside it replays it from a seed.
//
//	roster.go    who is a member, who is primary in which epoch, who is in sync; how a command changes it
//	history.go   positions in the log, and how far two logs agree
//	member.go    the Member: its settings, its durable state, its inputs
//	backup.go    the part of every member: promises, leases, streams that come in
//	takeover.go  the part of a primary that is not one yet
//	primary.go   clients' reads, writes and flushes; when they are answered
//	peer.go      a primary's stream to one member; jobs.go its copies of extents and their checks
//	insync.go    leases, and who is dropped from and taken into the in-sync set
//	ring.go      the staging ring, as its writer sees it
//	messages.go  what members say to each other; effects.go what they ask their shell for
//
// # What it rests on
//
// A quorum is a majority of all members. What is acknowledged is at a quorum of members that are counted: in sync, whole,
// and not being dropped. A new primary has asked so many in-sync members that at least one of each such quorum has answered,
// and gives way to whoever is ahead of it, so it has everything that was acknowledged. Each epoch begins with a record of its
// own, so that logs compare by (epoch, sequence) of their last records.
//
// # Invariants
//
//   - A member that promised an epoch takes nothing of an older one, and its staging memory is revoked first.
//   - The same (epoch, sequence) is the same record everywhere, with the same records before it, at every whole member.
//   - Records and copies of extents travel to a member in one numbered stream, and are applied in its order: never old over new.
//   - A piece of staging memory is used again only when its put has completed and its item has been taken; any other end of a
//     put ends the stream, and the next one has memory of its own.
//   - A member that is being dropped counts for nothing from that moment on; the roster without it is asked for only when
//     everything that was acknowledged is at a quorum of the rest.
//   - A read is answered under a lease only, and not before every write that it may have seen is acknowledged.
//
// A store that fails, or whose disk is full, ends its member: nobody knows what it has. What a damaged disk still has may be filled
// again; a member with a new disk starts with State.Whole false.
//
// Owner: whoever made the Member calls it from one place at a time, and carries out its effects in their order.
//
// Start reading at roster.go, then member.go.
package replica
