// Command epoch is a model of lives and epochs: two processes that may crash and start again, with a new incarnation, while what the
// dead one had written is still under way; sessions that either opens, also both at once; joins of one rail, dialed by the opener;
// an end that gives the other up (OutageLimit) while that lives on; goodbye. Each epoch has a message in one direction or both.
//
//	state.go  the state, its promises, and the settings
//	moves.go  what a node, the network and fate may do
//	read.go   what comes of a frame: the handshake's decisions
//	tidy.go   names and order that cannot matter are taken out
//
// Checked: nothing of one epoch is applied in another, no end has two, no message comes twice and no operation completes twice within
// an epoch, no epoch that lives at both ends is ended on the word of a dead process; and from every state, without further
// trouble, an epoch can come up that carries its messages. Nobody gives up where nothing has gone wrong.
//
// Usage: go run ./test/model/epoch [mutation …]. Without one: the rules as they are, then each mutation.
//
// Invariant: a state is a plain comparable value; nothing outside it decides what follows, but the setting and the mutation.
//
// Start reading at state.go, then moves.go.
package main
