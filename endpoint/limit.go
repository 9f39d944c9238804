package endpoint

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"railyard/rail"
)

// This file: what strangers may cost. A connection whose handshake is not done takes a place; places are bounded for the node, and for each
// host that calls; and the lines that they can write into our log are.

const (
	// linesAtOnce and lineEvery bound the lines of one sort that callers can cause.
	linesAtOnce = 20
	lineEvery   = time.Second
)

// lines lets a few lines through, and counts the others.
type lines struct {
	mu sync.Mutex
	// Owner of the rest: mu.
	room   time.Duration // how much time of silence has been saved up, as lineEvery a line
	last   time.Duration
	hushed uint64
	begun  bool
}

// allow tells whether a line may be written now, and how many were not since the last one.
func (l *lines) allow(now time.Duration) (hushed uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		l.begun, l.room, l.last = true, linesAtOnce*lineEvery, now
	}
	l.room = min(l.room+now-l.last, linesAtOnce*lineEvery)
	l.last = now
	if l.room < lineEvery {
		l.hushed++
		return 0, false
	}
	l.room -= lineEvery
	hushed, l.hushed = l.hushed, 0
	return hushed, true
}

// caution writes a warning that others can cause, unless there were too many of them of late.
func (m *Manager) caution(text string, fields ...zap.Field) {
	hushed, ok := m.lines.allow(m.now())
	if !ok {
		return
	}
	if hushed > 0 {
		fields = append(fields, zap.Uint64("lines left out", hushed))
	}
	m.log.Warn(text, fields...)
}

// guest is a connection whose handshake is not done: when it came, and from where.
type guest struct {
	order uint64
	host  string
}

// guests are all of them.
//
// Invariant: by counts those of each host; a host has MaxPending/2 at most, all together MaxPending.
type guests struct {
	all  map[rail.Conn]guest
	by   map[string]int
	come uint64
}

func newGuests() guests { return guests{all: make(map[rail.Conn]guest), by: make(map[string]int)} }

// enter counts a connection in. Where there are too many it gives the one that makes room: the oldest of the same host where that has
// half of the places, else the oldest. A peer is done in milliseconds, so it is a stranger who keeps us waiting.
func (g *guests) enter(conn rail.Conn, limit int) (dropped rail.Conn) {
	host := hostOf(conn.RemoteAddr())
	switch {
	case g.by[host] >= max(1, limit/2):
		dropped = g.oldest(host)
	case len(g.all) >= limit:
		dropped = g.oldest("")
	}
	if dropped != nil {
		g.leave(dropped)
	}
	g.all[conn] = guest{order: g.come, host: host}
	g.by[host]++
	g.come++
	return dropped
}

// oldest gives the one that has been here longest; host: of one host only.
func (g *guests) oldest(host string) (oldest rail.Conn) {
	first := g.come
	for c, who := range g.all {
		if who.order < first && (host == "" || who.host == host) {
			oldest, first = c, who.order
		}
	}
	return oldest
}

func (g *guests) leave(conn rail.Conn) {
	who, here := g.all[conn]
	if !here {
		return
	}
	delete(g.all, conn)
	if g.by[who.host]--; g.by[who.host] == 0 {
		delete(g.by, who.host)
	}
}
