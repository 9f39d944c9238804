package rail

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/supervision"
	"railyard/wire"
)

// silence makes the rail suspect.
func (y *yard) silence() {
	y.t.Helper()
	y.joiner.change(func(j *fakeJoiner) { j.silent = true })
	y.sleep(250 * ms)
	require.Equal(y.t, Suspect, y.status().State)
}

// hear makes beats be answered again, and that be noticed.
func (y *yard) hear() {
	y.joiner.change(func(j *fakeJoiner) { j.silent = false })
	y.sleep(120 * ms)
}

func TestRailIsSuspectWhileSilentAndTrustedAgain(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		assert.Contains(t, y.status().Reason, "not answered")
		assert.Equal(t, []string{"RailUp", "RailSuspect"}, y.published())
		y.hear()
		assert.Equal(t, Up, y.status().State)
		assert.Equal(t, []string{"RailTrusted"}, y.published())
		assert.Equal(t, []string{"join 1", "attach 1", "suspect 1", "trust 1"}, y.joiner.read())
		assert.Empty(t, y.broke())
	})
}

func TestRailReturnsToProbationWhenTrustedTooSoon(t *testing.T) {
	story(t, func(c *Config) {
		c.Probation = func(supervision.History) time.Duration { return 5 * time.Second }
	}, func(t *testing.T, y *yard) {
		y.up()
		y.sleep(time.Second)
		y.kind.newest().snap(errCable)
		y.sleep(100 * ms)
		require.Equal(t, Probation, y.status().State)
		y.silence()
		y.hear()
		assert.Equal(t, Probation, y.status().State)
		y.sleep(5 * time.Second)
		assert.Equal(t, Up, y.status().State)
	})
}

func TestRailWhoseCarrierWentIsSuspectAtOnce(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.sleep(time.Second)
		y.joiner.change(func(j *fakeJoiner) { j.silent = true })
		y.send(&LinkHint{Up: true})
		assert.Equal(t, Up, y.status().State, "nothing wrong with that")
		y.send(&LinkHint{Up: false})
		assert.Equal(t, Suspect, y.status().State)
		assert.Contains(t, y.status().Reason, "carrier")
		y.joiner.change(func(j *fakeJoiner) { j.silent = false })
		y.send(&LinkHint{Up: true})
		y.sleep(100 * ms)
		assert.Equal(t, Up, y.status().State, "it was only a hint")
	})
}

func TestRailProbeBeatsAtOnce(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.send(&Probe{})
		y.up()
		y.sleep(time.Second + 10*ms)
		before := y.joiner.lives[1].beats
		y.send(&Probe{})
		assert.Equal(t, before+1, y.joiner.lives[1].beats)
	})
}

func TestRailKeepsTheSilentSocketWhileOneCandidateDials(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		old := y.kind.newest()
		y.silence()
		y.kind.set(swallowed)
		y.send(&DialBeside{})
		y.send(&DialBeside{})
		assert.Equal(t, 2, y.kind.count(), "one candidate at a time")
		assert.False(t, old.gone())
		assert.Equal(t, Suspect, y.status().State)
	})
}

func TestRailCandidateReplacesAndItsPredecessorFails(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.sleep(time.Second)
		old := y.kind.newest()
		y.silence()
		y.published()
		y.send(&DialBeside{})
		y.sleep(ms)
		assert.True(t, old.gone())
		assert.Equal(t, uint64(3), y.status().Generation)
		require.Len(t, y.broke(), 1)
		require.ErrorIs(t, y.broke()[0].Failure, ErrSuperseded)
		assert.Equal(t, supervision.Reroute, y.broke()[0].Directive.Action)
		assert.Equal(t, []string{"RailDown", "RailRejoined"}, y.published())
		// The session's own Retire for the old one comes late.
		y.send(&Retire{Generation: 1, Cause: errCable})
		assert.Equal(t, []string{"join 1", "attach 1", "suspect 1", "join 3", "attach 3", "lost 1"},
			y.joiner.read())
		assert.Len(t, y.broke(), 1)
	})
}

func TestRailRetiredWhileItsCandidateDialsWaitsForTheCandidate(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		y.joiner.change(func(j *fakeJoiner) {
			j.join = func(context.Context, wire.Generation, Conn) (Link, error) {
				time.Sleep(500 * ms)
				return fakeLink{}, nil
			}
		})
		y.send(&DialBeside{})
		y.send(&Retire{Generation: 1, Cause: errCable})
		assert.Equal(t, Down, y.status().State)
		y.sleep(400 * ms)
		assert.Equal(t, 2, y.kind.count(), "nobody else dials")
		y.sleep(200 * ms)
		assert.Equal(t, uint64(3), y.status().Generation)
		assert.Len(t, y.broke(), 1)
	})
}

