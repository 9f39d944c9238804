package rma

import (
	"fmt"
	"sync"

	"railyard/wire"
)

// Region is registered memory. Its owner hands Key to peers, who then put and get without the
// owner's help, until the owner calls Revoke.
//
// All methods may be called from any goroutine.
//
// Invariant: whoever touches buf on a peer's behalf is between a successful Enter and its Leave.
type Region struct {
	buf   []byte
	key   Key
	table *Table
	lease lease

	// mapsMu guards maps: the registrations with cards that are in force. Nothing is called while it is held.
	mapsMu sync.Mutex
	maps   []*Mapping
}

// Key is what a peer needs. It is a secret.
func (r *Region) Key() Key { return r.key }

// Bytes is the memory itself, as the owner sees it. Peers write to it at any time until Revoke
// returns: the owner learns from a message (Notify) when a put is whole.
func (r *Region) Bytes() []byte { return r.buf }

// Len is the region's length in bytes.
func (r *Region) Len() uint64 { return uint64(len(r.buf)) }

// String shows the region without its token.
func (r *Region) String() string {
	state := ""
	if r.Revoked() {
		state = ", revoked"
	}
	return fmt.Sprintf("region(%s%s)", r.key, state)
}

// Format writes String whatever the verb, so that no verb shows memory or token.
func (r *Region) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.String())) }

// Revoke takes the key back. When it returns, no byte of any put lands in the memory any more, and
// none of it is sent by any get. It waits for socket calls that are in progress, a memory copy
// each, and for cards to take back what Map has registered, but for neither network nor peer. It
// must not be called between an Enter of the same region and its Leave.
//
// Every call waits for the same; calls after the first find nothing left to do. The error is nil
// today.
func (r *Region) Revoke() error {
	r.lease.close()
	r.unmap()
	r.table.bury(r)
	return nil
}

// Revoked tells whether Revoke has begun.
func (r *Region) Revoked() bool { return r.lease.closed() }

// Enter takes the lease for one socket call or copy. It never waits. False: revoked; touch nothing.
// True: call Leave as soon as the call returns, and wait for nothing in between.
func (r *Region) Enter() bool { return r.lease.enter() }

// Leave gives back what one Enter took.
func (r *Region) Leave() { r.lease.leave() }

// Slice gives the memory of a chunk, for a plan that touches it under the lease. False: out of
// bounds.
func (r *Region) Slice(offset, length uint64) ([]byte, bool) {
	if !r.contains(offset, length) {
		return nil, false
	}
	return r.buf[offset : offset+length : offset+length], true
}

// Write copies p to offset under the lease. False: revoked or out of bounds, and nothing was
// copied.
func (r *Region) Write(offset uint64, p []byte) bool {
	if !r.contains(offset, uint64(len(p))) || !r.Enter() {
		return false
	}
	copy(r.buf[offset:], p)
	r.Leave()
	return true
}

// Read fills dst from offset under the lease. False: revoked or out of bounds, and dst is as it
// was.
func (r *Region) Read(offset uint64, dst []byte) bool {
	if !r.contains(offset, uint64(len(dst))) || !r.Enter() {
		return false
	}
	copy(dst, r.buf[offset:])
	r.Leave()
	return true
}

// Check is Table.Check for a caller that keeps the region from an earlier look-up.
func (r *Region) Check(c Claim) wire.Code {
	if !sameToken(c.Token, r.key.token) || c.Region != r.key.region {
		return wire.CodeUnknownRegion
	}
	switch {
	case r.Revoked():
		return wire.CodeRevoked
	case !r.key.rights.Allows(c.Want):
		return wire.CodeRights
	case !r.contains(c.Offset, c.Length):
		return wire.CodeBounds
	}
	return wire.CodeOK
}

// contains compares without a sum that could overflow.
func (r *Region) contains(offset, length uint64) bool {
	size := r.Len()
	return offset <= size && length <= size-offset
}
