package replica

import (
	"errors"
	"fmt"
	"slices"
)

// Name names a member: the address of its node.
type Name string

// Roster is what all members agree on, through a consensus that is not part of this package. Owner: the consensus; every
// other holder has a copy, perhaps an old one.
type Roster struct {
	Epoch   uint64 // counts primaries; 0: there was none yet
	Version uint64 // counts changes of the in-sync set
	Primary Name
	Members []Name // in order
	InSync  []Name // in order. Invariant: a quorum of the members at least
}

// Quorum is how many members must have what is acknowledged: a majority.
func (r *Roster) Quorum() int { return len(r.Members)/2 + 1 }

// Has tells whether a member is in sync.
func (r *Roster) Has(n Name) bool { return slices.Contains(r.InSync, n) }

// Newer tells whether r has come after o.
func (r *Roster) Newer(o *Roster) bool {
	return r.Epoch > o.Epoch || r.Epoch == o.Epoch && r.Version > o.Version
}

// Command is a change of the roster, proposed by somebody who saw Epoch and Version in force. An election names
// the Primary of the epoch that comes next; a change of the in-sync set names the set.
type Command struct {
	Epoch, Version uint64
	Primary        Name
	InSync         []Name
}

// Why a command is refused; compare with errors.Is. A Roster of its own shows what is in force.
var (
	ErrOvertaken = errors.New("the roster has changed meanwhile: look at it again")
	ErrStranger  = errors.New("no such member: name one of the roster")
	ErrTooFew    = errors.New("the in-sync set would be smaller than a quorum: wait until more members are back")
)

// Found makes the first roster: everybody is in sync, since everybody is empty.
func Found(members []Name) (Roster, error) {
	all := slices.Clone(members)
	slices.Sort(all)
	if len(all) == 0 || len(slices.Compact(slices.Clone(all))) != len(all) {
		return Roster{}, fmt.Errorf("members %v: name each once, and one at least", members)
	}
	return Roster{Members: all, InSync: slices.Clone(all)}, nil
}

// Apply gives the roster after a command, or says why it is refused. It changes nothing in r.
func (r *Roster) Apply(c Command) (Roster, error) {
	if c.Epoch != r.Epoch || c.Primary == "" && c.Version != r.Version {
		return *r, fmt.Errorf("%w (epoch %d, version %d)", ErrOvertaken, r.Epoch, r.Version)
	}
	next := *r
	if c.Primary != "" {
		if !slices.Contains(r.Members, c.Primary) {
			return *r, fmt.Errorf("%w: %s", ErrStranger, c.Primary)
		}
		next.Epoch, next.Primary = r.Epoch+1, c.Primary
		return next, nil
	}
	set := slices.Clone(c.InSync)
	slices.Sort(set)
	set = slices.Compact(set)
	for _, n := range set {
		if !slices.Contains(r.Members, n) {
			return *r, fmt.Errorf("%w in the in-sync set: %s", ErrStranger, n)
		}
	}
	if len(set) < r.Quorum() {
		return *r, fmt.Errorf("%w: %v of %d members", ErrTooFew, set, len(r.Members))
	}
	next.Version, next.InSync = r.Version+1, set
	return next, nil
}
