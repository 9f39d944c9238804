// Package discovery keeps a node connected to the others without a cluster: it asks a Finder again and again where nodes are,
// and connects to those that it does not know yet.
//
//	keeper, err := discovery.Keep(discovery.Config{Node: node, Finder: discovery.Static("10.0.0.1:7400", "10.0.0.2:7400")})
//	defer keeper.Close()
//
// A Finder is a list (Static), a DNS name (DNS), a memberlist (package discovery/memberlist), or one's own. To send to a node
// nobody needs this: a PID with its address is enough.
//
// Invariant: a node that is found is connected to until it is found no more and its endpoint has ended; a Finder that fails
// changes nothing.
//
// Owner: whoever called Keep, who ends it with Close before the node. Start reading at keep.go, then find.go.
package discovery
