package store

import (
	"errors"
	"fmt"
)

// Sizes in bytes.
const (
	Extent = 64 << 10 // what is dirty or clean, and is filled, as a whole
	Block  = 4 << 10  // what has a checksum

	minLog  = 512 << 10
	maxLog  = 1 << 30
	maxSize = 1 << 46
)

// What is wrong; compare with errors.Is. An error of a disk is wrapped along (syscall.ENOSPC, syscall.EIO).
var (
	// ErrFailed: a write or sync has failed before. Nothing more is taken until the store has been opened again.
	ErrFailed = errors.New("store: the disk has failed a write; mend it and open the store again")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")
	// ErrMismatch: the files are of a store with other settings.
	ErrMismatch = errors.New("store: the files are not of this volume and these sizes")
	// ErrCorruptLog: entries that were durable are not there any more. With Config.Salvage the store opens with what came before.
	ErrCorruptLog = errors.New("store: the log has lost what was durable; open it with Salvage, and fill the volume from another copy")
	// ErrCorrupt: a block is not what was written; see CorruptError. Fill its extent from another copy.
	ErrCorrupt = errors.New("store: a block is not as it was written")
	// ErrOrder: the record does not follow the last one.
	ErrOrder = errors.New("store: the record does not follow the last one")
	// ErrRange: what is asked for does not fit into the volume or the log.
	ErrRange = errors.New("store: beyond the end of the volume, or too large for the log")
)

// CorruptError names the block that has another checksum than what was written there.
type CorruptError struct{ Offset int64 } // bytes, of the block

func (e *CorruptError) Error() string {
	return fmt.Sprintf("store: the block at %d is not as it was written; fill its extent from another copy", e.Offset)
}

// Unwrap makes it ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Config is what a store is made of. Disk, Volume and Size have no default, and stay as they are for the life of a store.
type Config struct {
	Disk    Disk
	Volume  uint64
	Size    int64 // of the image; a multiple of Block
	Log     int64 // of the ring log; a multiple of Block from 512 KiB to 1 GiB; 0: 64 MiB
	Pending int64 // of changes that are not in the image yet; 0: a quarter of Log
	Salvage bool  // open also where the log has lost something
}

func (c Config) complete() (Config, error) {
	if c.Log == 0 {
		c.Log = 64 << 20
	}
	if c.Pending == 0 {
		c.Pending = c.Log / 4
	}
	switch {
	case c.Disk == nil:
		return c, errors.New("store: no disk")
	case c.Size <= 0 || c.Size%Block != 0 || c.Size > maxSize:
		return c, fmt.Errorf("store: an image of %d bytes; a multiple of %d up to %d is needed", c.Size, Block, int64(maxSize))
	case c.Log < minLog || c.Log > maxLog || c.Log%Block != 0:
		return c, fmt.Errorf("store: a log of %d bytes; a multiple of %d from %d to %d is needed", c.Log, Block, minLog, maxLog)
	case c.Pending < 0:
		return c, fmt.Errorf("store: %d bytes of pending changes", c.Pending)
	}
	return c, nil
}

// largest is the most payload that a change may have, in bytes.
func (c *Config) largest() int { return int(c.Log/4) - headerBytes }

// extents is how many the image has; the last may be shorter.
func (c *Config) extents() int64 { return (c.Size + Extent - 1) / Extent }
