package store

import (
	"fmt"
	"hash/crc32"
)

// This file: what is known of each extent, in memory and in the index file. An entry of the file is
//
//	0 magic  4 crc32c of the rest  8 newest record  16 checksums of the blocks, 4 bytes each
//
// and lies within one sector. All zero: the extent was never written.

const (
	magicIndex = 0x52594c49
	indexEntry = 128 // bytes
	perExtent  = Extent / Block
)

var zeroBlock [Block]byte
var zeroSum = crc32.Checksum(zeroBlock[:], castagnoli)

// extent is what is known of one. Owner: the lock of its stripe.
type extent struct {
	dirt uint64            // the newest record in it, durable or not
	sums [perExtent]uint32 // of what the image has
}

func (x *extent) encode(b []byte) {
	clear(b[:indexEntry])
	le.PutUint32(b, magicIndex)
	le.PutUint64(b[8:], x.dirt)
	for i, s := range x.sums {
		le.PutUint32(b[16+4*i:], s)
	}
	le.PutUint32(b[4:], crc32.Checksum(b[8:indexEntry], castagnoli))
}

// decodeExtent fails where the entry is damaged.
func decodeExtent(b []byte) (x extent, ok bool) {
	if [indexEntry]byte(b) == [indexEntry]byte{} {
		for i := range x.sums {
			x.sums[i] = zeroSum
		}
		return x, true
	}
	if le.Uint32(b) != magicIndex || le.Uint32(b[4:]) != crc32.Checksum(b[8:indexEntry], castagnoli) {
		return x, false
	}
	x.dirt = le.Uint64(b[8:])
	for i := range x.sums {
		x.sums[i] = le.Uint32(b[16+4*i:])
	}
	return x, true
}

// readIndex gives what the file knows, and which extents it knows no more.
func readIndex(index File, extents int64) (all []extent, lost []int64, err error) {
	b := make([]byte, extents*indexEntry)
	if _, err := index.ReadAt(b, 0); err != nil {
		return nil, nil, fmt.Errorf("store: the index cannot be read: %w", err)
	}
	all = make([]extent, extents)
	for i := range all {
		x, ok := decodeExtent(b[i*indexEntry:][:indexEntry])
		if !ok {
			lost = append(lost, int64(i))
		}
		all[i] = x
	}
	return all, lost, nil
}
