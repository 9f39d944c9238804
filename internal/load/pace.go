package load

import (
	"context"
	"time"
)

// Pace is how fast a side sends, in one direction: messages per second and pair, and bytes of puts per second. Zero: none.
type Pace struct {
	Messages float64 `json:"messages"`
	Puts     float64 `json:"puts"`
}

// SetPace changes how fast the side sends from now on. Config has the pace that it begins with.
func (s *Side) SetPace(p Pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace = Pace{max(p.Messages, 0), max(p.Puts, 0)}
}

// Pace tells how fast the side sends.
func (s *Side) Pace() Pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace
}

// restNap is how often a driver that is to do nothing looks whether that has changed.
const restNap = 20 * time.Millisecond

// interval gives the time that a byte of puts takes each putter. It waits while there are to be none. False: the driver is to end.
func (s *Side) interval(ctx context.Context) (perByte float64, ok bool) {
	for {
		if rate := s.Pace().Puts; rate > 0 {
			return float64(s.config.Putters) / rate * float64(time.Second), ctx.Err() == nil
		}
		if !nap(ctx, restNap) {
			return 0, false
		}
	}
}
