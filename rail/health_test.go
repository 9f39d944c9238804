package rail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

// lab is one lane as its health machine sees it: beats go out when asked for, and come back a round trip later. Time
// goes from look to look.
type lab struct {
	health *Health
	now    time.Duration
	// due is the next look. delay makes a look late by what it returns.
	due   time.Duration
	delay func(due time.Duration) time.Duration
	// trip is the round trip of the ping sent at a time; measured is what the session tells of it.
	trip             func(sent time.Duration) time.Duration
	measured, jitter time.Duration
	// cut: nothing that would come back after it does, until heal. 0: never.
	cut, heal time.Duration
	// blocked: beats are asked for, but the socket takes none.
	blocked  bool
	busy     bool
	inFlight uint64
	acked    uint64
	// pings are those not answered, oldest first; answered and heard what came back.
	pings           []time.Duration
	answered, heard time.Duration

	beats    []time.Duration
	suspects []time.Duration
	trusts   []time.Duration
	last     Assessment
}

func newLab(measured time.Duration) *lab {
	l := &lab{now: time.Second, measured: measured}
	l.trip = func(time.Duration) time.Duration { return l.measured }
	l.delay = func(time.Duration) time.Duration { return 0 }
	l.health = NewHealth(HealthConfig{}, l.now)
	l.due = l.now
	l.heard, l.answered = l.now, l.now
	return l
}

// arrive takes in the answers that have come by now.
func (l *lab) arrive() {
	var open []time.Duration
	for _, sent := range l.pings {
		back := sent + l.trip(sent)
		lost := l.cut > 0 && back > l.cut && (l.heal == 0 || sent < l.heal)
		if lost && l.heal > 0 && l.now >= l.heal {
			// The kernel sends it again after the heal.
			back, lost = l.heal+l.trip(sent), false
		}
		if lost || back > l.now {
			open = append(open, sent)
			continue
		}
		l.answered, l.heard = max(l.answered, sent), max(l.heard, back)
	}
	l.pings = open
}

func (l *lab) vitals() Vitals {
	v := Vitals{Heard: l.heard, Answered: l.answered, RTT: l.measured, Jitter: l.jitter, Busy: l.busy,
		Acked: l.acked, InFlight: l.inFlight}
	if len(l.pings) > 0 {
		v.OldestPing = l.pings[0]
	}
	return v
}

// look makes the next look, with its delay.
func (l *lab) look() {
	l.now = l.due + l.delay(l.due)
	l.arrive()
	was := l.last.Verdict
	l.last = l.health.Assess(l.now, l.vitals())
	l.due = l.last.Next
	if l.last.SendBeat {
		l.beats = append(l.beats, l.now)
		if !l.blocked {
			l.pings = append(l.pings, l.now)
		}
	}
	if was != l.last.Verdict {
		if l.last.Verdict == Unhealthy {
			l.suspects = append(l.suspects, l.now)
		} else {
			l.trusts = append(l.trusts, l.now)
		}
	}
}

// until looks until t.
func (l *lab) until(t time.Duration) {
	for l.due <= t {
		l.look()
	}
	l.now = max(l.now, t)
}

func (l *lab) symptom(t *testing.T) Symptom {
	t.Helper()
	var silence *SilenceError
	require.ErrorAs(t, l.last.Cause, &silence)
	require.NotEmpty(t, silence.Error())
	return silence.Symptom
}

func TestHealthBeatsFastWhileWorkIsOpenAndSlowlyWhenIdle(t *testing.T) {
	l := newLab(ms)
	l.until(5 * time.Second)
	assert.InDelta(t, 5, len(l.beats), 1, "an idle rail beats once a second")

	l.beats, l.busy = nil, true
	l.until(l.due)
	began := l.now
	require.Len(t, l.beats, 1)
	l.until(began + time.Second)
	assert.InDelta(t, 21, len(l.beats), 1, "a busy one every 50 ms")

	l.beats, l.busy = nil, false
	stopped := l.now
	l.until(stopped + 2*time.Second)
	assert.InDelta(t, 40, len(l.beats), 2, "and for 2 s after")
	l.beats = nil
	l.until(stopped + 6*time.Second)
	assert.InDelta(t, 4, len(l.beats), 1, "then slowly again")
	assert.Empty(t, l.suspects)
}

