package store

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
)

// Position is the epoch and the number of a record. The zero Position: no record.
type Position struct{ Epoch, Sequence uint64 }

// Record is a client's write.
type Record struct {
	Epoch, Sequence uint64 // the epoch never falls, and the sequence is the last one and 1
	ID              uint64 // as the client's side names it
	Offset, Length  int64  // bytes; a record of none only takes its number
	Zero            bool   // the range is zero, and Data is nil
	Data            []byte // of Length bytes; the store keeps none of it
}

// Mark is a place in the log: a change is durable once everything up to its mark is.
type Mark uint64

// State is what the owner wants to be kept beside the records.
type State struct {
	Data  []byte    // at most 65408 bytes
	Reset *Position // records go on behind this one; earlier ones are not loaded any more
}

// Store is one copy of a volume.
//
// Owner: fields below mu are mu's. Where two goroutines are said to own a field, one writes and the other reads.
type Store struct {
	cfg        Config
	log, index File
	image      *image

	turn        chan struct{} // of changes: who has put something in may decide what comes next
	syncer      chan struct{} // something to do; room for one notice
	applier     chan struct{}
	work        sync.WaitGroup
	super       super // Owner: Open, then the applier: what is on the disk
	incarnation uint64
	touched     map[int64]bool  // Owner: Open, then the applier: sectors of the index that are not on the disk
	place       appliedPosition // Owner: Open, then the applier

	mu      sync.Mutex
	failed  error
	closing bool
	drained bool   // the syncer has ended
	head    uint64 // where the next change goes
	durable uint64
	tail    uint64
	last    Position
	state   []byte
	toLog   []*frame
	toImage []*frame
	pending int64 // bytes, of frames that are not in the image
	recent  recent
	progress,
	room chan struct{} // closed, and forgotten, when something has become durable, and when there is more room; nil: nobody waits
}

// appliedPosition is how far the image has come.
type appliedPosition struct {
	position uint64
	last     Position
	state    []byte
}

// Last gives the position of the newest record.
func (s *Store) Last() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Sequence gives the number of the newest record.
func (s *Store) Sequence() uint64 { return s.Last().Sequence }

// Epoch gives the epoch of the newest record.
func (s *Store) Epoch() uint64 { return s.Last().Epoch }

// State gives what was saved last; the caller leaves it as it is.
func (s *Store) State() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Append takes a record, and returns when it is durable. Where ctx ends first, it may become so all the same.
func (s *Store) Append(ctx context.Context, r Record) error {
	mark, err := s.AppendMemory(ctx, r)
	if err != nil {
		return err
	}
	return s.Wait(ctx, mark)
}

// AppendMemory takes a record, which reads see from then on. It waits only for room. The error is ErrOrder, ErrRange, ErrFailed, ErrClosed
// or ctx's; then the record was not taken.
func (s *Store) AppendMemory(ctx context.Context, r Record) (Mark, error) {
	e := entry{
		kind: kindRecord, epoch: r.Epoch, volume: s.cfg.Volume, sequence: r.Sequence, id: r.ID, offset: r.Offset, length: r.Length,
	}
	if r.Zero {
		e.kind = kindZero
	}
	if !r.Zero && int64(len(r.Data)) != r.Length || r.Zero && len(r.Data) != 0 || !s.within(r.Offset, r.Length) {
		return 0, fmt.Errorf("store: %d bytes at %d, with %d bytes of data: %w", r.Length, r.Offset, len(r.Data), ErrRange)
	}
	return s.change(ctx, e, r.Data)
}

// Fill sets an extent (its last block may be the image's last) as of a record that need not be this store's. It takes part in the order of
// changes, but is no record.
func (s *Store) Fill(ctx context.Context, extent int64, at uint64, data []byte) (Mark, error) {
	if extent < 0 || extent >= s.cfg.extents() {
		return 0, fmt.Errorf("store: there is no extent %d to fill: %w", extent, ErrRange)
	}
	from, to := s.image.bounds(extent)
	if int64(len(data)) != to-from {
		return 0, fmt.Errorf("store: extent %d is filled with %d bytes: %w", extent, len(data), ErrRange)
	}
	e := entry{kind: kindFill, volume: s.cfg.Volume, sequence: at, offset: from, length: to - from}
	return s.change(ctx, e, data)
}

// Save keeps a state. It takes part in the order of changes.
func (s *Store) Save(ctx context.Context, state State) (Mark, error) {
	if len(state.Data) > min(maxState, s.cfg.largest()) {
		return 0, fmt.Errorf("store: a state of %d bytes: %w", len(state.Data), ErrRange)
	}
	e := entry{kind: kindState, volume: s.cfg.Volume}
	if state.Reset != nil {
		e.flags, e.epoch, e.sequence = flagReset, state.Reset.Epoch, state.Reset.Sequence
	}
	return s.change(ctx, e, state.Data)
}

// Wait returns when everything up to a mark is durable.
func (s *Store) Wait(ctx context.Context, mark Mark) error {
	for {
		s.mu.Lock()
		done, failed, more := s.durable >= uint64(mark), s.failed, wait(&s.progress)
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("store: whether the change is durable is not known: %w", context.Cause(ctx))
		}
	}
}

