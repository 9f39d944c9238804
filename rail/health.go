package rail

import (
	"errors"
	"fmt"
	"time"
)

// This file is pure: no clock, no goroutine. now is the monotonic time since the node's start; it comes in,
// and the time of the next look goes out.

// HealthConfig sets the health machine's times. The zero value of each field is the default named beside it.
type HealthConfig struct {
	// Beat is the time between heartbeats while work is open, and Linger after (50 ms, 2 s).
	Beat, Linger time.Duration
	// IdleBeat is the time between heartbeats otherwise (1 s).
	IdleBeat time.Duration
	// Floor and Ceiling bound the silence limit (120 ms, 2 s). Unmeasured is the limit before the first round trip
	// is known (500 ms).
	Floor, Ceiling, Unmeasured time.Duration
	// Late: a look that comes so much after its time says that this node itself was stopped (50 ms).
	Late time.Duration
	// Glance: a look a little late, by more than this, accuses nobody before it has looked once more (10 ms).
	Glance time.Duration
	// Stall multiplies the limit for bytes in flight that are not acknowledged while heartbeats pass (4).
	Stall int
}

// WithDefaults gives the settings as they will be in force.
func (c HealthConfig) WithDefaults() HealthConfig {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Beat, 50 * time.Millisecond}, {&c.Linger, 2 * time.Second}, {&c.IdleBeat, time.Second},
		{&c.Floor, 120 * time.Millisecond}, {&c.Ceiling, 2 * time.Second},
		{&c.Unmeasured, 500 * time.Millisecond},
		{&c.Late, 50 * time.Millisecond}, {&c.Glance, 10 * time.Millisecond},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if c.Stall == 0 {
		c.Stall = 4
	}
	return c
}

// ErrHealth is wrapped by every error of HealthConfig.Validate.
var ErrHealth = errors.New("rail health settings refused")

// Validate checks the settings as they will be in force, defaults filled in.
func (c HealthConfig) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.Beat < time.Millisecond:
		return fmt.Errorf("%w: Beat is %s: at least 1ms", ErrHealth, c.Beat)
	case c.IdleBeat < c.Beat:
		return fmt.Errorf("%w: IdleBeat %s is shorter than Beat %s", ErrHealth, c.IdleBeat, c.Beat)
	case c.Floor <= c.Beat:
		return fmt.Errorf("%w: Floor %s must be above Beat %s, or every pause looks like silence",
			ErrHealth, c.Floor, c.Beat)
	case c.Ceiling < c.Floor:
		return fmt.Errorf("%w: Ceiling %s is below Floor %s", ErrHealth, c.Ceiling, c.Floor)
	case c.Unmeasured < c.Floor || c.Unmeasured > c.Ceiling:
		return fmt.Errorf("%w: Unmeasured %s is not between Floor %s and Ceiling %s",
			ErrHealth, c.Unmeasured, c.Floor, c.Ceiling)
	case c.Linger < 0, c.Late < 0, c.Glance < 0, c.Glance > c.Late:
		return fmt.Errorf("%w: want 0 <= Linger (%s) and 0 <= Glance (%s) <= Late (%s)",
			ErrHealth, c.Linger, c.Glance, c.Late)
	case c.Stall < 1:
		return fmt.Errorf("%w: Stall is %d: at least 1", ErrHealth, c.Stall)
	}
	return nil
}

// Vitals is what the session knows of one generation's lane. Times count from the node's start.
type Vitals struct {
	// Heard is when any byte came last.
	Heard time.Duration
	// Answered is when the newest of our pings or counted frames was sent that the peer has answered.
	Answered time.Duration
	// OldestPing is when the oldest unanswered ping was sent; 0: none is.
	OldestPing time.Duration
	// Acked counts what the peer has acknowledged; InFlight are bytes sent and not acknowledged.
	Acked, InFlight uint64
	// RTT and Jitter are smoothed; RTT 0: not measured yet.
	RTT, Jitter time.Duration
	// Busy: operations or messages are open on any lane.
	Busy bool
}