func TestHealthBeatsAtOnceWhenWorkBegins(t *testing.T) {
	l := newLab(ms)
	l.until(3 * time.Second)
	l.busy = true
	// The session's probe looks ahead of time.
	l.due = l.now + 7*ms
	l.look()
	assert.True(t, l.last.SendBeat)
	assert.LessOrEqual(t, l.last.Next-l.now, 50*ms)

	l = newLab(ms)
	l.until(3 * time.Second)
	l.health.Urge()
	l.due = l.now + 7*ms
	l.look()
	assert.True(t, l.last.SendBeat, "urged")
}

func TestHealthLimitFollowsRoundTripAndJitter(t *testing.T) {
	for _, c := range []struct {
		name        string
		rtt, jitter time.Duration
		busy        bool
		want        time.Duration
	}{
		{"unmeasured", 0, 0, true, 500 * ms},
		{"unmeasured idle", 0, 0, false, time.Second},
		{"loopback", 50 * time.Microsecond, 0, true, 120 * ms},
		{"wide area", 30 * ms, 2 * ms, true, 4*(30+8)*ms + 50*ms},
		{"satellite", 600 * ms, 100 * ms, true, 2 * time.Second},
		{"absurd", time.Hour * 1e6, time.Hour * 1e6, true, 2 * time.Second},
		{"idle", ms, 0, false, time.Second + 4*ms},
		{"idle satellite", 600 * ms, 0, false, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := NewHealth(HealthConfig{}, time.Second)
			a := h.Assess(time.Second, Vitals{RTT: c.rtt, Jitter: c.jitter, Busy: c.busy})
			assert.Equal(t, c.want, a.Limit)
		})
	}
}

func TestHealthSuspectsACutRailAndTrustsItAgain(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.cut = 3*time.Second + 13*ms
	l.until(l.cut + time.Second)
	require.Len(t, l.suspects, 1)
	assert.LessOrEqual(t, l.suspects[0]-l.cut, 50*ms+120*ms+5*ms, "one beat, one limit")
	assert.Equal(t, NoAnswer, l.symptom(t))

	l.heal = l.cut + time.Second
	l.until(l.heal + time.Second)
	require.Len(t, l.trusts, 1)
	assert.LessOrEqual(t, l.trusts[0]-l.heal, 60*ms)
	assert.Len(t, l.suspects, 1, "and stays healthy")
}

func TestHealthGivesAnIdleRailTheTimeOfItsBeat(t *testing.T) {
	l := newLab(ms)
	l.cut = 10*time.Second + 500*ms
	l.until(l.cut + 5*time.Second)
	require.Len(t, l.suspects, 1)
	assert.Greater(t, l.suspects[0]-l.cut, 900*ms)
	assert.LessOrEqual(t, l.suspects[0]-l.cut, time.Second+time.Second+10*ms)
	l.heal = l.now
	l.until(l.heal + 60*ms)
	assert.Len(t, l.trusts, 1, "a suspect rail beats fast, so that its answer is noticed soon")
}

func TestHealthDoesNotHoldAnIdlePingAgainstTheBusyLimit(t *testing.T) {
	// The idle ping of t=4s is answered late but within the idle limit; work begins meanwhile.
	l := newLab(ms)
	l.trip = func(sent time.Duration) time.Duration {
		if sent >= 3900*ms && sent < 4300*ms {
			return 400 * ms
		}
		return ms
	}
	l.until(4300 * ms)
	l.busy = true
	l.due = 4300 * ms
	l.until(4390 * ms)
	assert.Empty(t, l.suspects)
	l.until(8 * time.Second)
	assert.Empty(t, l.suspects)
}

func TestHealthCountsNoProgressAsSilenceThoughBeatsPass(t *testing.T) {
	l := newLab(ms)
	l.busy, l.inFlight = true, 1<<20
	l.until(2 * time.Second)
	// So far nothing was acknowledged since t=1s.
	require.Len(t, l.suspects, 1)
	assert.Equal(t, NoProgress, l.symptom(t))
	assert.InDelta(t, 4*120, float64((l.suspects[0]-time.Second)/ms), 60)
	assert.Empty(t, l.trusts, "beats alone do not clear it")

	l.acked++
	l.until(l.now + 100*ms)
	assert.Len(t, l.trusts, 1, "an acknowledgement does")
}

func TestHealthStaysCalmWhileASlowRailMoves(t *testing.T) {
	l := newLab(ms)
	l.busy, l.inFlight = true, 1<<20
	for range 50 {
		l.until(l.now + 400*ms)
		l.acked++
	}
	assert.Empty(t, l.suspects)
}

