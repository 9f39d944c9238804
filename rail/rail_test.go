package rail

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/supervision"
	"railyard/wire"
)

func TestRailDialsAndComesUp(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		assert.Equal(t, Connecting, y.status().State)
		assert.Zero(t, y.kind.count(), "nothing before Connect")
		y.up()
		assert.Equal(t, []string{"join 1", "attach 1"}, y.joiner.read())
		assert.Equal(t, []string{"RailUp"}, y.published())
		assert.Equal(t, []string{"Joined"}, y.heard())
		s := y.status()
		assert.Equal(t, uint64(1), s.Generation)
		assert.InDelta(t, 1, s.Weight, 0)
		y.send(&Connect{})
		assert.Equal(t, 1, y.kind.count(), "it is connected")
		y.sleep(time.Second)
		assert.InDelta(t, 20, y.joiner.lives[1].beats, 2)
		assert.Empty(t, y.supervised())
	})
}

func TestRailComesBackAfterALoss(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.joiner.change(func(j *fakeJoiner) { j.inFlight = 4096 })
		y.sleep(time.Second)
		y.published()
		y.kind.set(func(ctx context.Context) (Conn, error) {
			time.Sleep(30 * ms)
			return y.kind.connect(), nil
		})
		y.kind.newest().snap(errCable)
		y.sleep(10 * ms)
		s := y.status()
		assert.Equal(t, Down, s.State)
		assert.Contains(t, s.Reason, "cable cut")
		assert.Contains(t, s.Reason, "10.0.0.1:0 to 10.0.0.2:7400")
		down := <-y.events
		assert.Equal(t, RailDown, down.Kind)
		assert.Equal(t, wire.Generation(1), down.Generation)
		assert.Equal(t, uint64(4096), down.InFlight)
		assert.Equal(t, supervision.Transient, down.Class)
		require.ErrorIs(t, down.Cause, errCable)
		assert.Equal(t, "10.0.0.2:7400", down.Remote)

		y.sleep(30 * ms)
		assert.Equal(t, Probation, y.status().State)
		assert.Less(t, y.status().Weight, 0.5)
		back := <-y.events
		assert.Equal(t, RailRejoined, back.Kind)
		assert.Equal(t, wire.Generation(3), back.Generation)
		assert.InDelta(t, 30, back.Outage.Milliseconds(), 2)
		y.sleep(300 * ms)
		assert.Equal(t, Up, y.status().State)
		assert.InDelta(t, 1, y.status().Weight, 0)
		assert.Equal(t, []string{"RailUp"}, y.published())
		assert.Equal(t, []string{"Joined", "Broke", "Joined"}, y.heard())
		assert.Equal(t, []string{"join 1", "attach 1", "lost 1", "join 3", "attach 3"}, y.joiner.read())
		require.Len(t, y.supervised(), 1)
	})
}

// fixed answers every failure with one directive.
func fixed(d supervision.Directive) func(*Config) {
	return func(c *Config) {
		c.Policy = supervision.PolicyFunc(func(supervision.History, supervision.Failure,
			time.Duration) supervision.Directive {
			return d
		})
	}
}

func TestRailTriesOnAtThePolicysPace(t *testing.T) {
	var histories []supervision.History
	policy := supervision.PolicyFunc(func(h supervision.History, _ supervision.Failure,
		_ time.Duration) supervision.Directive {
		histories = append(histories, h)
		return supervision.Directive{Delay: time.Duration(h.Failures) * 100 * ms}
	})
	story(t, func(c *Config) { c.Policy = policy }, func(t *testing.T, y *yard) {
		y.kind.set(refused)
		y.send(&Connect{})
		y.sleep(1050 * ms)
		// 0, 100, 300, 600, 1000.
		require.Equal(t, 5, y.kind.count())
		assert.InDelta(t, 400, y.kind.dials[4].Sub(y.kind.dials[3]).Milliseconds(), 1)
		assert.Equal(t, Connecting, y.status().State)
		assert.Empty(t, y.published(), "a rail that was never up does not go down")
		require.Len(t, y.broke(), 5)
		for i, b := range y.broke() {
			assert.Equal(t, wire.Generation(2*i+1), b.Generation)
			assert.False(t, b.Carried)
			assert.Zero(t, b.Failure.Generation)
			assert.Equal(t, i+1, histories[i].Failures)
		}
		y.send(&Connect{})
		assert.Equal(t, 6, y.kind.count(), "Connect does not wait")
		y.kind.set(nil)
		y.sleep(700 * ms)
		assert.Equal(t, Up, y.status().State)
	})
}

