// Package admin is the page of a node: what it is and does at the moment, for people in a browser, for Prometheus and for scripts.
//
//	GET  /               the page; its files are embedded, and it asks no other host for anything
//	GET  /api/state      a snapshot.Node as JSON
//	GET  /api/stream     the same as server-sent events, twice a second
//	GET  /metrics        Prometheus
//	POST /panel/NAME     a command for a panel of the application, one line of text
//	POST /login          the page's way to give the token
//
// A node whose actors.Config names an address in Admin has one. Start is for programs that show something of their own beside it: a Panel.
//
// Who may look: without a token the page listens on loopback only, and answers only to names of loopback, so that no page of another
// site can ask it through the browser (DNS rebinding). With a token it listens anywhere, and answers who shows it: as a bearer, or
// in a cookie that the page sets. It is plain HTTP: across a network that others can read, put a TLS proxy or an SSH tunnel in front.
//
// Owner: a Server owns its listener, its connections and the goroutine that keeps the event log. Close ends all of them.
//
// Invariants:
//   - Nothing is sampled while nobody looks; however many look, one snapshot is made and serialized for all, at most twice a second.
//   - Viewers, connections, and what each may send are bounded. A slow viewer skips snapshots and holds up nobody.
//   - No command is taken from a page of another site.
//
// Start reading at Start, then state.go (the shared snapshot), guard.go (who may look), page/page.js.
package admin