func TestHealthDoesNotHoldBytesJustSentAgainstTheTimeWhenNoneWere(t *testing.T) {
	l := newLab(ms)
	l.until(1900 * ms) // idle: the next look is far away
	idle := l.due
	l.inFlight, l.busy = 1000, true
	l.until(idle + 4*120*ms - 60*ms)
	assert.Empty(t, l.suspects, "the bytes are younger than the look before the last one")
	l.until(idle + 4*120*ms + 60*ms)
	require.Len(t, l.suspects, 1)
	assert.Equal(t, NoProgress, l.symptom(t))
}

func TestHealthBearsWithAnswersThatWaitBehindWhatComes(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.until(3 * time.Second)
	l.cut = 3 * time.Second // of the answers alone
	for l.now < 3300*ms {
		l.heard = l.now
		l.until(l.now + 5*ms)
	}
	assert.Empty(t, l.suspects)
	quiet := l.heard
	l.until(4 * time.Second)
	require.Len(t, l.suspects, 1)
	assert.Equal(t, NoAnswer, l.symptom(t))
	assert.InDelta(t, 120, float64((l.suspects[0]-quiet)/ms), 15)
}

func TestHealthDoesNotBearWithThemForEver(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.until(3 * time.Second)
	l.cut = 3 * time.Second
	for l.now < 5*time.Second {
		l.heard = l.now
		l.until(l.now + 5*ms)
	}
	require.Len(t, l.suspects, 1)
	assert.InDelta(t, 4*120, float64((l.suspects[0]-3*time.Second)/ms), 60)
}

func TestHealthSeesThatBeatsCannotEvenBeSent(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.until(3 * time.Second)
	l.blocked = true
	l.until(4 * time.Second)
	require.Len(t, l.suspects, 1)
	assert.Equal(t, NoRoom, l.symptom(t))
	assert.LessOrEqual(t, l.suspects[0]-3*time.Second, 50*ms+2*120*ms+10*ms)
}

func TestHealthBlamesNobodyWhenTheNodeItselfWasStopped(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.until(3 * time.Second)
	// Stopped for a minute. The answers to the last pings lie in the socket and are read only after this look.
	l.cut, l.heal = l.now, l.now+time.Minute+100*ms
	l.delay = func(due time.Duration) time.Duration {
		if due < l.cut+ms*60 {
			return l.cut + time.Minute - due
		}
		return 0
	}
	l.look()
	assert.Equal(t, l.cut+time.Minute, l.now)
	assert.Equal(t, Healthy, l.last.Verdict)
	assert.True(t, l.last.SendBeat, "it asks again instead")
	l.until(l.now + time.Second)
	assert.Empty(t, l.suspects)
}

func TestHealthFindsADeadRailEvenWhenEveryLookIsLate(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.until(3 * time.Second)
	l.cut = l.now
	l.delay = func(time.Duration) time.Duration { return 80 * ms }
	l.until(l.cut + 3*time.Second)
	assert.NotEmpty(t, l.suspects)
}

func TestHealthLooksTwiceWhenALittleLate(t *testing.T) {
	l := newLab(ms)
	l.busy = true
	l.until(3 * time.Second)
	l.cut = l.now
	l.delay = func(time.Duration) time.Duration { return 20 * ms }
	l.until(l.cut + time.Second)
	require.Len(t, l.suspects, 1)
	assert.Greater(t, l.suspects[0]-l.cut, 150*ms)
	assert.LessOrEqual(t, l.suspects[0]-l.cut, 50*ms+120*ms+4*30*ms)
}

func TestHealthAccusedByItsCardNeedsAnAnswerSentSince(t *testing.T) {
	l := newLab(40 * ms)
	l.busy = true
	l.until(3 * time.Second)
	l.pings = append(l.pings, l.now)
	l.now += ms
	l.health.Accuse(l.now)
	l.due = l.now
	l.look()
	require.Equal(t, Unhealthy, l.last.Verdict)
	assert.Equal(t, NoCarrier, l.symptom(t))
	accused := l.now
	l.trip = func(sent time.Duration) time.Duration {
		if sent < accused || sent > accused+200*ms {
			return 40 * ms
		}
		return time.Hour
	}
	l.until(accused + 200*ms)
	assert.Greater(t, l.heard, accused)
	assert.Empty(t, l.trusts, "an answer to an older ping proves nothing")
	l.until(accused + 400*ms)
	assert.Len(t, l.trusts, 1)
}

