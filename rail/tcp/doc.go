// Package tcp is the rail kind "tcp": one plain TCP connection for each generation of a rail. Beside the verbs
// transport it is the only package that makes socket calls.
//
// Secure, before Run, puts TLS on the connection (secure.go): the pump is the same, but its reader waits inside crypto/tls with no
// bracket open and copies what was decrypted into the plan, and what is sealed and finds no room in the socket waits in the connection.
//
// It knows nothing of frames. A connection starts as a blocking stream for the handshake; Run turns it into a
// pump that asks its Link where bytes go and where they come from, and makes one non-blocking readv or writev
// for each answer. Memory belongs to the Link; an idle connection holds a few hundred bytes of its own.
//
// Owner: a Conn belongs to the transport of its generation, which starts it with Run and ends it with Kill or
// Close. It has at most three goroutines: the reader (the only one that calls lost), the writer, and after Kill
// the one that waits until the descriptor can be closed.
//
// Invariant: the read half (Conn.in) is touched by the reader goroutine alone, the write half (Conn.out) by the
// holder of the write token alone.
//
// Invariant: no socket call blocks. The reader and the writer wait in the runtime's poller, never in the kernel
// and never while a lease is held.
//
// Invariant: a reader parks only after the kernel said EAGAIN. A short read does not show that the socket is
// drained: the end of the stream may be queued behind the bytes, and the poller, edge-triggered, has told of
// both already.
//
// Kill does not rely on closing the descriptor, which must wait for calls in progress: it dissolves the
// connection in the kernel first (connect to AF_UNSPEC), which drops both queues and sends a reset.
//
// Start reading at Conn in conn.go, then read.go and write.go.
package tcp
