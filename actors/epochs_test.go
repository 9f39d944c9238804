package actors

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"railyard/endpoint"
	"railyard/rail"
)

// TestAnEpochLeavesNothingBehind: what a node remembers of a peer's names, and of its own senders, keeps no endpoint of an earlier epoch
// alive, nor what was open in it.
func TestAnEpochLeavesNothingBehind(t *testing.T) {
	a := node(t)
	// epoch makes a peer at an address, talks to it, and ends it. The names are never used again.
	epoch := func(address, name string) (string, weak.Pointer[endpoint.Endpoint]) {
		b := node(t, func(c *Config) { c.Rails = []rail.Binding{rail.TCP(address)} })
		_, got := b.inbox(t, "sink-"+name)
		e, err := a.Connect(testContext(t), b.Address())
		require.NoError(t, err)
		a.system.Root.RequestWithCustomSender(b.at("sink-"+name), text("x"), actor.NewPID(a.Address(), "sender-"+name))
		next(t, got, "a message")
		require.NoError(t, b.Shutdown(testContext(t)))
		<-e.Done()
		return b.Address(), weak.Make(e)
	}
	address, first := epoch("127.0.0.1:0", "a")
	_, _ = epoch(address, "b") // the route knows the newest endpoint
	require.Eventually(t, func() bool {
		runtime.GC()
		return first.Value() == nil
	}, 20*time.Second, 10*time.Millisecond)
}
