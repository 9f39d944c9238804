// Package demo is `railyard demo failover`: two nodes, a load between them that checks itself, and virtual cables that a
// script cuts and heals while the load runs.
//
//	this process                          the second process
//	node a ── side a of the load          node b ── side b of the load
//	  │ rails dial the cables               ▲ rails listen
//	  └──── cable 0, 1, 2 … ───────────────┘
//	stage (the script), records (what each cut did), table or JSON
//
// Owner: Run owns everything and leaves nothing behind: no process, goroutine, port.
//
// The two processes talk over pipes (pipe.go), never over the rails that are being cut: what is measured does not
// depend on what is broken. Both stamp with one clock (package clock).
//
// Invariants:
//   - A cut is recorded before it is made, and its record is complete when the rail carries bytes again, or at the
//     script's end.
//   - The verdict is taken when both sides have come to rest.
//
// With a page (live.go, panel.js) nobody plays a script: presses on the page become the script's commands, one at a time, until the
// run is stopped, which is then its orderly end.
//
// Start reading at Run, then half.go (what each process runs), stage.go (the script), record.go (what is printed of a cut).
package demo