func TestRailCandidateThatIsNotNeededGoesQuietly(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		y.joiner.change(func(j *fakeJoiner) {
			j.join = func(context.Context, wire.Generation, Conn) (Link, error) { return nil, ErrNotNeeded }
		})
		y.send(&DialBeside{})
		y.hear()
		assert.Equal(t, Up, y.status().State)
		assert.True(t, y.kind.newest().gone())
		assert.Empty(t, y.supervised())
		// Another one can be tried later.
		y.silence()
		y.send(&DialBeside{})
		assert.Equal(t, 3, y.kind.count())
	})
}

func TestRailDropsTheCandidateWhenTheSilentOneAnswers(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		y.kind.set(swallowed)
		y.send(&DialBeside{})
		y.hear()
		assert.Equal(t, Up, y.status().State)
		y.sleep(10 * time.Second)
		assert.Empty(t, y.supervised(), "a dropped dial is no failure")
		assert.Equal(t, 2, y.kind.count())
	})
}

func TestRailCandidateThatFailsIsTriedAgainWhileTheSilenceLasts(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: 100 * ms}), func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		y.kind.set(refused)
		y.send(&DialBeside{})
		y.sleep(450 * ms)
		assert.Equal(t, 1+5, y.kind.count())
		assert.Equal(t, Suspect, y.status().State)
		y.hear()
		y.sleep(time.Second)
		assert.LessOrEqual(t, y.kind.count(), 8, "and no longer")
		assert.Equal(t, Up, y.status().State)
		assert.NotContains(t, y.published(), "RailDown")
	})
}

func TestRailCandidateFailuresLeaveTheRailsOwnRecordAlone(t *testing.T) {
	var seen []supervision.History
	policy := supervision.PolicyFunc(func(h supervision.History, _ supervision.Failure,
		_ time.Duration) supervision.Directive {
		seen = append(seen, h)
		return supervision.Directive{Delay: 50 * ms}
	})
	story(t, func(c *Config) { c.Policy = policy }, func(t *testing.T, y *yard) {
		y.up()
		y.sleep(2 * time.Second)
		y.silence()
		y.kind.set(refused)
		y.send(&DialBeside{})
		y.sleep(170 * ms)
		require.Len(t, seen, 4)
		assert.Equal(t, 4, seen[3].Failures)
		y.hear()
		y.kind.newest().snap(errCable)
		y.sleep(ms)
		h := seen[len(seen)-1]
		assert.True(t, h.Healthy)
		assert.Equal(t, 1, h.Failures)
		assert.Greater(t, h.Lived, 2*time.Second)
	})
}

func TestRailAskedForACandidateTooSoonTriesOnce(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: 50 * ms}), func(t *testing.T, y *yard) {
		y.up()
		y.kind.set(refused)
		y.send(&DialBeside{})
		y.sleep(time.Second)
		assert.Equal(t, 2, y.kind.count(), "nothing suspect about the connection")
		assert.Equal(t, Up, y.status().State)
	})
}

func TestRailCandidateWithoutSuccessDoesNotEndTheRail(t *testing.T) {
	story(t, fixed(supervision.Directive{Action: supervision.Stop}), func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		y.kind.set(refused)
		y.send(&DialBeside{})
		assert.Equal(t, []string{"Joined", "Broke"}, y.heard())
		y.hear()
		assert.Equal(t, Up, y.status().State)
	})
}

func TestRailWithoutAConnectionTakesDialBesideForConnect(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: time.Minute}), func(t *testing.T, y *yard) {
		y.kind.set(refused)
		y.send(&DialBeside{})
		assert.Equal(t, 1, y.kind.count())
		y.send(&DialBeside{})
		assert.Equal(t, 2, y.kind.count(), "without waiting")
	})
}

func TestRailNewerAcceptedReplacesACandidateNotYetUp(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.silence()
		y.kind.set(swallowed)
		y.send(&DialBeside{})
		y.joiner.change(func(j *fakeJoiner) { j.of(10).joined, j.silent = true, false })
		y.send(&Accepted{Generation: 10, Conn: y.kind.connect(), Link: fakeLink{}})
		assert.Equal(t, uint64(10), y.status().Generation)
		assert.Len(t, y.broke(), 2)
		y.sleep(5 * time.Second)
		assert.Equal(t, 2, y.kind.count())
	})
}
