package store

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// Open opens a store, or makes one where there are no files. An image that is there without a log is taken over as it is. What the log has
// beyond the image is written into it before Open returns.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, touched: make(map[int64]bool), image: &image{size: cfg.Size},
		turn: make(chan struct{}, 1), syncer: make(chan struct{}, 1), applier: make(chan struct{}, 1),
	}
	if err := s.load(); err != nil {
		for _, f := range []File{s.image.file, s.log, s.index} {
			if f != nil {
				_ = f.Close()
			}
		}
		return nil, err
	}
	s.work.Go(s.syncLog)
	s.work.Go(s.applyLog)
	return s, nil
}

func (s *Store) load() error {
	imageMade, indexMade := false, false
	for _, x := range []struct {
		name string
		size int64
		file *File
		made *bool
	}{
		{"image", s.cfg.Size, &s.image.file, &imageMade},
		{"index", (s.cfg.extents()*indexEntry + sector - 1) &^ (sector - 1), &s.index, &indexMade},
		{"log", ringStart + s.cfg.Log, &s.log, new(bool)},
	} {
		f, made, err := s.cfg.Disk.Open(x.name, x.size)
		if err != nil {
			return err
		}
		*x.file, *x.made = f, made
	}
	var none bool
	var err error
	if s.super, none, err = readSuper(s.log); err != nil {
		return err
	}
	if none {
		if err := s.format(imageMade, indexMade); err != nil {
			return err
		}
	}
	if s.super.volume != s.cfg.Volume || s.super.size != s.cfg.Size || s.super.ring != s.cfg.Log {
		return fmt.Errorf("store: volume %d of %d bytes with a log of %d is there, not volume %d of %d bytes with a log of %d: %w",
			s.super.volume, s.super.size, s.super.ring, s.cfg.Volume, s.cfg.Size, s.cfg.Log, ErrMismatch)
	}
	return s.recover()
}

// format makes a new store round an image.
func (s *Store) format(imageMade, indexMade bool) error {
	s.super = super{volume: s.cfg.Volume, size: s.cfg.Size, ring: s.cfg.Log}
	s.image.extents = make([]extent, s.cfg.extents())
	if !imageMade || !indexMade { // somebody's image, or what is left of an attempt that was cut short
		for e := range s.cfg.extents() {
			if err := s.image.adopt(e, ^uint16(0)); err != nil {
				return err
			}
			s.touch(e)
		}
		if err := s.writeIndex(); err != nil {
			return err
		}
	}
	// Space that was written once is written again faster than space that was only kept.
	zeroes := make([]byte, min(1<<20, s.cfg.Log))
	for at := int64(0); at < s.cfg.Log; at += int64(len(zeroes)) {
		part := zeroes[:min(int64(len(zeroes)), s.cfg.Log-at)]
		if _, err := s.log.WriteAt(part, ringStart+at); err != nil {
			return fmt.Errorf("store: the new log cannot be written: %w", err)
		}
	}
	if err := s.log.Sync(); err != nil {
		return fmt.Errorf("store: the new log is not durable: %w", err)
	}
	s.super.generation++
	return writeSuper(s.log, &s.super)
}

// recover brings the image to the end of the log, and begins a new incarnation behind it.
func (s *Store) recover() error {
	all, lost, err := readIndex(s.index, s.cfg.extents())
	if err != nil {
		return err
	}
	s.image.extents = all
	s.last, s.state = s.super.last, s.super.state
	s.place = appliedPosition{position: s.super.tail, last: s.super.last, state: s.super.state}
	r := replay{store: s, blocks: make(map[int64]uint16), incarnation: s.super.incarnation}
	if err := r.run(); err != nil {
		return err
	}
	for _, e := range lost { // it is as good as any other until it is compared with another copy
		r.blocks[e] = ^uint16(0)
		s.image.extents[e].dirt = s.last.Sequence
	}
	for e, blocks := range r.blocks {
		if err := s.image.adopt(e, blocks); err != nil {
			return err
		}
		s.touch(e)
	}
	s.super.incarnation++ // it is durable with the checkpoint, before any entry has it
	s.incarnation = s.super.incarnation
	s.head, s.durable = s.place.position, s.place.position
	return s.checkpoint()
}

