package demo

import (
	"fmt"
	"math"
	"time"

	"railyard/cmd/railyard/internal/units"
	"railyard/internal/load"
)

// Summary is the last line of a run.
type Summary struct {
	Sent           uint64 `json:"sent"`
	Delivered      uint64 `json:"delivered"`
	Lost           uint64 `json:"lost"`
	Doubled        uint64 `json:"doubled"`
	Reordered      uint64 `json:"reordered"`
	Puts           uint64 `json:"puts"`
	Completed      uint64 `json:"completed"`
	Canceled       uint64 `json:"canceled"`
	Revoked        uint64 `json:"revoked"`
	Corrupted      uint64 `json:"corrupted"`
	LateWrites     uint64 `json:"late_writes"`
	Cuts           int    `json:"cuts"`
	EndpointErrors uint64 `json:"endpoint_errors"`
	// MaxGapMs is the worst gap of the cuts that left a rail whole. Where none was left everything has to wait
	// for the heal: the worst of those is MaxGapAllMs, the outage included.
	MaxGapMs    float64 `json:"max_gap_ms"`
	MaxGapAllMs float64 `json:"max_gap_all_rails_ms"`
	MaxRejoinMs float64 `json:"max_rejoin_ms"`

	MsgsPerS float64  `json:"msgs_per_s"`
	PutMBps  float64  `json:"put_MBps"`
	Seconds  float64  `json:"seconds"` // that the load ran
	Rails    int      `json:"rails"`
	Pairs    int      `json:"pairs"`
	Seed     uint64   `json:"seed"`
	Sabotage string   `json:"sabotage,omitempty"`
	Deeds    int      `json:"deeds,omitempty"`   // what sabotage did
	Stopped  bool     `json:"stopped,omitempty"` // the run was interrupted
	Broken   []string `json:"broken"`            // the promises that were broken
	Notes    []string `json:"notes,omitempty"`   // details, the first few
}

// take fills in what the load counted, both sides together.
func (s *Summary) take(c load.Counters, ran time.Duration) {
	s.Sent, s.Delivered, s.Lost, s.Doubled, s.Reordered = c.Sent, c.Delivered, c.Lost(), c.Doubled, c.Reordered
	s.Puts, s.Completed, s.Canceled, s.Revoked = c.Puts, c.Completed, c.Canceled, c.Revoked
	s.Corrupted, s.LateWrites, s.EndpointErrors = c.Corrupted, c.LateWrites, c.EndpointErrors
	s.Broken = append(s.Broken, c.Broken()...)
	if seconds := ran.Seconds(); seconds > 0 {
		s.Seconds = math.Round(seconds*1000) / 1000
		s.MsgsPerS = math.Floor(float64(c.Delivered) / seconds)
		s.PutMBps = units.Mega(float64(c.PutBytes) / seconds)
	}
}

// add counts a cut.
func (s *Summary) add(r Record, late bool) {
	s.Cuts++
	if r.RailsLeft > 0 {
		s.MaxGapMs = max(s.MaxGapMs, r.GapMs)
	} else {
		s.MaxGapAllMs = max(s.MaxGapAllMs, r.GapMs)
	}
	if r.RejoinMs != nil {
		s.MaxRejoinMs = max(s.MaxRejoinMs, *r.RejoinMs)
	}
	if late {
		s.Broken = append(s.Broken,
			fmt.Sprintf("rejoin: rail %d did not come back within %v of its heal", r.Rail, rejoinWait))
	}
}
