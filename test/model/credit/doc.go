// Command credit is a model of the window: a sender, a receiver whose actors take their time or stop, and one rail that is
// lost and comes back with whatever was on it, Credit frames among it. Credits are absolute totals.
//
// Checked: the mailboxes never hold more than the window, and from every state all messages can still arrive.
//
// Usage: go run ./test/model/credit [mutation …]. Without one: the rules as they are, then each mutation.
//
// Invariant: a state is a plain comparable value; nothing outside it decides what follows, but the setting and the mutation.
package main
