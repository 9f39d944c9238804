// Package nbd serves block devices over the NBD protocol: fixed newstyle handshake, structured replies, TLS, and many requests at a
// time on each connection.
//
// Server holds the exports and the connections; a Device is what lies behind an export. For each connection one goroutine negotiates
// (handshake.go, options.go) and then reads requests (conn.go); each request is checked (request.go) and carried out by a goroutine of its
// own, of which there are never more than Config.Requests, holding never more than Config.Bytes; the answers are written by whoever has
// one (reply.go). A client that does not read its answers, or a device that does not answer, therefore stops the reading.
//
// What decides over overlapping writes, and over connections that are given up, is the hub of an export (hub.go).
//
// Owner: a Server belongs to whoever called New; Serve owns its listener and the connections from it, and joins every goroutine before it
// returns. A hub's lock is held while nothing outside is called.
//
// Invariant: no two writes that overlap are in a Device at the same time, whichever connections they come from.
//
// Invariant: a request that was read is answered exactly once, or its connection ends.
//
// Invariant: the payload of a write is read to its end before anything is done about the write, so that an error of a device never
// costs a stream its step.
//
// Invariant: where an export does not share its writes (Export.MultiConn), a connection writes nothing any more once a newer one has
// written. A client that has given up a stalled connection, has retried on another and has written on, is thereby safe from what the
// stalled connection still brings.
//
// Invariant: what a stranger sends ends the stranger's connection at worst.
//
// Start reading at device.go, then server.go, conn.go and hub.go.
package nbd
