package wire

import (
	"encoding/hex"
	"fmt"
	"io"
)

// RailID numbers the rails between two nodes. Both ends use the dialer's number.
type RailID uint16

// OpID names one operation or one large message of its initiator within an epoch.
type OpID uint64

// Address is the address in a node's PIDs, such as "10.0.0.1:7400".
type Address = string

// Generation numbers the connected lives of a rail, upwards. Bit 0 is 1 where the side that opened
// the session dialed, so that two ends that dial at once never choose the same number.
type Generation uint64

// Next gives the least generation above g whose bit 0 names the dialer. It gives 0, which no peer
// accepts, when there is none.
func (g Generation) Next(dialer bool) Generation {
	next := g + 1
	if (next&1 == 1) != dialer {
		next++
	}
	if next <= g {
		return 0
	}
	return next
}

// Dialer tells whether the side that opened the session dialed this generation.
func (g Generation) Dialer() bool { return g&1 == 1 }

// NodeIDSize is the length of a NodeID in bytes.
const NodeIDSize = 16

// NodeID names one incarnation of a node: 16 random bytes, new at each start.
type NodeID [NodeIDSize]byte

// String gives the first 4 bytes in hex: enough to tell incarnations apart in a log.
func (id NodeID) String() string { return hex.EncodeToString(id[:4]) }

// ParseNodeID takes an incarnation out of a handshake message. The error wraps ErrMalformed.
func ParseNodeID(b []byte) (NodeID, error) {
	if len(b) != NodeIDSize {
		return NodeID{}, malformed(0, "an incarnation of %d bytes where %d are due", len(b), NodeIDSize)
	}
	return NodeID(b), nil
}

// Token is the secret of a region's key. It prints as stars, whatever prints it, so that no log
// gives a region away.
type Token [16]byte

// String hides the token from loggers.
func (t Token) String() string { return hidden }

// Format hides the token from every verb of fmt.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText hides the token from encoders such as JSON's.
func (t Token) MarshalText() ([]byte, error) { return []byte(hidden), nil }

const hidden = "****"
