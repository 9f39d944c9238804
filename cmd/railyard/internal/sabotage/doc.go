// Package sabotage breaks a promise on purpose, below the session: it sits in a cable, understands the frames
// that pass, and rewrites one here and there so that the receiver's session notices nothing: the number
// of counted frames stays what it was. It exists to show that the demo's checker can fail.
//
// Owner: one Saboteur a run; it decides when. One editor a connection; it belongs to that connection's pump.
//
// How each promise is broken:
//   - drop: a numbered message is addressed to an actor that does not exist;
//   - double: a filler message becomes a copy of the last numbered one;
//   - reorder: two numbered messages to one actor change places;
//   - late-write: a filler put carries old bytes to where an earlier put, long verified, had written.
//
// Fillers are messages and puts that the load sends for nobody, under sabotage only, so that one promise can be
// broken without breaking another.
//
// Start reading at Saboteur, then editor.go.
package sabotage
