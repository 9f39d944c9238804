// Package lab has real links of the kernel on one machine: two hosts, which are network namespaces, with so many rails between
// them, each a pair of veth cards that can be shaped, cut in every way that a cable, a switch, a driver or a peer can
// fail, and healed.
//
//	host A                            host B
//	  rail0 10.77.0.1/24 ───────────── rail0 10.77.0.2/24
//	  rail1 10.77.1.1/24 ───────────── rail1 10.77.1.2/24
//	  processes                         processes
//
// With a delay a rail is a wire in user space (a tun device at either end), since most kernels at hand have no netem.
//
// A namespace has no name: it lives as long as somebody holds it, so nothing is left behind however this process ends. A
// host's processes are killed by the kernel when the thread that started them dies.
//
// Owner: a Lab owns its namespaces, its processes and its flapping links; Close ends all of them.
//
// Invariants:
//   - a cut is one step: its sockets are open, its tables and chains are there beforehand;
//   - Heal undoes every cut of a rail, the last one first;
//   - no packet leaves the two namespaces: they have no other cards.
//
// It needs root, or a kernel that lets anybody have user namespaces: see Enter.
//
// Start reading at lab.go, then cut.go. gap.go is pure: what a cut did to a transfer, by samples at the receiver.
package lab
