// Package snapshot is what a node shows of itself at one moment, as plain data: the admin page, `railyard top` and the metrics are
// all made of it, so that they never say different things.
//
// As JSON it is what /api/state of the page answers. Names say their units: bytes, milliseconds (_ms), microseconds (_us).
// Counters only grow while a node lives; rates are the difference of two snapshots.
//
// Owner: whoever asked for it; nothing in it points into the node.
//
// Invariant: a list is never null, even when it is empty.
//
// Start reading at Node. What happened, rather than what is, is a Log's business: events, and failovers from loss to return.
package snapshot
