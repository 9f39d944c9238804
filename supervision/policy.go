package supervision

import (
	"strconv"
	"time"
)

// Action is what becomes of a rail after a failure.
type Action uint8

const (
	// Restart tries again, with a new generation, after Directive.Delay.
	Restart Action = iota
	// Reroute leaves the rail down until a hint (its link came up, the peer dials) or an explicit
	// retry.
	Reroute
	// Stop gives the rail up for the rest of its endpoint's life.
	Stop
	// Escalate ends the endpoint.
	Escalate
)

// String gives the word that logs and events use.
func (a Action) String() string {
	switch a {
	case Restart:
		return "restart"
	case Reroute:
		return "reroute"
	case Stop:
		return "stop"
	case Escalate:
		return "escalate"
	default:
		return "action " + strconv.Itoa(int(a))
	}
}

// Directive is a policy's answer to one failure.
type Directive struct {
	Action Action
	// Delay is how long Restart waits, from now; 0 is at once. The other actions do not use it.
	Delay time.Duration
	// Reason is for logs and events.
	Reason string
}

// Policy decides what to do about failures. Decide must not block, and answers to the same
// arguments the same but for randomness that it was made with. It may be called from the goroutines
// of several rails at once.
type Policy interface {
	Decide(h History, f Failure, now time.Duration) Directive
}

// PolicyFunc makes a function a Policy.
type PolicyFunc func(h History, f Failure, now time.Duration) Directive

// Decide calls the function.
func (p PolicyFunc) Decide(h History, f Failure, now time.Duration) Directive { return p(h, f, now) }

const (
	probationBase = 250 * time.Millisecond
	probationCap  = 5 * time.Second
)

// Probation is how long a rail that has come back is watched before it counts as up again: 250 ms,
// doubled for each further life lost within the last minute, 5 s at most.
func Probation(h History) time.Duration {
	return doubled(probationBase, probationCap, h.Flaps-1)
}

// doubled is base times 2^times, limit at most; base where times is not positive.
func doubled(base, limit time.Duration, times int) time.Duration {
	d := min(base, limit)
	for ; times > 0 && d < limit; times-- {
		// Doubling only below half of the limit cannot overflow.
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return d
}
