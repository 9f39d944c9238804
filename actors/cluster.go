package actors

import (
	"context"
	"errors"
	"net"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// ErrNotOverGRPC is what connections of protoactor's own remote end with beside a node: there are to be none.
var ErrNotOverGRPC = errors.New("this actor system talks over rails: nothing passes through protoactor's own remote")

// ClusterRemote gives the remote settings for protoactor's own cluster, which then runs over the node's rails: members,
// gossip, grains, publish and subscribe.
//
//	node, err := actors.Start(system, actors.Config{…})
//	c := cluster.New(system, cluster.Configure("shop", provider, lookup, actors.ClusterRemote(node), cluster.WithKinds(…)))
//	c.StartMember()
//
// The cluster starts a remote of protoactor's, which here listens on loopback at any free port and refuses every connection,
// in either direction. End the cluster first, then the node. Host, port and credentials of the result are not to be changed.
func ClusterRemote(n *Node) *remote.Config {
	return remote.Configure("127.0.0.1", 0,
		remote.WithAdvertisedHost(n.Address()),
		remote.WithServerOptions(grpc.Creds(nobody{})),
		remote.WithDialOptions(grpc.WithTransportCredentials(nobody{})))
}

// nobody are credentials that no connection has.
type nobody struct{}

var _ credentials.TransportCredentials = nobody{}

func (nobody) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, ErrNotOverGRPC
}

func (nobody) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, ErrNotOverGRPC
}

func (nobody) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "none"}
}

func (n nobody) Clone() credentials.TransportCredentials { return n }

func (nobody) OverrideServerName(string) error { return nil }

// supervisorID is an actor of protoactor's remote, which has nothing to do beside a node.
const supervisorID = "EndpointSupervisor"

// tellConnected publishes what users of protoactor's remote listen for. Its own remote, where there is one, would connect
// for that to the same peer itself.
func tellConnected(system *actor.ActorSystem, address string) {
	if !hasRemote(system) {
		system.EventStream.Publish(&remote.EndpointConnectedEvent{Address: address})
	}
}

// hasRemote: protoactor tells that only by a panic.
func hasRemote(system *actor.ActorSystem) (there bool) {
	defer func() {
		if recover() != nil {
			there = false
		}
	}()
	return remote.GetRemote(system) != nil
}