func TestHealthNeverSuspectsAPeerThatAnswersWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLab(time.Duration(rapid.IntRange(10, 150_000).Draw(t, "rtt µs")) * time.Microsecond)
		l.jitter = time.Duration(rapid.IntRange(0, 20_000).Draw(t, "jitter µs")) * time.Microsecond
		bound := l.measured + 4*l.jitter
		seed := rapid.Uint64().Draw(t, "seed")
		l.trip = func(sent time.Duration) time.Duration {
			return time.Duration((seed ^ uint64(sent)*0x9e3779b97f4a7c15) >> 1 % uint64(bound+1))
		}
		late := rapid.SliceOfN(rapid.IntRange(0, 40), 7, 7).Draw(t, "late ms")
		l.delay = func(due time.Duration) time.Duration { return time.Duration(late[due/ms%7]) * ms }
		for range rapid.IntRange(1, 12).Draw(t, "phases") {
			l.busy = rapid.Bool().Draw(t, "busy")
			l.until(l.now + time.Duration(rapid.IntRange(1, 3000).Draw(t, "phase ms"))*ms)
		}
		if len(l.suspects) > 0 {
			t.Fatalf("suspected at %v: %v", l.suspects, l.last.Cause)
		}
	})
}

func TestHealthAlwaysSuspectsWithinItsLimitWhenAllIsSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLab(time.Duration(rapid.IntRange(10, 600_000).Draw(t, "rtt µs")) * time.Microsecond)
		l.jitter = time.Duration(rapid.IntRange(0, 50_000).Draw(t, "jitter µs")) * time.Microsecond
		l.busy = true
		l.cut = 2*time.Second + time.Duration(rapid.IntRange(0, 2000).Draw(t, "cut ms"))*ms
		l.until(l.cut)
		limit := l.last.Limit
		bound := max(50*ms, l.measured) + limit + 2*ms
		l.until(l.cut + bound + 100*ms)
		if len(l.suspects) == 0 || l.suspects[0] > l.cut+bound {
			t.Fatalf("cut at %v, limit %v, suspects %v", l.cut, limit, l.suspects)
		}
	})
}

func TestHealthLateLookNeverSuspects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHealth(HealthConfig{}, time.Second)
		due := time.Second
		v := Vitals{RTT: ms, Answered: time.Second, Heard: time.Second}
		verdict, lates := Healthy, 0
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			delay := time.Duration(rapid.IntRange(0, 300).Draw(t, "delay ms")) * ms
			now := due + delay
			v.Busy = rapid.Bool().Draw(t, "busy")
			if rapid.Bool().Draw(t, "ping") {
				v.OldestPing = now
			}
			if rapid.Bool().Draw(t, "answer") {
				v.Answered, v.Heard, v.OldestPing = now, now, 0
				lates = 0
			}
			v.InFlight = uint64(rapid.IntRange(0, 1).Draw(t, "in flight"))
			a := h.Assess(now, v)
			if a.Next <= now {
				t.Fatalf("next look at %v is not after %v", a.Next, now)
			}
			if delay > 50*ms {
				if a.Verdict == Unhealthy && verdict == Healthy && lates < maxLates {
					t.Fatalf("a look %v late suspected: %v", delay, a.Cause)
				}
				lates++
			}
			verdict, due = a.Verdict, a.Next
		}
	})
}

func TestHealthLooksWithoutAllocating(t *testing.T) {
	h := NewHealth(HealthConfig{}, time.Second)
	now := time.Second
	v := Vitals{RTT: ms, Busy: true}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		now += 50 * ms
		v.Heard, v.Answered, v.OldestPing = now, now, 0
		h.Assess(now, v)
	}))
}

func TestHealthSettingsAreRefusedByName(t *testing.T) {
	require.NoError(t, HealthConfig{}.Validate())
	seen := map[string]bool{}
	for _, c := range []HealthConfig{
		{Beat: time.Microsecond}, {IdleBeat: ms}, {Floor: 20 * ms}, {Ceiling: 60 * ms},
		{Unmeasured: time.Minute}, {Linger: -1}, {Late: ms}, {Stall: -1},
	} {
		err := c.Validate()
		require.ErrorIs(t, err, ErrHealth, "%+v", c)
		require.False(t, seen[err.Error()], "two settings share %q", err)
		seen[err.Error()] = true
	}
}

func TestRampGrowsFromATenthToOne(t *testing.T) {
	assert.InDelta(t, 1, Ramp{}.Weight(0), 0)
	r := Ramp{From: time.Second, For: time.Second}
	assert.InDelta(t, 0.1, r.Weight(0), 1e-9)
	assert.InDelta(t, 0.1, r.Weight(time.Second), 1e-9)
	assert.InDelta(t, 0.55, r.Weight(1500*ms), 1e-9)
	assert.InDelta(t, 1, r.Weight(2*time.Second), 0)
	assert.InDelta(t, 1, r.Weight(time.Hour), 0)
}
