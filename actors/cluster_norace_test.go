//go:build !race

package actors

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"railyard/rail"
)

// This file is left out under the race detector: protoactor's remote sets the system's address and its own state while actors read them.

// beside starts protoactor's remote beside a node, as its cluster does, and gives where it listens.
func (n testNode) beside(t *testing.T) (*remote.Remote, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := ClusterRemote(n.Node)
	cfg.Port = l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	r := remote.NewRemote(n.sys, cfg)
	r.Start()
	t.Cleanup(func() { r.Shutdown(true) })
	return r, cfg.Address()
}

// Beside a node protoactor's remote takes no connection and makes none; everything goes over rails.
func TestClusterRemoteRefusesEverything(t *testing.T) {
	a, b := node(t), node(t, withKinds(map[string]*actor.Props{"echo": echoes()}))
	address := b.Address()
	_, listening := b.beside(t)
	require.Equal(t, address, b.sys.Address(), "the node's address stays the system's")

	conn, err := grpc.Dial(listening, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = remote.NewRemotingClient(conn).ListProcesses(testContext(t), &remote.ListProcessesRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	raw, err := net.Dial("tcp", listening)
	require.NoError(t, err)
	defer func() { require.NoError(t, raw.Close()) }()
	require.NoError(t, raw.SetDeadline(time.Now().Add(patience)))
	rest, err := io.ReadAll(raw)
	require.Empty(t, rest)
	require.NoError(t, err, "it is closed at once")

	b.echo(t, "here")
	_, err = a.sys.Root.RequestFuture(b.at("here"), text("over rails"), patience).Result()
	require.NoError(t, err)
	a.echo(t, "there")
	_, err = b.sys.Root.RequestFuture(a.at("there"), text("back over rails"), patience).Result()
	require.NoError(t, err)
	pid, err := a.Spawn(testContext(t), b.Address(), "echo")
	require.NoError(t, err, "the node's activator answers, not the remote's")
	_, err = a.sys.Root.RequestFuture(pid, text("spawned over rails"), patience).Result()
	require.NoError(t, err)

	facts := b.Events().Subscribe(testContext(t))
	a.sys.Root.Stop(b.at(supervisorID))
	for {
		if f := next(t, facts, "the refusal"); f.Kind == rail.MessageRefused {
			require.ErrorIs(t, f.Cause, ErrReserved)
			break
		}
	}
	_, _, err = nobody{}.ClientHandshake(testContext(t), "", nil)
	require.ErrorIs(t, err, ErrNotOverGRPC, "what it dials itself")
}

// Beside protoactor's remote there is no event of a connection: it would make that remote dial.
func TestEndpointEventsBesideItsRemote(t *testing.T) {
	a, c := node(t), node(t)
	up := events[*remote.EndpointConnectedEvent](t, a.sys)
	down := events[*remote.EndpointTerminatedEvent](t, a.sys)
	a.beside(t)
	c.echo(t, "echo")
	_, err := a.sys.Root.RequestFuture(c.at("echo"), text("x"), patience).Result()
	require.NoError(t, err)
	require.NoError(t, c.Shutdown(testContext(t)))
	require.Equal(t, c.Address(), next(t, down, "the end").Address)
	require.Empty(t, up)
}
