package endpoint

import (
	"time"

	"railyard/wire"
)

// graves remembers the sessions that have ended here of late: none of them is opened again. The peer may still live in
// one, with counts of its own, and an early hello of its be under way. Their keys are kept, so that it believes us that they are over.
//
// Owner: Manager.mu. Invariant: at most room of them, the oldest first.
type graves struct {
	list []grave
	room int
	// keep is how long they matter: longer than a greeted caller may take to say its hello.
	keep time.Duration
}

type grave struct {
	id  [wire.SessionSize]byte
	key []byte
	at  time.Duration
}

// bury notes that a session has ended.
func (g *graves) bury(now time.Duration, id [wire.SessionSize]byte, key []byte) {
	old := 0
	for old < len(g.list) && (now-g.list[old].at > g.keep || len(g.list)-old >= g.room) {
		old++
	}
	g.list = append(g.list[old:], grave{id, key, now})
}

// find gives the key of a session that is remembered.
func (g *graves) find(id [wire.SessionSize]byte) (key []byte, ok bool) {
	for i := range g.list {
		if g.list[i].id == id {
			return g.list[i].key, true
		}
	}
	return nil, false
}
