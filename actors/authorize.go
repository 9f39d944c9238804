package actors

import (
	"fmt"
	"strings"
)

// Access is what a peer wants of an actor of this node.
type Access struct {
	// Peer is the address of the peer's node. That it is one of ours is what Secret proves; that it is this one, nothing does.
	Peer string
	// Target is the id of the actor that is addressed. Of a spawn: the name that it is to have; empty: any.
	Target string
	// Message is the name of the message's type, such as "actor.Watch" or "google.protobuf.StringValue".
	Message string
	// Kind is the kind of a spawn; empty: it is none.
	Kind string
}

// guard says what peers may have. Nil: everything.
type guard struct {
	names    map[string]struct{}
	prefixes []string
	ask      func(Access) error
}

// newGuard gives nil where nothing is to be asked.
func newGuard(c *Config) *guard {
	if len(c.Allow) == 0 && c.Authorize == nil {
		return nil
	}
	g := &guard{ask: c.Authorize}
	for _, name := range c.Allow {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			g.prefixes = append(g.prefixes, prefix)
			continue
		}
		if g.names == nil {
			g.names = make(map[string]struct{}, len(c.Allow))
		}
		g.names[name] = struct{}{}
	}
	return g
}

// answers are types of messages that protoactor sends to whoever has asked, watched or sent before.
var answers = map[string]bool{"actor.Terminated": true, "actor.DeadLetterResponse": true}

// authorize tells whether the peer may have that.
func (n *Node) authorize(a Access) error {
	g := n.guard
	if g == nil || a.Kind == "" && (isFuture(a.Target) || answers[a.Message]) {
		return nil
	}
	if a.Kind == "" && !g.listed(a.Target) {
		return fmt.Errorf("%s is not in Config.Allow: %w", a.Target, ErrNotAllowed)
	}
	if g.ask == nil {
		return nil
	}
	if err := g.ask(a); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return nil
}

func (g *guard) listed(id string) bool {
	if g.names == nil && g.prefixes == nil {
		return true
	}
	if _, ok := g.names[id]; ok {
		return true
	}
	for _, prefix := range g.prefixes {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}
