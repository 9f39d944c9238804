package sabotage

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"railyard/cmd/railyard/internal/cable"
	"railyard/internal/load"
)

// Kind is the promise that is broken.
type Kind uint8

// The kinds; None does nothing.
const (
	None Kind = iota
	Drop
	Double
	Reorder
	LateWrite
)

var kinds = [...]string{"none", "drop", "double", "reorder", "late-write"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("sabotage %d", uint8(k))
}

// ErrKind says that there is no such sabotage.
var ErrKind = errors.New("unknown sabotage")

// Parse reads a kind's name. "" and "none" are None.
func Parse(name string) (Kind, error) {
	if name == "" {
		return None, nil
	}
	for i, n := range kinds {
		if n == name {
			return Kind(i), nil
		}
	}
	return None, fmt.Errorf("%w %q; there are %s", ErrKind, name, strings.Join(kinds[1:], ", "))
}

// FillerPut is the size in bytes of a put for nobody, which the load makes.
const FillerPut = load.FillerPut

// Config of a Saboteur.
type Config struct {
	Kind     Kind
	Numbered string        // type name of the messages that are counted
	Filler   string        // type name of the messages for nobody
	Start    time.Duration // on Now's clock: nothing is done before
	Every    time.Duration // between two deeds
	Limit    int           // deeds in all
	Now      func() time.Duration
}

// How old a put must be, and may be, for late-write to overwrite its bytes: verified and given back, but not yet
// looked at again, which the load does after more than 2 s.
const (
	oldEnough = 800 * time.Millisecond
	tooOld    = 2000 * time.Millisecond
)

// Saboteur decides when something is broken. Safe from any goroutine.
type Saboteur struct {
	config Config

	mu sync.Mutex
	// Owner: mu.
	deeds int
	next  time.Duration
	// olds are the starts of earlier puts of all connections; the newest overwrites the oldest.
	olds [256]old
	put  int
}

// old is the beginning of an earlier put.
type old struct {
	region, base uint64
	at           time.Duration
	valid        bool
	data         [FillerPut]byte
}

// New makes a Saboteur.
func New(config Config) *Saboteur {
	return &Saboteur{config: config, next: config.Start}
}

// Deeds gives how often something was broken.
func (s *Saboteur) Deeds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deeds
}

// Editor makes the editor of a new connection.
func (s *Saboteur) Editor() cable.Editor {
	return &editor{saboteur: s, kind: s.config.Kind, names: map[uint16]string{}}
}

// due tells whether a deed may be done now.
func (s *Saboteur) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deeds < s.config.Limit && s.config.Now() >= s.next
}

// done counts a deed.
func (s *Saboteur) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deeds++
	s.next = s.config.Now() + s.config.Every
}

// remember keeps the beginning of a put.
func (s *Saboteur) remember(region, base uint64, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := old{region: region, base: base, at: s.config.Now(), valid: true}
	copy(o.data[:], data)
	s.olds[s.put] = o
	s.put = (s.put + 1) % len(s.olds)
}

// recall gives an earlier put to a region whose bytes have been given back since, and forgets it.
func (s *Saboteur) recall(region uint64) (old, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	for i := range s.olds {
		o := &s.olds[i]
		age := now - o.at
		if o.valid && o.region == region && age >= oldEnough && age <= tooOld {
			o.valid = false
			return *o, true
		}
	}
	return old{}, false
}
