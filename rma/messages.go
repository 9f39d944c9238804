package rma

import "fmt"

// The messages by which an actor asks an endpoint's PID for operations. They never leave the
// process. Each Put, Get and Flush is answered by exactly one Done with its ID; a Cancel has no
// answer of its own, the operation's Done is it. IDs are the sender's own: unique among its open
// operations.
type (
	// Put writes Data at Offset, in bytes, of the region of Key. Data belongs to the endpoint until
	// Done.
	Put struct {
		ID      uint64
		Key     Key
		Offset  uint64
		Data    []byte
		Options []Option
	}
	// Get fills Dst from Offset, in bytes, of the region of Key. Dst belongs to the endpoint until
	// Done.
	Get struct {
		ID      uint64
		Key     Key
		Offset  uint64
		Dst     []byte
		Options []Option
	}
	// Cancel takes the sender's operation with that ID back; one that is done already is left
	// alone.
	Cancel struct{ ID uint64 }
	// Flush is done when everything that the endpoint took before it, messages to actors among it, is visible at the peer.
	Flush struct{ ID uint64 }
	// Done says that the operation has completed: Err is nil, or as Op.Err gives it.
	Done struct {
		ID  uint64
		Err error
	}
)

// String leaves the data out: messages end in logs of dead letters.
func (m Put) String() string {
	return fmt.Sprintf("put(id %d, %d bytes to offset %d of %s)",
		m.ID, len(m.Data), m.Offset, m.Key)
}

// String leaves the buffer out.
func (m Get) String() string {
	return fmt.Sprintf("get(id %d, %d bytes from offset %d of %s)",
		m.ID, len(m.Dst), m.Offset, m.Key)
}

// Format writes String whatever the verb.
func (m Put) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(m.String())) }

// Format writes String whatever the verb.
func (m Get) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(m.String())) }
