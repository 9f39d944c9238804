package rail

import (
	"fmt"
	"time"

	"railyard/wire"
)

// State is where a rail is in its life. See the package comment for how one follows another.
type State uint8

const (
	// Connecting: never up so far.
	Connecting State = iota
	// Up: takes work.
	Up
	// Suspect: silent; takes no new work until it answers or is retired.
	Suspect
	// Down: lost; its work has moved to the other rails.
	Down
	// Probation: back, takes a growing share of the work, being watched.
	Probation
)

// String gives the glossary's word.
func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Up:
		return "up"
	case Suspect:
		return "suspect"
	case Down:
		return "down"
	case Probation:
		return "probation"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText makes JSON and logs show the word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote; the error names a word that is none of a state.
func (s *State) UnmarshalText(text []byte) error {
	for state := Connecting; state <= Probation; state++ {
		if string(text) == state.String() {
			*s = state
			return nil
		}
	}
	return fmt.Errorf("no state of a rail is called %q: is this of another version?", text)
}

// Status is one rail as a user sees it, at one instant.
type Status struct {
	// Local and Remote name the two devices. Reason says why the rail is not up (empty while it is).
	Local, Remote, Reason string
	State                 State
	// Generation is the newest; BytesInFlight are sent and not yet acknowledged.
	Generation, BytesInFlight uint64
	// Rate is the measured goodput in bytes a second.
	Rate      float64
	RoundTrip time.Duration

	// ID numbers the rail in its session, Kind names its transport, Peer the node at the other end.
	ID   wire.RailID
	Kind string
	Peer string
	// Weight is the share of its fair part that the rail is given, 0 to 1; below 1 in probation.
	Weight float64
	// BytesOut and BytesIn went over the rail since the endpoint began, in all its generations: payload, headers and repetitions.
	BytesOut, BytesIn uint64
	// Restarts counts the generations lost so far.
	Restarts uint64
	// Since says how long the rail has been in State.
	Since time.Duration
}
