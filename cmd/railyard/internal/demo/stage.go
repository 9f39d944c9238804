package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"railyard/cmd/railyard/internal/cable"
	"railyard/cmd/railyard/internal/script"
	"railyard/internal/clock"
)

// busyWait is how long a cut waits for the cable to have bytes in flight.
const busyWait = 2 * time.Second

// pauseBetween is the rest between two rails of a turn.
const pauseBetween = 300 * time.Millisecond

// stage plays a script on the cables. Owner: the goroutine that calls play.
type stage struct {
	cables []*cable.Cable
	first  int // the rail that Connect used
	book   *book
	say    func(format string, args ...any) // tells a human what happens
	// superseded takes a cut whose rail is cut again before it was complete.
	superseded func(*cut)
	detected   func(*cut) bool // a node has noticed

	cut []bool // the rails that are not whole
}

// play does the steps one after the other.
func (s *stage) play(ctx context.Context, steps []script.Step) error {
	began := clock.Now()
	for _, step := range steps {
		if step.Timed {
			if err := sleep(ctx, began+step.At-clock.Now()); err != nil {
				return err
			}
		}
		if err := s.step(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) step(ctx context.Context, step script.Step) error {
	rails := s.rails(step.Rail)
	switch step.Do {
	case script.Wait:
		return sleep(ctx, step.Time)
	case script.Cut:
		s.strike(ctx, rails, step.Fault, step.Fault.String())
	case script.Heal:
		s.heal(rails)
	case script.Flap:
		return s.flap(ctx, rails, step)
	case script.Turn:
		return s.turn(ctx, step)
	case script.Slow:
		s.say("slow %v: %v bytes per second", step.Rail, step.Rate)
		s.each(rails, func(c *cable.Cable) { c.Slow(step.Rate) })
	case script.Delay:
		s.say("delay %v: %v", step.Rail, step.Time)
		s.each(rails, func(c *cable.Cable) { c.Delay(step.Time) })
	case script.Detect:
		return s.detect(ctx, rails)
	case script.Rejoin:
		return s.rejoin(ctx, rails)
	}
	return nil
}

// rails gives the numbers that a name stands for.
func (s *stage) rails(r script.Rail) []int {
	switch r {
	case script.First:
		return []int{s.first}
	case script.All:
		all := make([]int, len(s.cables))
		for i := range all {
			all[i] = i
		}
		return all
	}
	return []int{int(r)}
}

func (s *stage) each(rails []int, do func(*cable.Cable)) {
	for _, i := range rails {
		do(s.cables[i])
	}
}

// strike cuts rails at once, each while it has bytes in flight.
func (s *stage) strike(ctx context.Context, rails []int, fault script.Fault, name string) {
	s.say("cut %v: %s", rails, name)
	for _, i := range rails {
		s.cut[i] = true
	}
	left := 0
	for _, cut := range s.cut {
		if !cut {
			left++
		}
	}
	within, cancel := context.WithTimeout(ctx, busyWait)
	defer cancel()
	var blows sync.WaitGroup
	for _, i := range rails {
		c := &cut{at: clock.Now()}
		c.record.Cut, c.record.Rail, c.record.RailsLeft = name, i, left
		if old := s.book.begin(c); old != nil {
			s.superseded(old)
		}
		blows.Go(func() {
			blow := s.cables[i].CutBusy(within, faultOf(fault))
			s.book.struck(c, clock.Stamp(blow.At), blow)
		})
	}
	blows.Wait()
}

func faultOf(f script.Fault) cable.Fault {
	switch f {
	case script.Reset:
		return cable.Reset
	case script.BlackHole:
		return cable.BlackHole
	case script.OneWayToTarget:
		return cable.OneWayToTarget
	case script.OneWayToSource:
		return cable.OneWayToSource
	case script.Refuse, script.NoFault:
	}
	return cable.Refuse
}

func (s *stage) heal(rails []int) {
	s.say("heal %v", rails)
	for _, i := range rails {
		s.cables[i].Heal()
		s.cut[i] = false
		s.book.healed(i, clock.Now())
	}
}

func (s *stage) flap(ctx context.Context, rails []int, step script.Step) error {
	s.strike(ctx, rails, step.Fault, fmt.Sprintf("flap %d times, every %v, by %v", step.Count, step.Time, step.Fault))
	var flaps sync.WaitGroup
	for _, i := range rails {
		flaps.Go(func() {
			// Its error is that ctx has ended, which is looked at below.
			_ = s.cables[i].Flap(ctx, faultOf(step.Fault), step.Count, step.Time)
		})
	}
	flaps.Wait()
	s.heal(rails)
	return stopped(ctx)
}

// turn cuts every rail in turn, and waits for each to come back before the next.
func (s *stage) turn(ctx context.Context, step script.Step) error {
	for n := range s.cables {
		rail := []int{(s.first + n) % len(s.cables)}
		s.strike(ctx, rail, step.Fault, step.Fault.String())
		if err := sleep(ctx, step.Time); err != nil {
			return err
		}
		s.heal(rail)
		if err := s.rejoin(ctx, rail); err != nil {
			return err
		}
		if err := sleep(ctx, pauseBetween); err != nil {
			return err
		}
	}
	return nil
}

// detect waits until a node has noticed the rails' cuts, for a while.
func (s *stage) detect(ctx context.Context, rails []int) error {
	limit := clock.Now() + rejoinWait
	for _, i := range rails {
		for c := s.book.cutOf(i); c != nil && !s.detected(c) && clock.Now() < limit; {
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// rejoin waits until the rails' cuts are complete, or have been given up. A rail that is still cut is not waited for.
func (s *stage) rejoin(ctx context.Context, rails []int) error {
	limit := clock.Now() + rejoinWait + 2*time.Second
	for _, i := range rails {
		for !s.cut[i] && s.book.isOpen(i) && clock.Now() < limit {
			if err := sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore heals what the script left cut, and waits for it.
func (s *stage) restore(ctx context.Context) error {
	var rails []int
	for i, cut := range s.cut {
		if cut {
			rails = append(rails, i)
		}
	}
	if len(rails) > 0 {
		s.heal(rails)
	}
	return s.rejoin(ctx, s.rails(script.All))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return stopped(ctx)
}

// stopped says that the run was interrupted.
func stopped(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the demo was stopped: %w", context.Cause(ctx))
	}
	return nil
}
