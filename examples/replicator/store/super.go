package store

import (
	"fmt"
	"hash/crc32"
)

// The log file begins with two places for a super, which are written in turn, so that one is always whole.
const (
	magicSuper = 0x52594c53
	superBytes = 64 << 10 // of one place
	superHead  = 128      // of it, without the state
	maxState   = superBytes - superHead
	ringStart  = 2 * superBytes
)

// super says where the log begins, and what was true there.
type super struct {
	generation  uint64 // of supers: the larger counts
	incarnation uint64
	volume      uint64
	size, ring  int64 // bytes, of the image and of the log
	tail        uint64
	last        Position
	state       []byte
}

// encode gives whole sectors. The first super of a store has no state, and so is one sector, which is written or not.
func (s *super) encode() []byte {
	b := make([]byte, (superHead+len(s.state)+sector-1)&^(sector-1))
	le.PutUint32(b, magicSuper)
	le.PutUint32(b[4:], uint32(len(s.state)))
	for i, v := range []uint64{
		s.generation, s.incarnation, s.volume, uint64(s.size), uint64(s.ring), s.tail, s.last.Epoch, s.last.Sequence,
	} {
		le.PutUint64(b[8+8*i:], v)
	}
	copy(b[superHead:], s.state)
	le.PutUint32(b[superHead-4:], superSum(b, len(s.state)))
	return b
}

func superSum(b []byte, state int) uint32 {
	sum := crc32.Checksum(b[:superHead-4], castagnoli)
	return crc32.Update(sum, castagnoli, b[superHead:superHead+state])
}

// decodeSuper reads one place. None: nobody has ever written there.
func decodeSuper(b []byte) (s super, none bool, err error) {
	none = true
	for _, x := range b {
		if x != 0 {
			none = false
			break
		}
	}
	if none {
		return s, true, nil
	}
	state := int(le.Uint32(b[4:]))
	if le.Uint32(b) != magicSuper || state > maxState || superHead+state > len(b) || superSum(b, state) != le.Uint32(b[superHead-4:]) {
		return s, false, fmt.Errorf("store: this is no beginning of a log: %w", ErrCorruptLog)
	}
	n := func(i int) uint64 { return le.Uint64(b[8+8*i:]) }
	s = super{
		generation: n(0), incarnation: n(1), volume: n(2), size: int64(n(3)), ring: int64(n(4)), tail: n(5),
		last: Position{n(6), n(7)}, state: append([]byte(nil), b[superHead:superHead+state]...),
	}
	return s, false, nil
}

// readSuper gives the newest super; none where the log is new.
func readSuper(log File) (best super, none bool, err error) {
	found, empty := false, 0
	for place := range int64(2) {
		b := make([]byte, superBytes)
		if _, err := log.ReadAt(b, place*superBytes); err != nil {
			return best, false, fmt.Errorf("store: the beginning of the log cannot be read: %w", err)
		}
		s, none, e := decodeSuper(b)
		switch {
		case none:
			empty++
		case e != nil:
			err = e
		case !found || s.generation > best.generation:
			best, found = s, true
		}
	}
	if found {
		return best, false, nil
	}
	return best, empty == 2, err
}

// writeSuper makes a super durable.
func writeSuper(log File, s *super) error {
	if _, err := log.WriteAt(s.encode(), int64(s.generation%2)*superBytes); err != nil {
		return fmt.Errorf("store: the beginning of the log cannot be written: %w", err)
	}
	if err := log.Sync(); err != nil {
		return fmt.Errorf("store: the beginning of the log is not durable: %w", err)
	}
	return nil
}
