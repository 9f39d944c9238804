package main

import (
	"time"

	"railyard/internal/load"
)

// This file: what the director and a node process say to each other. One request a line, one answer a line; answers come in any
// order, and carry the request's number.

// What the director may ask.
const (
	doPrepare = "prepare" // make a side of the load for a bout with a peer
	doStart   = "start"   // connect to the peer, and begin
	doHalt    = "halt"    // stop sending
	doReport  = "report"  // count
	doFinish  = "finish"  // look at the memory a last time, and count
	doClose   = "close"   // end the bout
	doMeet    = "meet"    // connect to a peer
	doOrphan  = "orphan"  // the peer is dead: see everything of the bout end, check, and end the bout
	doMeasure = "measure" // memory, descriptors, goroutines
	doEnd     = "end"     // shut down, and end
)

// setup is what a node process is told first.
type setup struct {
	Name   string   `json:"name"`
	Rails  []string `json:"rails"` // where it listens
	Secret []byte   `json:"secret"`
	Seed   uint64   `json:"seed"`
	// PutRate is in bytes a second and direction of a pair.
	PutRate float64 `json:"put_rate"`
}

type request struct {
	ID      uint64 `json:"id"` // from 1 on
	Do      string `json:"do"`
	Peer    string `json:"peer,omitempty"`
	Address string `json:"address,omitempty"` // of the peer
	Bout    int    `json:"bout,omitempty"`
	// Ledger is a file that takes the numbers of the messages that came, and outlives this process.
	Ledger  string   `json:"ledger,omitempty"`
	Arrived []uint64 `json:"arrived,omitempty"` // at the dead peer, by pair of actors
}

type answer struct {
	ID      uint64       `json:"id"`
	Error   string       `json:"error,omitempty"`
	Address string       `json:"address,omitempty"`
	Report  load.Report  `json:"report"`
	Parting load.Parting `json:"parting"`
	// Told is how often the watcher of an actor of the peer was told of its end in this bout, Ended how often the endpoint was.
	Told   int    `json:"told"`
	Ended  int    `json:"ended"`
	Health health `json:"health"`
	// Lives are those that rails lost since the node began, Missed the events that the node's log lost, Strays the messages
	// that came for a bout of an earlier life, or one that is over.
	Lives  uint64 `json:"lives"`
	Missed uint64 `json:"missed"`
	Strays uint64 `json:"strays"`
}

// health is what a process holds at a quiet point.
type health struct {
	Heap        uint64 `json:"heap"`     // bytes in use in Go's heap, after a collection
	Resident    uint64 `json:"resident"` // bytes
	Descriptors int    `json:"descriptors"`
	Goroutines  int    `json:"goroutines"`
}

// The load of a bout. It is the same at both ends.
const (
	actorPairs  = 3
	messageRate = 150
	putters     = 6
	slots       = 16
	slotSize    = 4<<20 + load.Scratch
	maxPut      = 2 << 20
	watch       = 600 * time.Millisecond
	// patience bounds waits that the framework itself does not bound: longer than any script is unkind.
	patience = 60 * time.Second
)