// Sync returns when everything that was taken before is durable.
func (s *Store) Sync(ctx context.Context) error {
	s.mu.Lock()
	head := s.head
	s.mu.Unlock()
	return s.Wait(ctx, Mark(head))
}

// Durable gives the mark up to which everything is durable.
func (s *Store) Durable() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark(s.durable)
}

// Read fills p with the bytes from offset on, as of the newest changes. A block that is damaged is a *CorruptError.
func (s *Store) Read(p []byte, offset int64) error {
	if !s.within(offset, int64(len(p))) {
		return fmt.Errorf("store: a read of %d bytes at %d: %w", len(p), offset, ErrRange)
	}
	return s.image.read(p, offset)
}

// Dirty gives the extents in which something has changed behind the record with the number, in their order; some perhaps for no reason.
func (s *Store) Dirty(since uint64) []int64 {
	var list []int64
	for e := range s.cfg.extents() {
		stripe := s.image.stripe(e)
		stripe.RLock()
		if s.image.extents[e].dirt > since {
			list = append(list, e)
		}
		stripe.RUnlock()
	}
	return list
}

// Sum gives the crc32c (Castagnoli) of an extent as of the newest changes.
func (s *Store) Sum(extent int64) (uint32, error) {
	if extent < 0 || extent >= s.cfg.extents() {
		return 0, fmt.Errorf("store: there is no extent %d: %w", extent, ErrRange)
	}
	from, to := s.image.bounds(extent)
	b := make([]byte, to-from)
	if err := s.image.read(b, from); err != nil {
		return 0, err
	}
	return crc32.Checksum(b, castagnoli), nil
}

// Scrub reads the whole image, and reports each block that is damaged, once. It ends with ctx.
func (s *Store) Scrub(ctx context.Context, report func(CorruptError)) error {
	b := make([]byte, Block)
	for at := int64(0); at < s.cfg.Size; at += Block {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("store: the scrub came to %d of %d bytes: %w", at, s.cfg.Size, err)
		}
		err := s.image.read(b, at)
		var damaged *CorruptError
		switch {
		case errors.As(err, &damaged):
			report(*damaged)
		case err != nil:
			return err
		}
	}
	return nil
}

// Load gives the record with the number, where the log still has it.
func (s *Store) Load(sequence uint64) (r Record, found bool, err error) {
	s.mu.Lock()
	x, found := s.recent.find(sequence)
	s.mu.Unlock()
	if !found {
		return r, false, nil
	}
	e, data, err := s.entryAt(x)
	if errors.Is(err, errNoFrame) || err == nil && e.sequence != sequence {
		return r, false, nil // the ring has come round meanwhile
	}
	if err != nil {
		return r, false, err
	}
	r = Record{Epoch: e.epoch, Sequence: e.sequence, ID: e.id, Offset: e.offset, Length: e.length, Zero: e.kind == kindZero}
	if !r.Zero {
		r.Data = append([]byte(nil), data...)
	}
	return r, true, nil
}

// entryAt gives a record from memory, where its bytes stay as they are, or from the log.
func (s *Store) entryAt(x place) (entry, []byte, error) {
	if x.frame != nil {
		return x.frame.entry, x.frame.data(), nil
	}
	return s.readFrame(x.position)
}

// Close makes everything durable, in the image too, and gives up the files. The error is what had failed.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	s.mu.Lock()
	closed := s.closing
	s.closing = true
	s.mu.Unlock()
	<-s.turn
	if closed {
		return ErrClosed
	}
	notify(s.syncer)
	s.work.Wait()
	err := s.failed
	s.fail(ErrClosed) // whoever still waits for room
	return errors.Join(err, s.image.file.Close(), s.log.Close(), s.index.Close())
}

func (s *Store) within(offset, length int64) bool {
	return offset >= 0 && length >= 0 && offset <= s.cfg.Size && length <= s.cfg.Size-offset
}

// recent knows where the records of the log lie that have not been overwritten.
type recent struct {
	first uint64 // the number of list[0]
	list  []place
}

type place struct {
	position uint64
	frame    *frame // until it is in the image
}

func (r *recent) find(sequence uint64) (place, bool) {
	if sequence < r.first || sequence-r.first >= uint64(len(r.list)) {
		return place{}, false
	}
	return r.list[sequence-r.first], true
}

func (r *recent) add(sequence uint64, p place) {
	if len(r.list) == 0 {
		r.first = sequence
	}
	r.list = append(r.list, p)
}

// settle forgets the frame of a record that is in the image.
func (r *recent) settle(sequence uint64) {
	if _, ok := r.find(sequence); ok {
		r.list[sequence-r.first].frame = nil
	}
}

// prune forgets records that begin before a position.
func (r *recent) prune(position uint64) {
	n := 0
	for n < len(r.list) && r.list[n].position < position {
		n++
	}
	r.first, r.list = r.first+uint64(n), r.list[n:]
}
