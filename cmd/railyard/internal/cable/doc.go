// Package cable is a virtual network cable: it listens on a port, forwards every connection to a
// target, and can be cut in all the ways in which networks break, and healed.
//
// Owner: whoever called Listen; Close joins every goroutine.
//
// Each connection has two pumps, one a direction. A pump reads at most 256 KiB, passes the gate of its
// direction and writes: there is no other queue, so a stalled receiver stalls its sender through the cable as
// through a wire. Under Delay a pump keeps what is on its way, 4 MiB at most.
//
// A direction that is held (a black hole) lets nothing through its gate: no byte, no end of stream and
// no reset. What was on its way waits in the cable and is released by Heal, as a kernel's retransmission or a
// switch's buffer would: those are the late bytes that a protocol must survive.
//
// Invariant: an end of stream or a reset travels in the direction away from where it happened, and waits at that
// direction's gate like any byte.
//
// Start reading at Cable, then link.go.
package cable