func TestRailDoesNotSpinOverAPolicyThatNeverWaits(t *testing.T) {
	story(t, fixed(supervision.Directive{}), func(t *testing.T, y *yard) {
		y.kind.set(refused)
		y.send(&Connect{})
		y.sleep(100 * ms)
		assert.InDelta(t, 100, y.kind.count(), 3)
	})
}

func TestRailGivesUpWhenThePolicyStopsIt(t *testing.T) {
	story(t, fixed(supervision.Directive{Action: supervision.Stop}), func(t *testing.T, y *yard) {
		y.up()
		y.published()
		y.kind.newest().snap(errCable)
		y.sleep(ms)
		assert.Equal(t, []string{"RailDown", "RailGaveUp"}, y.published())
		assert.Equal(t, []string{"Joined", "Broke", "GaveUp"}, y.heard())
		for _, m := range []any{&Connect{}, &LinkHint{Up: true}, &DialBeside{}, &Probe{}, &Reachable{Yes: true}} {
			y.send(m)
		}
		y.joiner.change(func(j *fakeJoiner) { j.of(9).joined = true })
		conn := y.kind.connect()
		y.send(&Accepted{Generation: 9, Conn: conn, Link: fakeLink{}})
		y.sleep(10 * time.Second)
		assert.Equal(t, 1, y.kind.count())
		assert.Equal(t, Down, y.status().State)
		assert.True(t, conn.gone())
	})
}

func TestRailThatIsOnlyReroutedWaitsForAHint(t *testing.T) {
	for name, m := range map[string]any{"hint": &LinkHint{Up: true}, "retry": &Connect{}} {
		t.Run(name, func(t *testing.T) {
			story(t, fixed(supervision.Directive{Action: supervision.Reroute}), func(t *testing.T, y *yard) {
				y.up()
				y.kind.newest().snap(errCable)
				y.sleep(time.Minute)
				y.send(&Reachable{Yes: true})
				y.send(&LinkHint{Up: false})
				assert.Equal(t, 1, y.kind.count())
				y.send(m)
				assert.Equal(t, 2, y.kind.count())
				assert.Equal(t, Probation, y.status().State)
			})
		})
	}
}

func TestRailEscalates(t *testing.T) {
	story(t, fixed(supervision.Directive{Action: supervision.Escalate}), func(t *testing.T, y *yard) {
		y.up()
		y.kind.newest().snap(supervision.ErrGoodbye)
		y.sleep(time.Minute)
		assert.Equal(t, []string{"Joined", "Broke", "Escalated"}, y.heard())
		assert.Equal(t, supervision.Peer, y.broke()[0].Failure.Class)
		assert.Equal(t, 1, y.kind.count())
	})
}

func TestRailTakesAnUnknownActionForStop(t *testing.T) {
	story(t, fixed(supervision.Directive{Action: 99}), func(t *testing.T, y *yard) {
		y.up()
		y.kind.newest().snap(errCable)
		y.sleep(time.Minute)
		assert.Equal(t, []string{"Joined", "Broke", "GaveUp"}, y.heard())
	})
}

func TestRailRetiresOnlyTheGenerationThatWasMeant(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.sleep(time.Second)
		y.send(&Retire{Generation: 1, Cause: &SilenceError{Symptom: NoAnswer, For: time.Second, Limit: 120 * ms}})
		y.sleep(ms)
		require.Len(t, y.broke(), 1)
		assert.Equal(t, supervision.Path, y.broke()[0].Failure.Class)
		assert.True(t, y.broke()[0].Carried)
		assert.Equal(t, Probation, y.status().State)
		for _, old := range []wire.Generation{0, 1, 2, 5} {
			y.send(&Retire{Generation: old, Cause: errCable})
		}
		y.sleep(ms)
		assert.Len(t, y.broke(), 1)
		assert.Equal(t, uint64(3), y.status().Generation)
	})
}

