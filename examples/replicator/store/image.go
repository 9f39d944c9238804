package store

import (
	"fmt"
	"hash/crc32"
	"sync"
)

const stripes = 64

// image is the plain file, and what waits to be written into it.
//
// Invariant: of an extent, the file overlaid by its pieces in their order is what a read gives; both change under the stripe's lock only.
type image struct {
	file    File
	size    int64
	extents []extent // Owner: each the stripe's lock
	stripes [stripes]stripe
}

// stripe guards every sixty-fourth extent.
type stripe struct {
	sync.RWMutex
	pieces map[int64][]piece // by extent, in the order of the log
}

// piece is the part of a frame that lies within one extent.
type piece struct {
	frame    *frame
	from, to int64 // bytes, of the image
}

// data is nil where the piece is zero.
func (p piece) data() []byte {
	if p.frame.kind == kindZero {
		return nil
	}
	return p.frame.data()[p.from-p.frame.offset : p.to-p.frame.offset]
}

func (m *image) stripe(e int64) *stripe { return &m.stripes[e%stripes] }

// split calls do for the part within each extent.
func split(offset, length int64, do func(e, from, to int64) error) error {
	for end := offset + length; offset < end; {
		e := offset / Extent
		to := min(end, (e+1)*Extent)
		if err := do(e, offset, to); err != nil {
			return err
		}
		offset = to
	}
	return nil
}

// insert makes a frame visible to reads.
func (m *image) insert(f *frame) {
	_ = split(f.offset, f.length, func(e, from, to int64) error {
		s := m.stripe(e)
		s.Lock()
		defer s.Unlock()
		if s.pieces == nil {
			s.pieces = make(map[int64][]piece)
		}
		s.pieces[e] = append(s.pieces[e], piece{f, from, to})
		m.extents[e].dirt = max(m.extents[e].dirt, f.sequence)
		return nil
	})
}

// apply writes a frame, the oldest that was inserted, into the file.
func (m *image) apply(f *frame, touched func(e int64)) error {
	return split(f.offset, f.length, func(e, from, to int64) error {
		s := m.stripe(e)
		s.Lock()
		defer s.Unlock()
		p := s.pieces[e][0]
		if err := m.write(e, p); err != nil {
			return err
		}
		touched(e)
		if rest := s.pieces[e][1:]; len(rest) > 0 {
			s.pieces[e] = rest
		} else {
			delete(s.pieces, e)
		}
		return nil
	})
}

// write writes a piece and the checksums of its blocks. Of a block that it covers in part the rest is read; where that is not what it
// should be, the new checksum is a wrong one, so that the damage stays known.
func (m *image) write(e int64, p piece) error {
	data := p.data()
	for at := p.from &^ (Block - 1); at < p.to; at += Block {
		sum := &m.extents[e].sums[at%Extent/Block]
		if at >= p.from && at+Block <= p.to {
			*sum = zeroSum
			if data != nil {
				*sum = crc32.Checksum(data[at-p.from:][:Block], castagnoli)
			}
			continue
		}
		var b [Block]byte
		if _, err := m.file.ReadAt(b[:], at); err != nil {
			return fmt.Errorf("store: the block at %d of the image cannot be read: %w", at, err)
		}
		sound := crc32.Checksum(b[:], castagnoli) == *sum
		from, to := max(at, p.from), min(at+Block, p.to)
		if data == nil {
			clear(b[from-at : to-at])
		} else {
			copy(b[from-at:to-at], data[from-p.from:])
		}
		if *sum = crc32.Checksum(b[:], castagnoli); !sound {
			*sum = ^*sum
		}
	}
	if err := put(m.file, data, p.from, p.to); err != nil {
		return fmt.Errorf("store: the image cannot be written at %d: %w", p.from, err)
	}
	return nil
}

func put(f File, data []byte, from, to int64) error {
	if data == nil {
		return f.Zero(from, to-from)
	}
	_, err := f.WriteAt(data, from)
	return err
}

// read fills p from offset on; a block whose checksum is wrong is a *CorruptError.
func (m *image) read(p []byte, offset int64) error {
	return split(offset, int64(len(p)), func(e, from, to int64) error {
		s := m.stripe(e)
		s.RLock()
		defer s.RUnlock()
		part := p[from-offset : to-offset]
		if err := m.readFile(e, part, from); err != nil {
			return err
		}
		for _, x := range s.pieces[e] {
			a, b := max(x.from, from), min(x.to, to)
			if a >= b {
				continue
			}
			if data := x.data(); data != nil {
				copy(part[a-from:b-from], data[a-x.from:])
			} else {
				clear(part[a-from : b-from])
			}
		}
		return nil
	})
}

// readFile reads whole blocks, and checks them.
func (m *image) readFile(e int64, p []byte, from int64) error {
	low := from &^ (Block - 1)
	high := (from + int64(len(p)) + Block - 1) &^ (Block - 1)
	b := p
	if high-low != int64(len(p)) {
		b = make([]byte, high-low)
	}
	if _, err := m.file.ReadAt(b, low); err != nil {
		return fmt.Errorf("store: the image cannot be read at %d: %w", low, err)
	}
	for at := low; at < high; at += Block {
		if crc32.Checksum(b[at-low:][:Block], castagnoli) != m.extents[e].sums[at%Extent/Block] {
			return &CorruptError{Offset: at}
		}
	}
	if high-low != int64(len(p)) {
		copy(p, b[from-low:])
	}
	return nil
}

// bounds gives where an extent begins and ends.
func (m *image) bounds(e int64) (from, to int64) { return e * Extent, min((e+1)*Extent, m.size) }

// adopt takes over what the file has in these blocks of an extent.
func (m *image) adopt(e int64, blocks uint16) error {
	from, to := m.bounds(e)
	var b [Block]byte
	for at := from; at < to; at += Block {
		i := at % Extent / Block
		if blocks&(1<<i) == 0 {
			continue
		}
		if _, err := m.file.ReadAt(b[:], at); err != nil {
			return fmt.Errorf("store: the block at %d cannot be taken over: %w", at, err)
		}
		m.extents[e].sums[i] = crc32.Checksum(b[:], castagnoli)
	}
	return nil
}
