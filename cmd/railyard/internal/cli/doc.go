// Package cli is the command line: flags, usage errors, exit codes and signals. What the commands do is in packages
// of their own (info, perf, demo).
//
// Exit codes: 0 well; 1 the run failed or a promise was broken; 2 wrong usage, with exactly one line on
// standard error.
//
// The first Ctrl-C or SIGTERM ends a command in order: both processes shut their nodes down. A second one ends this
// process at once, and the second process dies with it.
//
// Start reading at Main.
package cli
