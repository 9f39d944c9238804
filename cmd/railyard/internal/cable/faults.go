package cable

import (
	"context"
	"fmt"
	"time"
)

// Fault is one way to cut the cable.
type Fault uint8

// The faults. Each stays until Heal.
const (
	Reset          Fault = iota + 1 // both ends get a reset; new connections are refused
	BlackHole                       // nothing passes
	OneWayToTarget                  // nothing passes toward the target
	OneWayToSource                  // nothing passes back
	Refuse                          // connections live on; new ones are refused
)

var faultNames = [...]string{"", "reset", "blackhole", "oneway to-target", "oneway to-source", "refuse"}

func (f Fault) String() string {
	if f >= Reset && int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// Cut breaks the cable at once and returns the bytes that were in flight.
func (c *Cable) Cut(f Fault) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cutLocked(f)
}

func (c *Cable) cutLocked(f Fault) uint64 {
	inFlight := c.inFlightLocked()
	switch f {
	case Reset:
		c.refuse = true
		c.holdLocked(false, false)
		for l := range c.links {
			l.killLocked()
		}
	case BlackHole:
		c.holdLocked(true, true)
	case OneWayToTarget:
		c.holdLocked(true, c.held[ToSource])
	case OneWayToSource:
		c.holdLocked(c.held[ToTarget], true)
	case Refuse:
		c.refuse = true
	}
	return inFlight
}

func (c *Cable) holdLocked(toTarget, toSource bool) {
	c.held[ToTarget], c.held[ToSource] = toTarget, toSource
	for l := range c.links {
		l.deadlineLocked()
	}
	c.change.Broadcast()
}

// Blow is what CutBusy did.
type Blow struct {
	At       time.Time // from when on nothing passed
	InFlight uint64    // bytes; 0: the cable stayed idle for the whole of the wait
}

// CutBusy cuts the cable at a moment when bytes are in flight: it stops the cable for at most a few
// milliseconds at a time until it has caught some, then cuts. An idle cable is cut when ctx ends.
func (c *Cable) CutBusy(ctx context.Context, f Fault) Blow {
	for {
		at := time.Now()
		c.mu.Lock()
		before := c.held
		c.holdLocked(true, true)
		c.mu.Unlock()
		caught := c.caught(5 * time.Millisecond)
		over := ctx.Err() != nil
		c.mu.Lock()
		// What the stop held goes on where the cut does not hold it; nothing moves before the lock is given back.
		c.holdLocked(before[ToTarget], before[ToSource])
		if caught || over {
			blow := Blow{At: at, InFlight: c.cutLocked(f)}
			c.mu.Unlock()
			return blow
		}
		c.mu.Unlock()
		_ = sleep(ctx, 2*time.Millisecond)
	}
}

// plenty are so many bytes in flight that it is not worth waiting for more.
const plenty = 64 << 10

// caught waits until plenty is in flight, for so long at most, and tells whether anything is.
func (c *Cable) caught(limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		if c.InFlight() >= plenty {
			return true
		}
	}
	return c.InFlight() > 0
}

// Heal makes the cable whole: all faults end, Slow and Delay too, and what was held is released.
func (c *Cable) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.healing++
	c.refuse, c.rate, c.delay = false, 0, 0
	c.holdLocked(false, false)
}

// Slow limits each direction of each connection to so many bytes per second, until Heal.
func (c *Cable) Slow(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rate = rate
}

// Delay makes each byte come so much later, until Heal.
func (c *Cable) Delay(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = d
}

// Flap cuts and heals count times, period after period, half of it cut. The cable is whole afterwards.
// It ends early with ctx, or when somebody else heals the cable.
func (c *Cable) Flap(ctx context.Context, f Fault, count int, period time.Duration) error {
	c.mu.Lock()
	mine := c.healing
	c.mu.Unlock()
	for range count {
		c.Cut(f)
		err := sleep(ctx, period/2)
		c.mu.Lock()
		overruled := c.healing != mine
		c.mu.Unlock()
		if overruled {
			return err
		}
		c.Heal()
		mine++
		if err == nil {
			err = sleep(ctx, period-period/2)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("cable: flapping was stopped: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}