// replay writes entries of the log into the image once more.
type replay struct {
	store       *Store
	incarnation uint64           // of the entry before: it never falls
	blocks      map[int64]uint16 // those that were written, by extent
}

func (r *replay) run() error {
	s := r.store
	ring := uint64(s.cfg.Log)
	for s.place.position-s.super.tail < ring {
		at := s.place.position
		e, data, err := s.readFrame(at)
		if err == nil && !r.continues(&e) {
			err = errNoFrame
		}
		if errors.Is(err, errNoFrame) {
			break
		}
		if err != nil {
			return err
		}
		next := at + uint64(e.size())
		if e.kind == kindSkip {
			next = at + ring - at%ring
		}
		if err := r.apply(&e, data); err != nil {
			return err
		}
		r.incarnation = e.incarnation
		s.note(&e, data, place{position: at})
		s.place.position = next
	}
	s.place.last, s.place.state = s.last, s.state
	return r.complain()
}

// continues tells whether an entry is what comes next, and not something that an earlier crash has left behind.
func (r *replay) continues(e *entry) bool {
	s := r.store
	fits := e.kind == kindState || s.within(e.offset, e.length)
	return fits && e.volume == s.cfg.Volume && e.incarnation >= r.incarnation && s.follows(e)
}

func (r *replay) apply(e *entry, data []byte) error {
	s := r.store
	if e.kind == kindState || e.kind == kindSkip {
		return nil
	}
	if e.kind == kindZero {
		data = nil
	}
	return split(e.offset, e.length, func(x, from, to int64) error {
		part := data
		if data != nil {
			part = data[from-e.offset : to-e.offset]
		}
		if err := put(s.image.file, part, from, to); err != nil {
			return fmt.Errorf("store: the image cannot be brought up to the log at %d: %w", from, err)
		}
		s.image.extents[x].dirt = max(s.image.extents[x].dirt, e.sequence)
		for b := from / Block; b*Block < to; b++ {
			r.blocks[x] |= 1 << (b % perExtent)
		}
		return nil
	})
}

// complain looks behind the end of the log for an entry that was written when something at the end was durable.
func (r *replay) complain() error {
	s := r.store
	end, limit := s.place.position, s.super.tail+uint64(s.cfg.Log)
	if s.cfg.Salvage {
		return nil
	}
	b := make([]byte, sector)
	for at := end + sector; at < limit; at += sector {
		if _, err := s.log.ReadAt(b, s.where(at)); err != nil {
			return fmt.Errorf("store: the log cannot be searched: %w", err)
		}
		e, err := decodeHeader(b)
		if err == nil && e.position == at && e.volume == s.cfg.Volume && e.incarnation >= r.incarnation && e.durable > end {
			return fmt.Errorf("store: the log ends at %d, and was durable up to %d: %w", end, e.durable, ErrCorruptLog)
		}
	}
	return nil
}

// where gives the place of a position in the log's file.
func (s *Store) where(position uint64) int64 { return ringStart + int64(position%uint64(s.cfg.Log)) }

// readFrame reads the entry at a position. errNoFrame: there is none that is whole.
func (s *Store) readFrame(position uint64) (e entry, data []byte, err error) {
	at := s.where(position)
	room := ringStart + s.cfg.Log - at
	head := make([]byte, headerBytes)
	if _, err := s.log.ReadAt(head, at); err != nil {
		return e, nil, fmt.Errorf("store: the log cannot be read at %d: %w", position, err)
	}
	e, err = decodeHeader(head)
	if err != nil || e.position != position || int64(e.size()) > room {
		return e, nil, errNoFrame
	}
	data = make([]byte, e.payload)
	if _, err := s.log.ReadAt(data, at+headerBytes); err != nil {
		return e, nil, fmt.Errorf("store: the log's entry at %d cannot be read: %w", position, err)
	}
	if crc32.Checksum(data, castagnoli) != e.sum {
		return e, nil, errNoFrame
	}
	return e, data, nil
}
