// Package actors is what applications import, and where a reader of the whole project starts. It
// puts an actor system of protoactor-go on the network, whose links are many rails at once: one for
// each pair of network cards that two hosts share.
//
//	system := actor.NewActorSystem()
//	node, err := actors.Start(system, actors.Config{
//		Rails:  []rail.Binding{rail.TCP("10.0.0.1:7400"), rail.TCP("10.0.1.1:7400")},
//		Secret: secret,
//	})
//
// From then on a PID of another node is used as any PID: Send, Request, futures, Watch, Stop and
// Poison are protoactor's own. What is said to an actor arrives exactly once and in order, whatever
// cards die meanwhile. Bulk data goes beside the actors, from memory to memory: the owner calls
// Node.Register and hands the region's key out in a message, peers call Put and Get on the endpoint
// that Node.Connect gives. The package's example does all of that.
//
// # The actors of a node
//
//	railyard                the node's own actor
//	└─ endpoint <peer>      one a peer; owns the session, supervises its rails
//	   ├─ rail 0            connects, keeps health, backs off, rejoins; supervises its transport
//	   │  └─ transport      one life of a socket; its failure is a crash that the rail judges
//	   └─ rail 1 …
//
// A message does not pass through them. It is written in its sender's goroutine (process.go) into
// the stream of a rail, and read by that stream's reader straight into the mailbox of its target
// (deliver.go).
//
// # Where to look
//
//   - config.go, node.go: settings, start and end of a node;
//   - process.go, serial.go, serializers.go, peer.go: the way out; deliver.go, refusal.go: the way in;
//   - spawn.go, authorize.go: what peers may spawn and address;
//   - inlet.go, inflow.go: what actors have not processed yet; mailbox.go: how that is seen;
//   - listener.go, stream.go: streams of bytes, as net.Listener and net.Conn;
//   - letters.go: what becomes of messages that do not arrive;
//   - watch.go, watched.go, futures.go: who is told when a peer ends;
//   - package endpoint: handshakes, routes, the endpoint actor; endpoint/session: the protocol, pure;
//   - package rail and rail/tcp: rails, their health, sockets; rma: regions, keys, operations;
//     wire: frames;
//   - package supervision: which failure has which consequence.
//
// # What does not arrive
//
// A message that cannot be sent, or is not known to have arrived when its peer ends, is a dead
// letter of the sender's system: its EventStream gets a MessageUndelivered with the cause, then
// protoactor's DeadLetterEvent, and the sender a DeadLetterResponse, so that futures fail at once.
// One that arrives for nobody is a dead letter there, with a DeadLetterResponse to its sender. So is
// one that the receiving program cannot read, or does not allow; that is an event of Node.Events besides, and a
// MessageUndelivered at the sender's node.
//
// # Invariants
//
//   - What a peer sends costs that message at most: no type, name or payload ends a rail, an actor or
//     the process.
//   - Delivery never waits. Subscribers of the EventStream, mailboxes, and actors on a synchronized
//     dispatcher run in a connection's reader: whoever blocks there stalls that rail.
//   - A message takes room of the window until its actor has processed it, and no actor takes all of
//     it: that is how a slow actor slows those who send to it, and nobody else.
//   - A plain Send waits for room, Config.SendWait at most, also from inside Receive.
//   - Each watch ends in one Terminated at most; with its peer at the latest.
//
// Owner: the application owns the actor system and the Node; Node.Shutdown ends all that Start
// began.
package actors
