// Package rma holds what one-sided operations need on a node: registered memory (Region, Table),
// the keys that let a peer at it (Key), the lease that makes revoking safe (Region.Enter, Leave,
// Revoke), the handle of one operation (Op), and the plans that transports read and write by
// (Scatter, Gather), and what ties a region's registration with a card to its revoke (Mapping).
//
// It is plain code: no goroutine, no clock, no source of random numbers of its own. The only locks
// are those of the table's shards, of a region's list of mappings and of one operation; none is
// held while anything outside is called (Map and Release run what they were given without one).
//
// Owner: a Table belongs to a node, a Region to whoever registered it, an Op to the session that
// carries it out (the application holds it as well, but only waits, reads and asks to cancel).
//
// Invariant: after Region.Revoke has returned, nothing that goes through this package touches
// the region's bytes.
//
// Invariant: an Op completes exactly once, and says so on its channel, in Err and to its owner.
//
// Invariant: a key's token appears in no text that this package makes.
//
// Invariant: a mapping's release runs once, and before the region's Revoke returns.
//
// Start reading at region.go (the lease), then table.go (who is let in), then op.go.
package rma
