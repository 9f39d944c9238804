// Package script tells what the session does as stories: a page of commands with what came of each, in testdata. A reviewer
// reads the page; the test plays it again and compares.
//
//	script_test.go    pages: read, played, compared, written anew with -rewrite
//	commands_test.go  the words of a page and what each does
//	world_test.go     two ends, virtual time, and how effects are carried out
//	wires_test.go     connections driven by hand: what is written lies in a pipe until somebody reads it
//	join_test.go      a rail's handshake in its three steps
//	work_test.go      puts, gets, messages, regions
//	check_test.go     what must hold after every command, whatever the page says
//
// A page is prose; lines that begin with "> " are commands, and the indented lines below one are what came of it.
// Nothing moves by itself: bytes go when a command writes or reads them, time goes when a command says so.
//
// Owner: one world a page, one goroutine; nothing is shared between pages.
//
// Invariant: what a page records is not all that is checked. After each command no byte of an ended operation has landed,
// no byte of a freed source was read, nothing was written to revoked memory, and nothing was said twice.
//
// Start reading at testdata/first.txt, then commands_test.go.
package script
