// Package session is the protocol between two node incarnations, without a socket, goroutine, clock
// or lock: plain code that a seed can replay. The endpoint wraps it in one lock and carries out its effects.
//
//	                application                          peer's frames
//	                     │ Send, Put, Get, Cancel              │ Want, Got
//	                     ▼                                     ▼
//	message.go, operation.go ── the sending core     receive.go, target.go ── the receiving core
//	                     │ offers, segments                    │ counts, refusals, deliveries
//	                     ▼                                     ▼
//	fill.go ──────────── Generation: one connected life of a lane ──────────── ack.go
//	                     retire.go: fenced → quiet → settled → work goes elsewhere
//	                     onesided.go, exposed.go: where a card writes a put's bytes, ours or the peer's
//
// Owner: whoever holds the endpoint's lock. Every method is called with it held.
//
// # Brackets instead of waiting
//
// A socket call runs without the lock. It is bracketed: Fill … Wrote for the writer, Want … Got (and
// what Got delivers) for the reader. What must wait for a socket call to end (cancel, fence, the completion of an
// operation whose memory is named in a plan) marks its wish and is carried out when the bracket closes. A place, which a
// card writes by itself, is a bracket too: from the write call that posts it until Placed or Drained. So nothing in here
// ever blocks, and no memory is given back while a system call or a card may still touch it.
//
// # Invariants
//
//   - A counted frame is numbered when its first byte is written; a generation's sent, whole and acked numbers
//     satisfy acked <= sent and whole <= sent; between whole and sent is at most one begun frame, or one begun batch,
//     whose messages count one by one.
//   - A frame is on exactly one generation, or waits; it leaves a generation only by acknowledgement or when the
//     generation is settled, that is, when both ends have fenced it and we know the peer's final count.
//   - A count is never sent without the refusals among the frames it covers, until the peer has seen them.
//   - The messages of one bucket are on one generation at a time, or wait in order.
//   - reserved - granted never exceeds 0: no message is numbered without room at the receiver.
//   - Every operation leaves the open list exactly once, by complete.
//
// Start reading at session.go, then message.go, fill.go and stripe.go for the way out, receive.go for the way in,
// retire.go for what happens when a rail dies, onesided.go for cards.
package session
