// Package perf is `railyard perf`: how fast puts, gets and messages go between two nodes.
//
//	initiator (Run)                          target (Serve)
//	  senders ── puts, gets, messages ──▶      region, actors "perf-echo", "perf-sink-N"
//	  control ── Prepare, Count, Inspect ──▶   actor "perf"
//
// Run starts the target itself, as a second process on loopback, unless it is told where one serves.
//
// A test has three phases: the senders run, and nothing counts (warm-up); they run, and what ends counts; they come to
// rest. What a phase boundary costs, a message each way, is not part of the time.
//
// Invariant: an operation counts in the phase in which it ended.
//
// Start reading at Options and Run, then tests.go; server.go is the target.
package perf

//go:generate go build -o ../../../../bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
//go:generate protoc -I../../../.. --plugin=protoc-gen-go=../../../../bin/protoc-gen-go --go_out=../../../.. --go_opt=module=railyard cmd/railyard/internal/perf/perf.proto