// Verdict is the health machine's opinion of one generation.
type Verdict uint8

// Healthy lanes take work; Unhealthy ones are suspect: they take none, and are retired as soon as another lane has
// answered.
const (
	Healthy Verdict = iota
	Unhealthy
)

// Assessment is the outcome of one look.
type Assessment struct {
	Verdict Verdict
	// Cause says why the lane is Unhealthy: a *SilenceError. It stays the same until it answers.
	Cause error
	// SendBeat asks for a heartbeat now.
	SendBeat bool
	// Next is when to look again, at the latest: always after now.
	Next time.Duration
	// Limit is the silence limit in force.
	Limit time.Duration
}

// Symptom says which kind of silence it was.
type Symptom uint8

const (
	// NoAnswer: pings went out and nothing came back.
	NoAnswer Symptom = iota + 1
	// NoRoom: heartbeats could not even be written.
	NoRoom
	// NoProgress: heartbeats pass, but bytes in flight are not acknowledged.
	NoProgress
	// NoCarrier: the local card says that its cable is out; nothing has been answered since.
	NoCarrier
)

// SilenceError is why a lane is suspect.
type SilenceError struct {
	Symptom Symptom
	// For is how long it had lasted when it was noticed, Limit how long it may last.
	For, Limit time.Duration
}

// Error says what was seen and what to check.
func (e *SilenceError) Error() string {
	switch e.Symptom {
	case NoRoom:
		return fmt.Sprintf("no heartbeat could be sent for %s (limit %s): the path or the peer takes no bytes",
			e.For, e.Limit)
	case NoProgress:
		return fmt.Sprintf("bytes in flight not acknowledged for %s (limit %s) though heartbeats pass", e.For, e.Limit)
	case NoCarrier:
		return "the local card reports no carrier: check the cable or the switch port"
	case NoAnswer:
	}
	return fmt.Sprintf("heartbeats not answered for %s (limit %s): check the path to the peer's card", e.For, e.Limit)
}

// maxLates bounds how many late looks in a row excuse the peer: a node that is always late must still find a dead
// rail one day.
const maxLates = 5

// Health judges one generation. It is told what the session sees and says when to beat, when to look again, and
// whether to trust the lane.
//
// The silence limit is 4 × (round trip + 4 × jitter) + one beat, between Floor and Ceiling. A lane is suspect when
//   - its oldest unanswered ping is older than the limit and nothing was answered within the limit. Where bytes keep
//     coming meanwhile, as from a path that has become slow, the answer is taken to wait behind them, for Stall limits at
//     most: who hears nothing is at the other end, and finds that out in time; or
//   - a beat asked for two limits ago has not been answered, sent or not (one of them for the begun chunk in its way); or
//   - bytes are in flight and none was acknowledged for Stall limits, though beats may pass. A chunk is acknowledged as
//     a whole: its own time on the wire, the peer's turn to apply it and the wait for the writer each may take as
//     long as one beat's round trip, hence 4; or
//   - the card's carrier went away (Accuse), until something sent since is answered.
//
// An idle lane's limit counts from its idle beat. When its own look comes late, the node was stopped and others
// look silent that are not: all clocks of silence restart, and nobody is judged by that look.
//
// Invariant: every look either answers Unhealthy or names a Next by which, if nothing is answered, a look would.
type Health struct {
	cfg HealthConfig
	// due is when the next look was promised.
	due time.Duration
	// beatAt is when the last beat was asked for; asked the oldest such that nothing sent since was answered (0: none).
	beatAt, asked time.Duration
	// busyAt is when work was last seen, busy whether there ever was any; activeFrom when the fast beat began.
	busyAt, activeFrom time.Duration
	busy, active       bool
	// answered, acked and inFlight are the vitals seen last; answeredAt and movedAt when the first two last advanced, or
	// when bytes were seen in flight after none.
	answered, answeredAt time.Duration
	acked, inFlight      uint64
	movedAt              time.Duration
	// clock is the earliest that silence counts from: the start, or the last late look.
	clock time.Duration
	// lates counts late looks since the last answer; glanced says that a look was already repeated.
	lates   int
	glanced bool
	// cause is set while the lane is suspect, since accusedAt.
	cause     *SilenceError
	accusedAt time.Duration
}

