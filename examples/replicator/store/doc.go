// Package store keeps one copy of a volume on a disk: an image, which is a plain file, a ring log in which every change is durable first,
// and an index with checksums.
//
// A change goes into the log; one goroutine (syncer.go) writes what has come and makes it durable with one fdatasync for all; a second one
// (applier.go) then writes it into the image, without hurry, and makes checkpoints, which let the log's tail advance. A read finds what
// the image does not have yet in the pieces that wait for it (image.go). After a crash the log is replayed from its tail on (recover.go).
//
//	frame.go   what an entry of the log looks like; super.go where the log begins, twice
//	index.go   for each extent of 64 KiB the newest record in it, and the checksum of each block of 4 KiB
//	file.go    the few things that are done with files, so that tests can be a disk that loses power
//
// Owner: whoever called Open closes; the store's two goroutines end in Close. Changes (Append, Fill, Save) are taken one at a time, in the
// order in which they were called; reads go beside them.
//
// Invariant: nothing is in the image that is not durable in the log.
//
// Invariant: what is behind the log's tail is durable in the image and in the index before the tail passes it.
//
// Invariant: what is recovered is all that was durable, in the order of the log, and perhaps some of what came next; never a later change
// without an earlier one.
//
// Invariant: after an error of a disk's write nothing more is taken (ErrFailed): nobody knows what such a disk has.
//
// Start reading at store.go, then frame.go and applier.go.
package store
