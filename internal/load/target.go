package load

import (
	"errors"
	"fmt"
	"time"

	"railyard/rma"
)

// Scratch is the end of each slot, in bytes, that nobody watches: filler puts go there.
const Scratch = 64

// Target keeps the books of the memory that the other side puts into. Owner: the target actor.
type Target struct {
	register func([]byte) (*rma.Region, error)
	watch    time.Duration
	slots    []slot

	Corrupted, Doubled, LateWrites uint64
	// Notes say what was found, the first few.
	Notes []string
}

// slot is one region.
type slot struct {
	memory  []byte // all of it, Scratch included
	region  *rma.Region
	ground  *Ground
	life    uint64
	watched bool          // between two lives
	until   time.Duration // of watched
	revoked bool          // the next life needs a new region
}

// maxNotes bounds Notes.
const maxNotes = 20

// NewTarget registers each piece of memory as a slot. watch is how long a slot is watched between two lives.
func NewTarget(memory [][]byte, watch time.Duration, register func([]byte) (*rma.Region, error)) (*Target, error) {
	t := &Target{register: register, watch: watch}
	for i, m := range memory {
		if len(m) <= Scratch {
			return nil, fmt.Errorf("slot %d of %d bytes is too small for a load; give it more than %d", i, len(m), Scratch)
		}
		s := slot{memory: m, ground: NewGround(m[:len(m)-Scratch]), life: 1}
		var err error
		if s.region, err = register(m); err != nil {
			return nil, fmt.Errorf("slot %d: %w", i, err)
		}
		t.slots = append(t.slots, s)
	}
	return t, nil
}

// Plots introduces all slots.
func (t *Target) Plots() (*Plots, error) {
	all := &Plots{}
	for i := range t.slots {
		p, err := t.plot(i)
		if err != nil {
			return nil, err
		}
		all.Plots = append(all.Plots, p)
	}
	return all, nil
}

func (t *Target) plot(i int) (*Plot, error) {
	key, err := t.slots[i].region.Key().MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("key of slot %d cannot be sent: %w", i, err)
	}
	return &Plot{Slot: uint32(i), Life: t.slots[i].life, Key: key}, nil
}

// Landed checks a completed put.
func (t *Target) Landed(m *Landed) *Checked {
	answer := &Checked{Put: m.Put, Slot: m.Slot, Life: m.Life}
	s := t.current(m.Slot, m.Life)
	if s == nil {
		answer.Void = true
		return answer
	}
	s.look(func() {
		t.judge(s.ground.Landed(m.Put, m.Offset, m.Length, m.Sum),
			"put %d of %d bytes at %d of slot %d", m.Put, m.Length, m.Offset, m.Slot)
	})
	return answer
}

// TookBack paints over what a canceled put may have written.
func (t *Target) TookBack(m *TookBack) {
	if s := t.current(m.Slot, m.Life); s != nil {
		s.look(func() {
			t.judge(s.ground.TookBack(m.Put, m.Offset, m.Length),
				"canceled put %d of %d bytes at %d of slot %d", m.Put, m.Length, m.Offset, m.Slot)
		})
	}
}

// Revoke takes the slot's key back. From the moment it returns nothing may land there.
func (t *Target) Revoke(m *Revoke, now time.Duration) error {
	s := t.current(m.Slot, m.Life)
	if s == nil {
		return nil
	}
	if err := s.region.Revoke(); err != nil && !errors.Is(err, rma.ErrRevoked) {
		return fmt.Errorf("slot %d could not be revoked: %w", m.Slot, err)
	}
	s.ground.Begin()
	s.watched, s.revoked, s.until = true, true, now+t.watch
	return nil
}

// Full begins to watch a slot whose puts have all ended.
func (t *Target) Full(m *Full, now time.Duration) {
	if s := t.current(m.Slot, m.Life); s != nil {
		s.watched, s.until = true, now+t.watch
	}
}

// Due looks at the slots that have been watched long enough and opens them for their next lives.
func (t *Target) Due(now time.Duration) ([]*Plot, error) {
	var plots []*Plot
	for i := range t.slots {
		s := &t.slots[i]
		if !s.watched || now < s.until {
			continue
		}
		t.sweep(i)
		s.look(s.ground.Begin)
		s.watched = false
		s.life++
		if s.revoked {
			region, err := t.register(s.memory)
			if err != nil {
				return plots, fmt.Errorf("slot %d cannot be registered again: %w", i, err)
			}
			s.region, s.revoked = region, false
		}
		p, err := t.plot(i)
		if err != nil {
			return plots, err
		}
		plots = append(plots, p)
	}
	return plots, nil
}

// Forgo paints over what puts that will never be told of have left: their initiator is dead, and so is its endpoint. From the
// moment it returns nothing may land.
func (t *Target) Forgo() {
	for i := range t.slots {
		s := &t.slots[i]
		s.look(func() { s.ground.Sweep() })
	}
}

// Finish looks at every slot, when no put is under way any more.
func (t *Target) Finish() {
	for i := range t.slots {
		t.sweep(i)
	}
}

func (t *Target) sweep(i int) {
	s := &t.slots[i]
	s.look(func() {
		if n := s.ground.Sweep(); n > 0 {
			t.LateWrites += uint64(n)
			t.note("late write: %d places of slot %d, life %d, were written after they had been given back", n, i, s.life)
		}
	})
}

func (t *Target) current(slot uint32, life uint64) *slot {
	if int(slot) >= len(t.slots) {
		t.Corrupted++
		t.note("message about slot %d, which is not there", slot)
		return nil
	}
	if s := &t.slots[slot]; s.life == life && !s.watched {
		return s
	}
	return nil
}

// look does something with the slot's memory under the region's lease, as long as there is one: the owner
// looks while others may write.
func (s *slot) look(do func()) {
	if s.region.Enter() {
		defer s.region.Leave()
	}
	do()
}

func (t *Target) judge(f Finding, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	switch f {
	case Good:
	case Corrupt:
		t.Corrupted++
		t.note("corrupted: %s", what)
	case Again:
		t.Doubled++
		t.note("notified twice: %s", what)
	case Undead:
		t.Corrupted++
		t.note("canceled and completed: %s", what)
	}
}

func (t *Target) note(format string, args ...any) {
	if len(t.Notes) < maxNotes {
		t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
	}
}