// NewHealth starts to watch a generation that has just joined. cfg is taken with its defaults filled in.
func NewHealth(cfg HealthConfig, now time.Duration) *Health {
	return &Health{cfg: cfg.WithDefaults(), due: now, clock: now, answeredAt: now, movedAt: now,
		beatAt: now - time.Hour}
}

// Accuse makes the lane suspect until something sent after now is answered: its card lost its carrier.
func (h *Health) Accuse(now time.Duration) {
	if h.cause == nil {
		h.cause = &SilenceError{Symptom: NoCarrier}
		h.accusedAt = now
	}
}

// Urge makes a heartbeat due at the next look, which may come at any time.
func (h *Health) Urge() { h.beatAt -= h.cfg.IdleBeat }

// Assess looks at the lane's vitals.
func (h *Health) Assess(now time.Duration, v Vitals) Assessment {
	lateness := now - h.due
	h.observe(now, v)
	late := lateness > h.cfg.Late && h.lates < maxLates
	if late {
		h.lates++
		h.clock = now
		h.glanced = false
	}
	beat := h.beat(now, v, late)

	if h.cause != nil {
		h.acquit(now, v)
	}
	limit := h.limit(v, h.active)
	deadline, symptom := h.deadline(v, limit)
	next := h.beatAt + h.interval()
	switch {
	case h.cause != nil || symptom == 0:
	case now < deadline:
		next = min(next, deadline)
	case lateness > h.cfg.Glance && !h.glanced:
		h.glanced = true
		next = min(next, now+h.cfg.Glance)
	default:
		h.cause = &SilenceError{Symptom: symptom, For: now - h.silentSince(v, symptom), Limit: limit}
		h.accusedAt = now
		// The fast beat goes on while suspect, so that an answer is noticed soon.
		next = min(next, now+h.cfg.Beat)
	}
	h.due = max(next, now+time.Millisecond)
	a := Assessment{SendBeat: beat, Next: h.due, Limit: limit}
	if h.cause != nil {
		a.Verdict, a.Cause = Unhealthy, h.cause
	}
	return a
}

// observe takes in what has been answered since the last look.
func (h *Health) observe(now time.Duration, v Vitals) {
	// Bytes that were not there at the last look, which may be long ago, are not the ones that hang.
	if v.Acked != h.acked || v.InFlight == 0 || h.inFlight == 0 {
		h.movedAt = now
	}
	h.inFlight = v.InFlight
	if v.Answered > h.answered || v.Acked != h.acked {
		// The answer came between the last look and now, at the latest when the last byte was heard.
		h.answeredAt = max(h.answeredAt, min(v.Heard, now))
		h.lates, h.glanced = 0, false
	}
	h.answered, h.acked = max(h.answered, v.Answered), v.Acked
	if h.asked != 0 && h.answered >= h.asked {
		h.asked = 0
	}
}

// beat decides whether a heartbeat is due, and keeps the account of those that were asked for.
func (h *Health) beat(now time.Duration, v Vitals, late bool) bool {
	if v.Busy || v.InFlight > 0 {
		h.busyAt, h.busy = now, true
	}
	active := h.busy && now-h.busyAt <= h.cfg.Linger
	began := active && !h.active
	if began {
		h.activeFrom = now
	}
	h.active = active
	if !began && !late && now < h.beatAt+h.interval() {
		return false
	}
	h.beatAt = now
	if h.asked == 0 {
		// At time 0 a beat would look like none.
		h.asked = max(now, 1)
	}
	return true
}