func TestRailFailsWhenTheSessionForgotItsGeneration(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.up()
		y.joiner.change(func(j *fakeJoiner) { j.unknown = true })
		y.sleep(100 * ms)
		assert.Empty(t, y.broke(), "the session's own Retire knows better why")
		y.sleep(100 * ms)
		y.joiner.change(func(j *fakeJoiner) { j.unknown = false })
		y.sleep(100 * ms)
		require.Len(t, y.broke(), 1)
		assert.ErrorIs(t, y.broke()[0].Failure, errOver)
	})
}

func TestRailThatOnlyAcceptsWaitsForThePeer(t *testing.T) {
	accepts := func(c *Config) { c.Dials = false }
	story(t, accepts, func(t *testing.T, y *yard) {
		y.send(&Connect{})
		y.send(&LinkHint{Up: true})
		assert.Zero(t, y.kind.count())
		accept := func(g wire.Generation) *fakeConn {
			y.joiner.change(func(j *fakeJoiner) { j.of(g).joined = true })
			conn := y.kind.connect()
			y.send(&Accepted{Generation: g, Conn: conn, Link: fakeLink{}})
			return conn
		}
		first := accept(1)
		assert.Equal(t, Up, y.status().State)
		first.snap(errCable)
		y.sleep(time.Second)
		assert.Equal(t, Down, y.status().State)
		require.Len(t, y.broke(), 1)
		assert.Equal(t, supervision.Reroute, y.broke()[0].Directive.Action, "it cannot restart what the peer dials")

		second := accept(3)
		assert.Equal(t, Probation, y.status().State)
		assert.Equal(t, []string{"RailUp", "RailDown", "RailRejoined"}, y.published())

		// The peer lost it and dials anew before this side has noticed.
		accept(5)
		assert.True(t, second.gone())
		assert.Equal(t, uint64(5), y.status().Generation)
		assert.Equal(t, []string{"RailDown", "RailRejoined"}, y.published())
		require.Len(t, y.broke(), 2)
		require.ErrorIs(t, y.broke()[1].Failure, ErrSuperseded)

		stale := accept(4)
		assert.True(t, stale.gone())
		assert.Equal(t, uint64(5), y.status().Generation)
		assert.Zero(t, y.kind.count())
	})
}

func TestRailSaysOnceThatItNeverCameUp(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.kind.set(refused)
		y.send(&Connect{})
		y.sleep(4 * time.Second)
		assert.Empty(t, y.published())
		y.sleep(20 * time.Second)
		assert.Equal(t, []string{"RailNeverUp"}, y.published())
		assert.Contains(t, y.status().Reason, "refused")
		y.kind.set(nil)
		y.sleep(10 * time.Second)
		assert.Equal(t, []string{"RailUp"}, y.published(), "and is not forgotten")
	})
	story(t, func(c *Config) { c.Dials = false }, func(t *testing.T, y *yard) {
		y.sleep(6 * time.Second)
		e := <-y.events
		assert.Equal(t, RailNeverUp, e.Kind)
		require.ErrorIs(t, e.Cause, errNobodyDialed)
	})
}

func TestRailTriesSoonerWhenThePeerIsReachableElsewhere(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: 5 * time.Second}), func(t *testing.T, y *yard) {
		y.kind.set(refused)
		y.send(&Connect{})
		y.sleep(100 * ms)
		y.send(&Reachable{Yes: true})
		y.sleep(900 * ms)
		assert.Equal(t, 1, y.kind.count())
		y.sleep(101 * ms)
		assert.Equal(t, 2, y.kind.count())
	})
}

func TestRailDialsAtOnceWhenItsLinkComesUp(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: time.Minute}), func(t *testing.T, y *yard) {
		y.kind.set(swallowed)
		y.send(&Connect{})
		y.sleep(500 * ms)
		y.kind.set(nil)
		y.send(&LinkHint{Up: true})
		assert.Equal(t, Up, y.status().State, "the dial in progress was sent into the void: a new one")
		assert.Empty(t, y.broke(), "nobody failed")
		assert.Equal(t, uint64(3), y.status().Generation)

		y.kind.set(swallowed)
		y.kind.newest().snap(errCable)
		y.sleep(5 * time.Second)
		assert.Equal(t, 3-1, y.kind.count(), "waiting for a minute")
		y.kind.set(nil)
		y.send(&LinkHint{Up: true})
		assert.Equal(t, Probation, y.status().State)
	})
}

