package endpoint

import (
	"time"

	"railyard/wire"
)

// graves remembers the sessions that have ended here of late: none of them is opened again. The peer may still live in
// one, with counts of its own, and an early hello of its be under way.
//
// Owner: Manager.mu. Invariant: at most room of them, the oldest first.
type graves struct {
	list []grave
	room int
	// keep is how long they matter: longer than a greeted caller may take to say its hello.
	keep time.Duration
}

type grave struct {
	id [wire.SessionSize]byte
	at time.Duration
}

// bury notes that a session has ended.
func (g *graves) bury(now time.Duration, id [wire.SessionSize]byte) {
	old := 0
	for old < len(g.list) && (now-g.list[old].at > g.keep || len(g.list)-old >= g.room) {
		old++
	}
	g.list = append(g.list[old:], grave{id, now})
}

// holds tells whether a session is remembered.
func (g *graves) holds(id [wire.SessionSize]byte) bool {
	for i := range g.list {
		if g.list[i].id == id {
			return true
		}
	}
	return false
}
