package rma

import "strconv"

// Rights are what a key lets a peer do to a region.
type Rights uint8

const (
	// RemoteWrite allows puts.
	RemoteWrite Rights = 1 << iota
	// RemoteRead allows gets.
	RemoteRead
)

const allRights = RemoteWrite | RemoteRead

// Allows tells whether every right in want is among r.
func (r Rights) Allows(want Rights) bool { return r&want == want }

func (r Rights) valid() bool { return r != 0 && r&^allRights == 0 }

// String gives "write", "read", "read+write" or "none".
func (r Rights) String() string {
	switch r {
	case 0:
		return "none"
	case RemoteWrite:
		return "write"
	case RemoteRead:
		return "read"
	case allRights:
		return "read+write"
	default:
		return "rights(" + strconv.Itoa(int(r)) + ")"
	}
}
