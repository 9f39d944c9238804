// Package trial puts a transfer on a lab's rails, cuts one of them, and says what that did: for Railyard, as two processes of
// the tool, and for MPTCP, the kernel's own stream over several cards.
//
//	host A                               host B
//	  railyard perf put-bw --to B0         railyard perf serve --timeline FILE
//	  ════════════ rail0 ════════════════════════════
//	  ════════════ rail1 ═══════ ✂ ══════════════════    cut Plan.Before after the first bytes,
//	                                                     healed Plan.Hold later, watched for Plan.After
//
// Owner: each trial owns its lab, which it closes, and the files in a directory that it is given.
//
// Start reading at trial.go (Plan, Outcome), then railyard.go.
package trial
