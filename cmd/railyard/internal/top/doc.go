// Package top is `railyard top`: a node's admin page in a terminal.
//
// It asks /api/state once a second and draws what it says. Look, Frame and Lines are pure: two snapshots and a size in, lines out, so that
// tests compare whole screens; Run puts them into a program that resizes and scrolls.
//
// Owner: Run; nothing runs after it.
//
// Invariant: whatever a node says, no control character of it reaches the terminal, and no line is wider than it.
//
// Start reading at Run, then Lines.
package top
