package store

import (
	"fmt"
	"maps"
	"slices"
)

// This file: how what is durable in the log comes into the image, and the log's tail after it.

// applyLog is the applier. It ends when the syncer has ended and nothing is left.
func (s *Store) applyLog() {
	for {
		s.mu.Lock()
		batch, drained, failed := s.toImage, s.drained, s.failed
		s.toImage = nil
		s.mu.Unlock()
		var err error
		switch {
		case failed != nil:
			return // what is durable is replayed
		case len(batch) > 0:
			err = s.applyBatch(batch)
		case drained:
			err = s.checkpoint()
		default:
			<-s.applier
			continue
		}
		if err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrFailed, err))
		}
		if err != nil || len(batch) == 0 {
			return
		}
	}
}

func (s *Store) applyBatch(batch []*frame) error {
	for _, f := range batch {
		if f.kind != kindState && f.kind != kindSkip {
			if err := s.image.apply(f, s.touch); err != nil {
				return err
			}
		}
		s.place.note(f)
		s.mu.Lock()
		s.pending -= int64(len(f.buffer))
		if f.isRecord() {
			s.recent.settle(f.sequence)
		}
		tell(&s.room)
		s.mu.Unlock()
		if s.place.position-s.super.tail >= uint64(s.cfg.Log)/2 {
			if err := s.checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// touch notes that an extent's entry has to be written.
func (s *Store) touch(e int64) { s.touched[e*indexEntry/sector] = true }

func (p *appliedPosition) note(f *frame) {
	p.position = f.end
	switch {
	case f.isRecord():
		p.last = Position{f.epoch, f.sequence}
	case f.kind == kindState:
		p.state = f.data()
		if f.flags&flagReset != 0 {
			p.last = Position{f.epoch, f.sequence}
		}
	}
}

// checkpoint makes durable what is in the image, and lets the tail of the log come after it.
func (s *Store) checkpoint() error {
	if err := s.image.file.Sync(); err != nil {
		return fmt.Errorf("store: the image is not durable: %w", err)
	}
	if err := s.writeIndex(); err != nil {
		return err
	}
	next := s.super
	next.generation++
	next.tail, next.last, next.state = s.place.position, s.place.last, s.place.state
	if err := writeSuper(s.log, &next); err != nil {
		return err
	}
	s.super = next
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = next.tail
	tell(&s.room)
	return nil
}

// writeIndex writes the sectors that have changed.
func (s *Store) writeIndex() error {
	const entries = sector / indexEntry
	for _, n := range slices.Sorted(maps.Keys(s.touched)) {
		var b [sector]byte
		for i := range int64(entries) {
			e := n*entries + i
			if e >= s.cfg.extents() {
				break
			}
			stripe := s.image.stripe(e)
			stripe.RLock()
			s.image.extents[e].encode(b[i*indexEntry:])
			stripe.RUnlock()
		}
		if _, err := s.index.WriteAt(b[:], n*sector); err != nil {
			return fmt.Errorf("store: the index cannot be written: %w", err)
		}
	}
	if len(s.touched) > 0 {
		if err := s.index.Sync(); err != nil {
			return fmt.Errorf("store: the index is not durable: %w", err)
		}
	}
	clear(s.touched)
	return nil
}
