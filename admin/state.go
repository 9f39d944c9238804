package admin

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"railyard/snapshot"
)

// sampleEvery is the shortest time between two snapshots.
const sampleEvery = 500 * time.Millisecond

// state is the snapshot that all who look share.
type state struct {
	sample func() []byte

	mu sync.Mutex
	// Owner: mu. It is held while a snapshot is made: who comes meanwhile shares it.
	text  []byte // JSON on one line; never changed
	taken time.Time
	count uint64 // snapshots made
}

// now gives a snapshot that is at most sampleEvery old, its number, and how long it will do.
func (s *state) now() (text []byte, number uint64, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.taken)
	if s.text == nil || age >= sampleEvery {
		s.text, s.taken, age = s.sample(), time.Now(), 0
		s.count++
	}
	return s.text, s.count, sampleEvery - age
}

// sample makes a snapshot, with the log and the panels.
func (s *Server) sample() []byte {
	n := s.cfg.Look()
	s.log.Fill(&n)
	for _, p := range s.cfg.Panels {
		if p.State == nil {
			continue
		}
		if n.Panels == nil {
			n.Panels = make(map[string]json.RawMessage)
		}
		text, err := encode(p.State())
		if err != nil {
			text, _ = encode(map[string]string{"error": "the panel's state is no JSON: " + err.Error()}) // strings always are
		}
		n.Panels[p.Name] = text
	}
	text, err := encode(n)
	if err != nil { // a rate that is no number, say: nothing that a node should have
		text, _ = encode(snapshot.Node{At: n.At, Name: n.Name, Address: n.Address, Version: "unreadable: " + err.Error()})
	}
	return text
}

// encode gives JSON on one line without escapes for HTML, which nothing here is put into.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
