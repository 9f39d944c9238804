package store

import (
	"context"
	"fmt"
)

// This file: how a change comes into the log.

// wait gives the channel that is closed with the next piece of news.
func wait(news *chan struct{}) chan struct{} {
	if *news == nil {
		*news = make(chan struct{})
	}
	return *news
}

func tell(news *chan struct{}) {
	if *news != nil {
		close(*news)
		*news = nil
	}
}

// notify wakes one of the goroutines, unless it was woken already.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fail lets nothing more in. The first cause stays.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
	tell(&s.progress)
	tell(&s.room)
	notify(s.syncer)
	notify(s.applier)
}

// change puts an entry into the line for the log.
func (s *Store) change(ctx context.Context, e entry, payload []byte) (Mark, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("store: the change was not taken: %w", context.Cause(ctx))
	}
	if len(payload) > s.cfg.largest() {
		return 0, fmt.Errorf("store: a change of %d bytes, where the log takes %d: %w", len(payload), s.cfg.largest(), ErrRange)
	}
	size := frameSize(len(payload))
	skip, err := s.makeRoom(ctx, &e, size)
	if err != nil {
		return 0, err
	}
	if skip > 0 {
		s.enqueue(newFrame(entry{kind: kindSkip, volume: e.volume, position: e.position, incarnation: e.incarnation}, nil), skip)
		e.position += uint64(skip)
	}
	f := newFrame(e, payload)
	s.image.insert(f)
	s.enqueue(f, size)
	return Mark(f.position + uint64(size)), nil
}

// makeRoom waits until the entry fits behind the head, and gives it its position. Skip is what is left of the ring before it, where it does
// not fit in front of the end.
func (s *Store) makeRoom(ctx context.Context, e *entry, size int) (skip int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		ring := uint64(s.cfg.Log)
		skip = 0
		if left := ring - s.head%ring; left < uint64(size) {
			skip = int(left)
		}
		fits := s.head+uint64(skip+size)-s.tail <= ring && (s.pending == 0 || s.pending+int64(size) <= s.cfg.Pending)
		switch {
		case s.closing:
			return 0, ErrClosed
		case s.failed != nil:
			return 0, s.failed
		case !s.follows(e):
			return 0, fmt.Errorf("store: (%d, %d) behind %v: %w", e.epoch, e.sequence, s.last, ErrOrder)
		case fits:
			e.position, e.incarnation = s.head, s.incarnation
			return skip, nil
		}
		more := wait(&s.room)
		s.mu.Unlock()
		select {
		case <-more:
			s.mu.Lock()
		case <-ctx.Done():
			s.mu.Lock()
			return 0, fmt.Errorf("store: no room for the change: %w", context.Cause(ctx))
		}
	}
}

func (s *Store) follows(e *entry) bool {
	return !e.isRecord() || e.sequence == s.last.Sequence+1 && e.epoch >= s.last.Epoch
}

func (e *entry) isRecord() bool { return e.kind == kindRecord || e.kind == kindZero }

// enqueue puts a frame in line; size is what it takes of the log.
func (s *Store) enqueue(f *frame, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.toLog = append(s.toLog, f)
	f.end = f.position + uint64(size)
	s.head = f.end
	s.pending += int64(len(f.buffer))
	if s.head > uint64(s.cfg.Log) {
		s.recent.prune(s.head - uint64(s.cfg.Log))
	}
	s.note(&f.entry, f.data(), place{f.position, f})
	notify(s.syncer)
}

// note keeps up with an entry. The lock is held.
func (s *Store) note(e *entry, payload []byte, at place) {
	switch {
	case e.isRecord():
		s.last = Position{e.epoch, e.sequence}
		s.recent.add(e.sequence, at)
	case e.kind == kindState:
		s.state = append([]byte(nil), payload...)
		if e.flags&flagReset != 0 {
			s.last = Position{e.epoch, e.sequence}
			s.recent = recent{}
		}
	}
}

// syncLog is the syncer: it makes durable what is in line, as much as there is, again and again.
func (s *Store) syncLog() {
	defer notify(s.applier)
	for {
		s.mu.Lock()
		batch, durable := s.toLog, s.durable
		s.toLog = nil
		end := s.failed != nil || s.closing && len(batch) == 0
		s.drained = end
		s.mu.Unlock()
		if end {
			return
		}
		if len(batch) == 0 {
			<-s.syncer
			continue
		}
		if err := s.writeBatch(batch, durable); err != nil {
			s.mu.Lock()
			s.drained = true
			s.mu.Unlock()
			s.fail(fmt.Errorf("%w: %w", ErrFailed, err))
			return
		}
		s.mu.Lock()
		s.durable = batch[len(batch)-1].end
		s.toImage = append(s.toImage, batch...)
		tell(&s.progress)
		s.mu.Unlock()
		notify(s.applier)
	}
}

const longestRun = 1 << 20 // bytes that are written at once, copied behind each other

// writeBatch writes frames, neighbors together, and makes them durable.
func (s *Store) writeBatch(batch []*frame, durable uint64) error {
	var run []byte
	var from int64
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		_, err := s.log.WriteAt(run, from)
		run = run[:0]
		return err
	}
	for _, f := range batch {
		f.encode(f.buffer, durable)
		at := s.where(f.position)
		if at != from+int64(len(run)) || len(run)+len(f.buffer) > longestRun {
			if err := flush(); err != nil {
				return fmt.Errorf("store: the log cannot be written: %w", err)
			}
		}
		if len(run) == 0 {
			from = at
		}
		run = append(run, f.buffer...)
	}
	if err := flush(); err != nil {
		return fmt.Errorf("store: the end of the log cannot be written: %w", err)
	}
	if err := s.log.Sync(); err != nil {
		return fmt.Errorf("store: the log is not durable: %w", err)
	}
	return nil
}
