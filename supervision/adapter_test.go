package supervision_test

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	. "railyard/supervision"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a system with a rail that supervises one transport by a strategy. It lives inside a
// synctest bubble: its clock is the bubble's.
type yard struct {
	system    *actor.ActorSystem
	start     time.Time
	transport *actor.PID

	mu   sync.Mutex
	seen sights
}

// sights is what the yard's actors have noted.
type sights struct {
	events []actor.SupervisorEvent
	// lives are the times at which a transport started; got are the texts that one received.
	lives []time.Duration
	got   []string
	ended []string
}

// crash makes the transport panic with the value.
type crash struct{ value any }

func (y *yard) note(f func(seen *sights)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	f(&y.seen)
}

// look gives what has been noted when everybody has come to rest.
func (y *yard) look() sights {
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.seen
}

func (y *yard) now() time.Duration { return time.Since(y.start) }

func (y *yard) transportReceive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		y.note(func(seen *sights) { seen.lives = append(seen.lives, y.now()) })
	case crash:
		panic(m.value)
	case string:
		y.note(func(seen *sights) { seen.got = append(seen.got, m) })
	}
}

// rail is the actor above the transport.
type rail struct {
	yard     *yard
	strategy *Strategy
}

func (r *rail) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		pid, err := c.SpawnNamed(actor.PropsFromFunc(r.yard.transportReceive), "transport")
		if err != nil {
			panic(err)
		}
		r.strategy.Record().Up(r.yard.now())
		r.yard.note(func(*sights) { r.yard.transport = pid })
	case *actor.Terminated:
		r.yard.note(func(seen *sights) { seen.ended = append(seen.ended, m.Who.Id) })
	}
}

// newYard starts it all; top supervises the rail.
func newYard(t *testing.T, top actor.SupervisorStrategy, c StrategyConfig) *yard {
	quiet := func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
	y := &yard{system: actor.NewActorSystem(actor.WithLoggerFactory(quiet)), start: time.Now()}
	t.Cleanup(y.system.Shutdown)
	y.system.EventStream.Subscribe(func(e any) {
		if event, ok := e.(*actor.SupervisorEvent); ok {
			y.note(func(seen *sights) { seen.events = append(seen.events, *event) })
		}
	})
	c.Now = y.now
	strategy, err := NewStrategy(c)
	require.NoError(t, err)
	props := actor.PropsFromProducer(func() actor.Actor { return &rail{yard: y, strategy: strategy} },
		actor.WithSupervisor(strategy), actor.WithGuardian(top))
	y.system.Root.Spawn(props)
	y.look()
	require.NotNil(t, y.transport)
	return y
}

func (y *yard) send(messages ...any) {
	for _, m := range messages {
		y.system.Root.Send(y.transport, m)
	}
	synctest.Wait()
}

func always(d Directive) Policy {
	return PolicyFunc(func(History, Failure, time.Duration) Directive { return d })
}

func TestStrategyRestartsAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := &Failure{Rail: "eth0", Class: Path, Err: io.EOF}
		var asked []History
		y := newYard(t, actor.DefaultSupervisorStrategy(), StrategyConfig{
			Reachable: func() bool { return true },
			Policy: PolicyFunc(func(h History, f Failure, now time.Duration) Directive {
				asked = append(asked, h)
				assert.Equal(t, 2*time.Second, now)
				assert.Equal(t, "eth0", f.Rail)
				assert.Equal(t, now, f.At)
				return Directive{Action: Restart, Delay: 300 * ms}
			}),
		})
		time.Sleep(2 * time.Second)
		y.send(crash{reason}, "queued behind the crash")
		require.Len(t, y.look().events, 1)
		assert.Same(t, reason, y.look().events[0].Reason)
		assert.Equal(t, actor.RestartDirective, y.look().events[0].Directive)
		assert.True(t, y.look().events[0].Child.Equal(y.transport))
		assert.Empty(t, y.look().got, "suspended until the restart")

		time.Sleep(299 * ms)
		synctest.Wait()
		assert.Len(t, y.look().lives, 1)
		time.Sleep(ms)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 2300 * ms}, y.look().lives)
		assert.Equal(t, []string{"queued behind the crash"}, y.look().got)

		require.Len(t, asked, 1)
		assert.True(t, asked[0].Reachable)
		assert.True(t, asked[0].Healthy)
		assert.Equal(t, 2*time.Second, asked[0].Lived)
		assert.Len(t, y.look().events, 1)
	})
}

func TestStrategyWithTheDefaultPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy, err := Default(DefaultConfig{}, rand.NewPCG(1, 2))
		require.NoError(t, err)
		y := newYard(t, actor.DefaultSupervisorStrategy(), StrategyConfig{Policy: policy})
		time.Sleep(time.Second)
		y.send(crash{&Failure{Class: Transient}})
		require.Equal(t, []time.Duration{0, time.Second}, y.look().lives, "the first restart after a healthy spell is at once")
		y.send(crash{&Failure{Class: Transient}})
		require.Len(t, y.look().lives, 2)
		time.Sleep(50 * ms)
		synctest.Wait()
		require.Len(t, y.look().lives, 3)
		y.send(crash{&Failure{Class: Peer, Err: ErrRefused}})
		require.Equal(t, []string{y.transport.Id}, y.look().ended)
		require.Len(t, y.look().events, 3)
	})
}

func TestStrategyStops(t *testing.T) {
	for name, d := range map[string]Directive{
		"stop":                  {Action: Stop, Delay: time.Hour},
		"reroute":               {Action: Reroute},
		"action from elsewhere": {Action: 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, actor.DefaultSupervisorStrategy(), StrategyConfig{Policy: always(d)})
				y.send(crash{&Failure{}})
				require.Len(t, y.look().events, 1)
				assert.Equal(t, actor.StopDirective, y.look().events[0].Directive)
				assert.Equal(t, []string{y.transport.Id}, y.look().ended)
				assert.Len(t, y.look().lives, 1)
			})
		})
	}
}

// grandparent keeps what was escalated to it.
type grandparent struct {
	mu      sync.Mutex
	reasons []any
}

func (g *grandparent) HandleFailure(_ *actor.ActorSystem, s actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, _ any) {
	g.mu.Lock()
	g.reasons = append(g.reasons, reason)
	g.mu.Unlock()
	s.StopChildren(child)
}

func TestStrategyEscalates(t *testing.T) {
	for name, judge := range map[string]func(actor.Supervisor, *actor.PID, Failure, Directive){
		"by itself": nil, "by a judge that performs": Perform,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				top := new(grandparent)
				y := newYard(t, top, StrategyConfig{Policy: always(Directive{Action: Escalate}), Judge: judge})
				y.send(crash{&Failure{Class: Peer, Err: ErrGoodbye}})
				require.Len(t, y.look().events, 1)
				assert.Equal(t, actor.EscalateDirective, y.look().events[0].Directive)
				require.Len(t, top.reasons, 1)
				err, ok := top.reasons[0].(error)
				require.True(t, ok)
				require.ErrorIs(t, err, ErrGoodbye)
			})
		})
	}
}

func TestStrategyCallsAPanicABug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var judged []Failure
		y := newYard(t, actor.DefaultSupervisorStrategy(), StrategyConfig{
			Policy: always(Directive{Action: Restart, Delay: -time.Second}),
			Known:  func(child *actor.PID) Failure { return Failure{Rail: child.Id, Generation: 9} },
			Judge: func(s actor.Supervisor, child *actor.PID, f Failure, d Directive) {
				judged = append(judged, f)
				assert.Zero(t, d.Delay, "a negative delay reached the judge")
				s.RestartChildren(child)
			},
		})
		y.send(crash{"index out of range"})
		require.Len(t, judged, 1)
		assert.Equal(t, Bug, judged[0].Class)
		assert.Equal(t, y.transport.Id, judged[0].Rail)
		assert.Equal(t, uint64(9), judged[0].Generation)
		assert.Contains(t, judged[0].Error(), "index out of range")
		assert.Len(t, y.look().lives, 2)
		require.Len(t, y.look().events, 1)
		assert.Equal(t, "index out of range", y.look().events[0].Reason)
	})
}

func TestStrategyNeedsItsParts(t *testing.T) {
	_, err := NewStrategy(StrategyConfig{Policy: always(Directive{})})
	require.ErrorIs(t, err, ErrStrategy)
	_, err = NewStrategy(StrategyConfig{Now: func() time.Duration { return 0 }})
	require.ErrorIs(t, err, ErrStrategy)
}
