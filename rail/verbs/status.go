package verbs

import (
	"fmt"
	"strconv"
)

// Status is how a request ended; 0 is well.
type Status uint32

// The endings that are told apart.
const (
	Flushed       Status = 5  // the queue pair was in the error state already
	RemoteInvalid Status = 9  // the peer's card could not take the request
	RemoteAccess  Status = 10 // the key is unknown there, or does not allow it
	RetriesOver   Status = 12 // the peer did not answer
	NotReadyOver  Status = 13 // the peer posted no receive
)

func (s Status) String() string {
	switch s {
	case Flushed:
		return "flushed, the queue pair was in the error state"
	case RemoteInvalid:
		return "the peer's card could not take the request"
	case RemoteAccess:
		return "the peer's card refused the key"
	case RetriesOver:
		return "the peer's card did not answer"
	case NotReadyOver:
		return "the peer posted no receive in time"
	}
	return "status " + strconv.Itoa(int(s)) + " of ibv_wc_status"
}

// StatusError is a request that failed. The queue pair can do nothing more.
type StatusError struct {
	Status Status
	Vendor uint32
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("verbs: %s (vendor %#x)", e.Status, e.Vendor)
}