func TestRailDialThatTimesOutIsThePathsFault(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: time.Minute}), func(t *testing.T, y *yard) {
		y.kind.set(swallowed)
		y.send(&Connect{})
		y.sleep(999 * ms)
		assert.Empty(t, y.broke())
		y.sleep(2 * ms)
		require.Len(t, y.broke(), 1)
		assert.Equal(t, supervision.Path, y.broke()[0].Failure.Class)
	})
}

func TestRailHandshakeEndsInTime(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: time.Minute}), func(t *testing.T, y *yard) {
		y.joiner.change(func(j *fakeJoiner) {
			j.join = func(_ context.Context, _ wire.Generation, conn Conn) (Link, error) {
				// A peer that says nothing, and a handshake that does not look at its context.
				_, err := conn.Read(nil)
				return nil, err
			}
		})
		y.send(&Connect{})
		y.sleep(1999 * ms)
		assert.Empty(t, y.broke())
		y.sleep(2 * ms)
		require.Len(t, y.broke(), 1)
		assert.Equal(t, supervision.Path, y.broke()[0].Failure.Class)
		require.ErrorIs(t, y.broke()[0].Failure, context.DeadlineExceeded)
		assert.True(t, y.kind.newest().gone())
	})
}

func TestRailHandshakeThatEndsTooLateIsLostAgain(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: time.Minute}), func(t *testing.T, y *yard) {
		y.joiner.change(func(j *fakeJoiner) {
			j.join = func(context.Context, wire.Generation, Conn) (Link, error) {
				time.Sleep(3 * time.Second)
				return fakeLink{}, nil
			}
		})
		y.send(&Connect{})
		y.sleep(4 * time.Second)
		require.Len(t, y.broke(), 1)
		assert.Equal(t, []string{"join 1", "lost 1"}, y.joiner.read())
	})
}

func TestRailStoppedInMidHandshakeLosesWhatItJoins(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.joiner.change(func(j *fakeJoiner) {
			j.join = func(context.Context, wire.Generation, Conn) (Link, error) {
				time.Sleep(100 * ms)
				return fakeLink{}, nil
			}
		})
		y.send(&Connect{})
		y.sleep(50 * ms)
		require.NoError(t, y.system.Root.StopFuture(y.rail).Wait())
		y.sleep(time.Second)
		assert.Equal(t, []string{"join 1", "lost 1"}, y.joiner.read())
		assert.Empty(t, y.supervised())
	})
}

func TestRailJoinThatPanicsIsABugAndNotACrash(t *testing.T) {
	story(t, fixed(supervision.Directive{Delay: time.Minute}), func(t *testing.T, y *yard) {
		y.joiner.change(func(j *fakeJoiner) {
			j.join = func(context.Context, wire.Generation, Conn) (Link, error) { panic("session bug") }
		})
		y.send(&Connect{})
		require.Len(t, y.broke(), 1)
		assert.Equal(t, supervision.Bug, y.broke()[0].Failure.Class)
		var panicked *PanicError
		require.ErrorAs(t, y.broke()[0].Failure, &panicked)
		assert.NotEmpty(t, panicked.Stack)
	})
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	var whole Config
	story(t, func(c *Config) { whole = *c }, func(*testing.T, *yard) {})
	require.NoError(t, whole.Validate())
	seen := map[string]bool{}
	for _, spoil := range []func(*Config){
		func(c *Config) { c.Joiner = nil }, func(c *Config) { c.Policy = nil }, func(c *Config) { c.Clock = nil },
		func(c *Config) { c.Track = nil }, func(c *Config) { c.Kind = nil }, func(c *Config) { c.Remote = "" },
		func(c *Config) { c.DialTimeout = -1 }, func(c *Config) { c.HandshakeTimeout = -1 },
		func(c *Config) { c.ReportAfter = -1 },
	} {
		cfg := whole
		spoil(&cfg)
		_, err := Props(cfg)
		require.ErrorIs(t, err, ErrConfig)
		require.False(t, seen[err.Error()], err)
		seen[err.Error()] = true
	}
	whole.Health.Stall = -1
	_, err := Props(whole)
	require.ErrorIs(t, err, ErrHealth)
	require.False(t, errors.Is(err, ErrConfig))
}
