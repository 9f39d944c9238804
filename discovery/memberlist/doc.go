// Package memberlist finds nodes by hashicorp/memberlist: nodes that gossip over UDP and TCP who is there, beside the rails.
// Each says its own node's address, and knows the others' within moments of their coming and going.
//
//	list, err := memberlist.Join(memberlist.Config{Node: node.Address(), Bind: "10.0.0.1:7946", Seeds: []string{"10.0.0.2:7946"}})
//	keeper, err := discovery.Keep(discovery.Config{Node: node, Finder: list})
//
// Invariant: what others say in the list is taken as an address to dial and as nothing else; who may talk is decided by the
// node's own Secret or TLS.
//
// Owner: whoever called Join, who ends it with Leave, after the Keeper.
package memberlist
