package load

import (
	"errors"
	"fmt"
	"time"

	"railyard/rma"
)

// This file: a side whose other node has died.

// maxReported bounds what is remembered of one pair's reports.
const maxReported = 1 << 16

// excused tells whether an error is the other node's death, where that may happen.
func (s *Side) excused(err error) bool {
	return s.config.Mortal && (errors.Is(err, rma.ErrEndpointDown) || errors.Is(err, rma.ErrPeerRestarted) ||
		errors.Is(err, rma.ErrOutcomeUnknown))
}

// Undelivered takes the report that a message did not arrive, or may not have arrived, at the other node. It is safe from any
// goroutine.
func (s *Side) Undelivered(m *Numbered, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(m.Pair) >= len(s.reported) {
		return
	}
	if !s.excused(cause) {
		s.counters.EndpointErrors++
		s.noteLocked("message %d of pair %d came back: %v", m.Sequence, m.Pair, cause)
	}
	of := s.reported[m.Pair]
	if of == nil {
		of = map[uint64]bool{}
		s.reported[m.Pair] = of
	}
	if _, again := of[m.Sequence]; again {
		s.counters.Doubled++
		s.noteLocked("doubled: message %d of pair %d was reported twice", m.Sequence, m.Pair)
	}
	if len(of) < maxReported {
		of[m.Sequence] = !errors.Is(cause, rma.ErrOutcomeUnknown)
	}
}

// Orphaned says that the other node is dead, and its endpoint over: nothing that it began lands any more. Stop has been called.
func (s *Side) Orphaned() error {
	done := s.system.Root.RequestFuture(s.own("target"), forgo{}, 30*time.Second)
	if _, err := done.Result(); err != nil {
		return fmt.Errorf("the memory was not given up: %w", err)
	}
	return nil
}

// Parting is what became of the messages of a side whose other node died.
type Parting struct {
	// Holes are messages that the dead node had skipped over, by what came from it; none is allowed.
	Holes uint64 `json:"holes"`
	// Silent are messages that did not arrive and were not reported. A few may have been in the dead node's mailboxes, others
	// have gone to its successor, where they were for nobody.
	Silent uint64 `json:"silent"`
	// Lies are messages that did arrive, and were reported as surely not delivered; none is allowed.
	Lies uint64 `json:"lies"`
	// Reported are all that were reported.
	Reported uint64 `json:"reported"`
}

// Part compares what was reported with what had arrived: the last number of each pair at the dead node.
func (s *Side) Part(arrived []uint64) Parting {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Parting{Holes: s.holes}
	for pair, sent := range s.sent {
		var last uint64
		if pair < len(arrived) {
			last = arrived[pair]
		}
		p.Reported += uint64(len(s.reported[pair]))
		for sequence, surely := range s.reported[pair] {
			if surely && sequence <= last {
				p.Lies++
			}
		}
		for sequence := last + 1; sequence <= sent; sequence++ {
			if _, reported := s.reported[pair][sequence]; !reported {
				p.Silent++
			}
		}
	}
	return p
}
