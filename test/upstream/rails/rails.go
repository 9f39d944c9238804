// Package rails stands in for protoactor's remote in copies of protoactor's own tests: the one line that makes a cluster's
// remote settings makes them here, for a system that is put on rails first.
//
// Owner: nobody ends the nodes; they end with the test process.
package rails

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"

	"railyard/actors"
	"railyard/rail"
)

// Configure puts the system on two rails over loopback, and gives what cluster.Configure wants.
func Configure(system *actor.ActorSystem) *remote.Config {
	node, err := actors.Start(system, actors.Config{
		Rails:  []rail.Binding{rail.TCP("127.0.0.1:0"), rail.TCP("127.0.0.1:0")},
		Secret: []byte("for protoactor's tests"),
	})
	if err != nil {
		panic(err) // as protoactor's own remote does
	}
	return actors.ClusterRemote(node)
}
