package rail

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/supervision"
	"railyard/wire"
)

// busy keeps an actor at its first Probe until the gate opens: what is sent to it meanwhile queues up, and supervision's
// own messages pass the others.
func busy(gate <-chan struct{}) func(*actor.Props) *actor.Props {
	return func(p *actor.Props) *actor.Props {
		return p.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, m *actor.MessageEnvelope) {
				if _, probe := m.Message.(*Probe); probe {
					<-gate
				}
				next(c, m)
			}
		}))
	}
}

// A generation that carried work has one RailUp and one RailDown, also where its failure comes before the news that it carries.
func TestRailWhoseConnectionDiesBeforeItIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		y := hire(t, func(c *Config) { c.RailProps = busy(gate) })
		defer y.close()
		y.kind.set(func(context.Context) (Conn, error) {
			time.Sleep(10 * ms)
			return y.kind.connect(), nil
		})
		y.send(&Connect{})
		go y.system.Root.Send(y.rail, &Probe{})
		time.Sleep(20 * ms)
		require.Equal(t, []string{"join 1", "attach 1"}, y.joiner.read(), "the session has it")
		require.Empty(t, y.published(), "the rail has not noted it")
		y.kind.newest().snap(errCable)
		synctest.Wait()
		close(gate)
		synctest.Wait()
		require.Len(t, y.events, 2)
		up, down := <-y.events, <-y.events
		assert.Equal(t, RailUp, up.Kind)
		assert.Equal(t, wire.Generation(1), up.Generation)
		assert.Equal(t, RailDown, down.Kind)
		assert.Equal(t, wire.Generation(1), down.Generation)
		assert.Equal(t, supervision.Transient, down.Class)
		require.ErrorIs(t, down.Cause, errCable)
		require.Len(t, y.broke(), 1)
		assert.True(t, y.broke()[0].Carried)
		y.sleep(time.Second)
		assert.Equal(t, []string{"RailRejoined", "RailUp"}, y.published())
		assert.Equal(t, []string{"Joined", "Broke", "Joined"}, y.heard())
		require.Len(t, y.supervised(), 1)
	})
}

// A dial that fails was never up: a failure that is told and judged, and no RailDown.
func TestRailWhoseDialFailsWasNeverDown(t *testing.T) {
	story(t, nil, func(t *testing.T, y *yard) {
		y.kind.set(refused)
		y.send(&Connect{})
		y.sleep(time.Second)
		require.NotEmpty(t, y.broke())
		require.Len(t, y.supervised(), len(y.broke()))
		for _, b := range y.broke() {
			require.False(t, b.Carried)
		}
		require.Empty(t, y.published())
	})
}
