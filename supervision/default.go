package supervision

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// DefaultConfig sets the default policy; zero fields mean the values named. Bad values are refused
// by Default.
type DefaultConfig struct {
	// Base is the upper bound of the first delay that is not "at once": of a second failure in a
	// row, or of a second flap; it doubles with each further one. 50 ms.
	Base time.Duration
	// Max bounds every delay. 5 s.
	Max time.Duration
	// ReachableMax bounds every delay while the peer is reachable on another rail. 500 ms, or Max
	// where that is less: a dial itself takes up to a second, and a path that has healed is to be
	// back within one.
	ReachableMax time.Duration
	// BugLimit is how many failures of class Bug within RecentSpan are borne. 10; MaxRecent-1 at
	// most.
	BugLimit int
}

// ErrConfig: a DefaultConfig that makes no sense.
var ErrConfig = errors.New("bad configuration of the default supervision policy")

func (c DefaultConfig) filled() (DefaultConfig, error) {
	if c.Base < 0 || c.Max < 0 || c.ReachableMax < 0 || c.BugLimit < 0 {
		return c, fmt.Errorf("%w: Base %s, Max %s, ReachableMax %s, BugLimit %d: none may be negative",
			ErrConfig, c.Base, c.Max, c.ReachableMax, c.BugLimit)
	}
	if c.Max == 0 {
		c.Max = 5 * time.Second
	}
	if c.Base == 0 {
		c.Base = min(50*time.Millisecond, c.Max)
	}
	if c.ReachableMax == 0 {
		c.ReachableMax = min(500*time.Millisecond, c.Max)
	}
	if c.BugLimit == 0 {
		c.BugLimit = 10
	}
	switch {
	case c.Base > c.Max:
		return c, fmt.Errorf("%w: Base %s is above Max %s", ErrConfig, c.Base, c.Max)
	case c.ReachableMax > c.Max:
		return c, fmt.Errorf("%w: ReachableMax %s is above Max %s", ErrConfig, c.ReachableMax, c.Max)
	case c.BugLimit >= MaxRecent:
		return c, fmt.Errorf("%w: BugLimit %d is not below %d, all that is remembered",
			ErrConfig, c.BugLimit, MaxRecent)
	}
	return c, nil
}

// Default makes the policy that nodes use unless they are given another. It draws its jitter from
// source, which it then owns. Errors wrap ErrConfig.
//
// Transient and path failures: restart. At once after a healthy spell, unless the rail has flapped
// before within the last minute; else after a random part (full jitter) of Base, doubled by each
// failure in a row or flap beyond the second, whichever are more, Max at most, and ReachableMax at
// most while another rail reaches the peer.
//
// Bugs: the same, until more than BugLimit have happened within a minute: then Reroute if the peer
// is reachable on another rail, which so goes undisturbed, else Escalate.
//
// Peer failures: Escalate where the peer said goodbye or is a new incarnation; else Stop.
func Default(c DefaultConfig, source rand.Source) (Policy, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	if source == nil {
		return nil, fmt.Errorf("%w: no source of random numbers for the jitter", ErrConfig)
	}
	return &defaultPolicy{config: c, random: rand.New(source)}, nil
}

type defaultPolicy struct {
	config DefaultConfig
	// mu guards random: the rails of a node share the policy.
	mu     sync.Mutex
	random *rand.Rand
}

// Decide implements Policy.
func (p *defaultPolicy) Decide(h History, f Failure, now time.Duration) Directive {
	switch f.Class {
	case Peer:
		return p.peer(f)
	case Bug:
		if n := h.Within(Bug, RecentSpan, now); n > p.config.BugLimit {
			return p.buggy(h, n)
		}
	case Transient, Path:
	}
	return p.restart(h, f)
}

func (p *defaultPolicy) peer(f Failure) Directive {
	switch {
	case errors.Is(f.Err, ErrGoodbye):
		return Directive{Action: Escalate, Reason: "the peer said goodbye"}
	case errors.Is(f.Err, ErrNewIncarnation):
		return Directive{Action: Escalate, Reason: "the peer is a new incarnation"}
	}
	return Directive{Action: Stop, Reason: "the peer will not have this rail"}
}

func (p *defaultPolicy) buggy(h History, n int) Directive {
	if h.Reachable {
		return Directive{Action: Reroute, Reason: fmt.Sprintf(
			"%d bugs within %s, and the peer is reachable without this rail", n, RecentSpan)}
	}
	return Directive{Action: Escalate, Reason: fmt.Sprintf("%d bugs within %s", n, RecentSpan)}
}

func (p *defaultPolicy) restart(h History, f Failure) Directive {
	if h.Healthy && h.Flaps <= 1 {
		return Directive{Action: Restart, Reason: f.Class.String() + " failure after a healthy spell"}
	}
	limit := p.config.Max
	if h.Reachable {
		limit = p.config.ReachableMax
	}
	// The first of a row after a healthy spell, and the first flap, cost nothing; the second one
	// Base.
	ceiling := doubled(p.config.Base, limit, max(h.Failures, h.Flaps)-2)
	return Directive{Action: Restart, Delay: p.jitter(ceiling), Reason: fmt.Sprintf(
		"%s failure, %d in a row, %d lives lost within %s", f.Class, h.Failures, h.Flaps, RecentSpan)}
}

// jitter is uniform in [0, ceiling].
func (p *defaultPolicy) jitter(ceiling time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.random.Int64N(int64(ceiling) + 1))
}
