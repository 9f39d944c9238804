// Command sim replays worlds from seeds: nodes with their sessions, the rails between them, and every fault that
// these can have, in one goroutine on a virtual clock. What the protocol promises is checked all the while by
// checkers that know both ends.
//
//	options.go   what a seed chooses: how many lanes, how fast, which work, which faults
//	profiles.go  pressures: options that make one kind of trouble likely
//	world.go     clock, event queue, randomness, trace, failure
//	path.go      what lies between two cards: delay, rate, black holes; conn.go the byte streams over it
//	node.go      one incarnation of a node; epoch.go how sessions begin and end, and how nodes die and come back
//	end.go       one end of a session, that is one epoch, and how it carries out effects
//	carrier.go   the transport of one generation: its writer and its reader; join.go, accept.go how it comes to be
//	verbs.go     paths whose cards write into memory: queue pairs, registrations, and how a transport uses them
//	pulse.go     health: beats, suspicion, trust
//	faults.go    what breaks, and when it heals; faults_nodes.go, faults_conns.go the same for nodes and connections
//	ending.go    worlds that end in the middle: an end that breaks off, one that says goodbye, and may come back
//	load_*.go    the work; check_*.go what must hold of it
//	recipe.go    a world as flags; batch.go many worlds on all processors; tally.go what happened in them
//	story.go     what is told of a world; shrink.go the smallest world that fails so; report.go both on a page
//	settings.go  the command line; soak.go worlds without an end; regress.go failures that are kept
//
// Owner: a World owns everything in it; nothing is shared between worlds but the table of patterns, which nobody writes.
//
// Invariant: the same seed gives the same world, event by event (World.Trace tells).
//
// Invariant: the checkers and the work see a node only by what its session says and by its memory, never by the
// session's own state; the exceptions are Session.Sizes and Session.Still, for what is left of one.
//
// Invariant: who may open a session, join it or end it is decided by the session's own code (session.Standing, Session.Greet);
// what the endpoint does about it with goroutines is done here with events, in the same order.
//
// Usage: go run ./test/sim --seeds 1000 --from 1. A seed that fails prints what broke, and the story of the smallest world in which it
// breaks too. Exit codes: 0 all held, 1 a checker saw a broken promise, or too little happens in the worlds, 2 wrong usage, 3 a
// panic that was no checker's.
//
// To look at a failure: the command that is printed, with -v. A world that fails is a bug of the code, of a checker, or of
// the simulated endpoint, in this order.
//
// Start reading at world.go, then end.go.
package main
