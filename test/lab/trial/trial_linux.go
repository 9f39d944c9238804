package trial

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"railyard/test/lab"
)

// Plan is what a trial does.
type Plan struct {
	Lab lab.Options
	// Cuts all happen to Rail, at the same time; none: nothing is cut.
	Cuts []lab.Cut
	Rail int
	// Before is how long the transfer goes undisturbed, Hold how long the cut lasts, After how long it is watched then.
	Before, Hold, After time.Duration
	// Trouble is what happens instead of the cuts, and says when it began and ended; nil: the cuts do.
	Trouble func(ctx context.Context, on Stage) (Moments, error)
	// Size is that of a put in bytes, Window how many are under way.
	Size, Window int
}

// Settle is how long a trial may take beyond its plan.
const settle = 60 * time.Second

func (p Plan) length() time.Duration { return p.Before + p.Hold + p.After }

// Stage is what a trial's trouble can touch.
type Stage struct {
	Lab               *lab.Lab
	Initiator, Target *lab.Process
}

// Moments are when the cut and the heal began, in unix nanoseconds, and how long they took.
type Moments struct {
	Cut, Heal         int64
	CutTook, HealTook time.Duration
}

// Alive tells whether a moment is one at which the cut rail should have been well.
func (m Moments) alive(at int64) bool {
	return m.Cut == 0 || at < m.Cut || at > m.Heal+int64(m.HealTook)
}

// disturb makes the plan's cuts, and heals them.
func (p Plan) disturb(ctx context.Context, l *lab.Lab) (Moments, error) {
	if len(p.Cuts) == 0 {
		return Moments{}, Pause(ctx, p.length())
	}
	return p.Happens(ctx, func() error {
		for _, c := range p.Cuts {
			if _, err := l.Cut(p.Rail, c); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		_, err := l.Heal(p.Rail)
		return err
	})
}

// Happens waits, does something, waits, undoes it, and waits, as a cut does.
func (p Plan) Happens(ctx context.Context, do, undo func() error) (m Moments, err error) {
	if err := Pause(ctx, p.Before); err != nil {
		return m, err
	}
	m.Cut = time.Now().UnixNano()
	if err := do(); err != nil {
		return m, err
	}
	m.CutTook = time.Since(time.Unix(0, m.Cut))
	if err := Pause(ctx, p.Hold); err != nil {
		return m, err
	}
	m.Heal = time.Now().UnixNano()
	if err := undo(); err != nil {
		return m, err
	}
	m.HealTook = time.Since(time.Unix(0, m.Heal))
	return m, Pause(ctx, p.After)
}

// Pause waits, or gives the reason why ctx has ended.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("trial: stopped: %w", context.Cause(ctx))
	}
}

// flowing waits until bytes arrive at host B.
func flowing(ctx context.Context, l *lab.Lab) error {
	const some = 1 << 20
	for limit := time.Now().Add(settle); time.Now().Before(limit); {
		var sum uint64
		for i := range l.Rails() {
			n, err := l.Received(lab.B, i)
			if err != nil {
				return err
			}
			sum += n
		}
		if sum > some {
			return nil
		}
		if err := Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: nothing has arrived in %v", ErrTrial, settle)
}

// ErrTrial is wrapped by the errors of trials that went wrong by themselves.
var ErrTrial = errors.New("trial: failed")

// lively leaves out the samples at the end in which nothing came any more: the transfer was over.
func lively(t lab.Timeline) lab.Timeline {
	for len(t) > 1 && t[len(t)-1].Total == t[len(t)-2].Total {
		t = t[:len(t)-1]
	}
	return t
}

// Rail finds the rail of the address of a card of a lab, port and all; -1: it is none.
func Rail(address string) int {
	host, _, _ := strings.Cut(address, ":")
	at, err := netip.ParseAddr(host)
	for i := range lab.MaxRails {
		for _, s := range []lab.Side{lab.A, lab.B} {
			if err == nil && at == lab.CardAddress(s, i) {
				return i
			}
		}
	}
	return -1
}