// interval is the time between beats now.
func (h *Health) interval() time.Duration {
	if h.active || h.cause != nil {
		return h.cfg.Beat
	}
	return h.cfg.IdleBeat
}

// limit is how long a lane may be silent.
func (h *Health) limit(v Vitals, active bool) time.Duration {
	beat := h.cfg.Beat
	if !active {
		beat = h.cfg.IdleBeat
	}
	if v.RTT <= 0 {
		return min(max(h.cfg.Unmeasured, beat), h.cfg.Ceiling)
	}
	ceiling := h.cfg.Ceiling
	if v.RTT > ceiling || v.Jitter > ceiling {
		return ceiling
	}
	return min(max(4*(v.RTT+4*v.Jitter)+beat, h.cfg.Floor), ceiling)
}

// deadline is when the lane becomes suspect if nothing is answered until then; symptom 0: never, as nothing is asked.
func (h *Health) deadline(v Vitals, limit time.Duration) (time.Duration, Symptom) {
	var at time.Duration
	var symptom Symptom
	soonest := func(t time.Duration, s Symptom) {
		if symptom == 0 || t < at {
			at, symptom = t, s
		}
	}
	if v.OldestPing > 0 {
		since := h.patient(v, h.silentSince(v, NoAnswer), limit)
		if h.active {
			// Pings of an idle lane were sent under the idle limit: the short one counts from when work began.
			soonest(min(max(since, h.activeFrom)+limit, since+h.limit(v, false)), NoAnswer)
		} else {
			soonest(since+limit, NoAnswer)
		}
	}
	if h.asked > 0 {
		soonest(h.patient(v, max(h.silentSince(v, NoRoom), h.activeFrom), limit)+2*limit, NoRoom)
	}
	if v.InFlight > 0 {
		soonest(h.silentSince(v, NoProgress)+time.Duration(h.cfg.Stall)*limit, NoProgress)
	}
	return at, symptom
}

// patient moves the moment that silence counts from to when bytes last came: an answer may wait behind them.
func (h *Health) patient(v Vitals, since, limit time.Duration) time.Duration {
	return max(since, min(v.Heard, since+time.Duration(h.cfg.Stall-1)*limit))
}

// silentSince is the moment that a symptom counts from.
func (h *Health) silentSince(v Vitals, s Symptom) time.Duration {
	switch s {
	case NoRoom:
		return max(h.asked, h.answeredAt, h.clock)
	case NoProgress:
		return max(h.movedAt, h.clock)
	case NoAnswer, NoCarrier:
	}
	return max(v.OldestPing, h.answeredAt, h.clock)
}

// acquit ends a suspicion once the lane has shown what it was missed for. Only something sent since counts where the
// suspicion rests on other grounds than silence.
func (h *Health) acquit(now time.Duration, v Vitals) {
	var cleared bool
	switch h.cause.Symptom {
	case NoCarrier:
		cleared = v.Answered > h.accusedAt
	case NoProgress:
		cleared = h.movedAt > h.accusedAt
	case NoAnswer, NoRoom:
		cleared = h.answeredAt > h.accusedAt
	}
	if cleared {
		h.cause = nil
		h.clock, h.glanced = now, false
	}
}

// rampStart is the share that a rail gets when it comes back.
const rampStart = 0.1

// Ramp is how the weight of a rail in probation grows: from a tenth at From, evenly, to 1 at From+For. The zero Ramp
// is full weight.
type Ramp struct{ From, For time.Duration }

// Weight is the rail's share of its fair part at now, 0.1 to 1.
func (r Ramp) Weight(now time.Duration) float64 {
	gone := now - r.From
	if r.For <= 0 || gone >= r.For {
		return 1
	}
	if gone <= 0 {
		return rampStart
	}
	return rampStart + (1-rampStart)*float64(gone)/float64(r.For)
}
