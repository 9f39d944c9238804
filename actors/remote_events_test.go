package actors

import (
	"testing"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
)

// The events of protoactor's remote are on the EventStream.
func TestEndpointEvents(t *testing.T) {
	a, b := node(t), node(t)
	up := events[*remote.EndpointConnectedEvent](t, a.sys)
	down := events[*remote.EndpointTerminatedEvent](t, a.sys)
	b.echo(t, "echo")
	_, err := a.sys.Root.RequestFuture(b.at("echo"), text("x"), patience).Result()
	require.NoError(t, err)
	require.Equal(t, b.Address(), next(t, up, "the connection").Address)
	require.NoError(t, b.Shutdown(testContext(t)))
	require.Equal(t, b.Address(), next(t, down, "the end").Address)
}
