package rail

import "crypto/tls"

// SecurableKind is a Kind that may tell that all its connections are Securable: only rails of such a kind are of use to a node that takes
// nothing but TLS.
type SecurableKind interface {
	Kind
	// Secures tells whether it is so.
	Secures() bool
}

// Securable is a Conn whose stream can be encrypted while its handshake lasts. What a Link sees is the same
// either way.
type Securable interface {
	Conn
	// Peek waits for the first byte that has not been read, and leaves it in the stream. It heeds the deadline.
	Peek() (byte, error)
	// Secure does TLS's own handshake on the stream as it stands, from the dialer's side or the acceptor's; from then
	// on Read, Write and the pump carry what is inside. It heeds the deadline, and is called once at most. Where it fails
	// the stream is as plain as it was, and of no more use than to wait until the peer hangs up.
	//
	// No bracket of the link is open while the reader waits for the peer's bytes: they are decrypted aside, and
	// copied under the region's lease.
	Secure(cfg *tls.Config, dialer bool) (tls.ConnectionState, error)
}
