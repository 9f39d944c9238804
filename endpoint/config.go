package endpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/supervision"
)

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("endpoint settings refused")

// Config is what a node gives its endpoints. It is not changed after Start.
type Config struct {
	System *actor.ActorSystem
	// Host takes deliveries and is told of endpoints; required.
	Host Host
	// Kinds are the transports by name ("tcp"); each binding's kind must be there.
	Kinds map[string]rail.Kind
	// Bindings are the local devices; none: every usable card of the host. Those of cards, and cards that are found, are followed
	// while the node runs: DeviceAway is how long one may be away until its rails end (1 min).
	Bindings   []rail.Binding
	DeviceAway time.Duration
	// Name is shown to people; Advertise is the address in this node's PIDs (default: the first binding's).
	Name, Advertise string
	// Secret is shared by all nodes; empty: each session has a random token of its own.
	Secret []byte
	// TLS encrypts the rails that can be, where the peer has it too; RequireTLS takes no others. A peer's certificate must be for the host
	// of its node's address, or for TLS.ServerName where that is set.
	TLS        *tls.Config
	RequireTLS bool
	// Policy judges failures; nil: supervision's default.
	Policy supervision.Policy
	// OutageLimit is how long an endpoint outlives the last rail on which its peer was heard of (30 s); CancelWait bounds
	// the wait for a canceled operation's verdict where its context is the one that ended (5 s).
	OutageLimit, CancelWait time.Duration
	// Health sets the rails' heartbeats.
	Health rail.HealthConfig
	// Session sets windows and limits.
	Session session.Config
	// MaxPending bounds connections whose handshake is not done (1024): beyond it the oldest makes room.
	// HandshakeTimeout bounds their time (5 s).
	MaxPending       int
	HandshakeTimeout time.Duration
	// MaxPeers bounds endpoints (4096).
	MaxPeers int
	// MaxRegions bounds registered regions (1048576).
	MaxRegions int
	Logger     *zap.Logger
	Events     *rail.Events
	// Links says when a local card's carrier or address comes or goes; nil: netlink. Look tells what this host has; nil: rail.Look.
	Links rail.LinkSource
	Look  func() (rail.Host, error)
	// Shares: the host says by Endpoint.Processed what each target has processed, so that no target takes all of a window.
	// Both ends of a session have it, or neither.
	Shares bool
	// RailProps and TransportProps let users add middleware; they may be nil.
	RailProps, TransportProps func(*actor.Props) *actor.Props
}

// Host is what an endpoint asks of the node above: actors implements it.
type Host interface {
	// Deliver hands a message to a local actor. It is called without a lock, from a connection's reader, and must not
	// block. Readers of one endpoint may call it at the same time, for different targets. Unless d.Owned its slices are valid
	// during the call only. What it has cost is given back by Endpoint.Consumed.
	Deliver(from *Endpoint, d *session.Delivery)
	// Marshal makes the message that rma.Notify names; its target is an actor at the peer.
	Marshal(pid rma.PID, message any) (*Outgoing, error)
	// Undelivered: a message of ours that is not known to have arrived and will not be sent again. to is nil where
	// no endpoint was ever made.
	Undelivered(to *Endpoint, m *Outgoing, err error)
	// EndpointUp is called when a peer's first rail is up; EndpointDown once, when the endpoint has ended.
	EndpointUp(e *Endpoint)
	EndpointDown(e *Endpoint, cause error)
}

// Outgoing is a message to an actor of a peer.
type Outgoing struct {
	// Target is the actor's id at the peer. Sender is the sending PID as "address/id"; it may be nil. Type is the name by
	// which the peer decodes Payload.
	Target, Sender, Type *Ref
	// System messages are never held up by a full window.
	System  bool
	Headers []byte
	// Payload may be reused after the call unless it is larger than wire.MaxInline: then it is the endpoint's.
	Payload []byte
	// Address is the peer's, where the message comes back (Host.Undelivered).
	Address string
	// waited: it was admitted before there was an endpoint; its target's share does not hold it up again.
	waited bool
}

// Ref is a name in messages to one route; it remembers its number in the session in use.
//
// Owner: one Route, under the lock of its endpoint. A Ref must not be used with two routes.
type Ref struct {
	S    string
	once bool
	name *session.Name
	in   *session.Identity // not the session: a name is remembered for longer than an epoch lasts
}

// NewRef makes a Ref of a name.
func NewRef(s string) *Ref { return &Ref{S: s} }

// NewRefOnce makes a Ref of a name that is used once, such as a future's: it takes no place in the session's tables.
func NewRefOnce(s string) *Ref { return &Ref{S: s, once: true} }

// resolve gives the name's record in the session.
func (r *Ref) resolve(s *session.Session) *session.Name {
	if r == nil {
		return nil
	}
	switch id := s.Identity(); {
	case r.in == id:
	case r.once:
		r.name, r.in = session.Inline(r.S), id
	default:
		r.name, r.in = s.Intern(r.S), id
	}
	return r.name
}

func (c Config) withDefaults() (Config, error) {
	for _, need := range []struct {
		missing bool
		field   string
	}{{c.System == nil, "System"}, {c.Host == nil, "Host"}} {
		if need.missing {
			return c, fmt.Errorf("%w: %s is required", ErrConfig, need.field)
		}
	}
	for _, d := range []struct {
		field string
		value *time.Duration
		def   time.Duration
	}{
		{"OutageLimit", &c.OutageLimit, 30 * time.Second}, {"CancelWait", &c.CancelWait, 5 * time.Second},
		{"HandshakeTimeout", &c.HandshakeTimeout, 5 * time.Second}, {"DeviceAway", &c.DeviceAway, time.Minute},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("%w: %s is %s: give a positive time, or 0 for %s", ErrConfig, d.field, *d.value, d.def)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	for _, n := range []struct {
		field string
		value *int
		def   int
	}{{"MaxPending", &c.MaxPending, 1024}, {"MaxPeers", &c.MaxPeers, 4096}} {
		if *n.value < 0 {
			return c, fmt.Errorf("%w: %s is %d: give a positive number, or 0 for %d", ErrConfig, n.field, *n.value, n.def)
		}
		if *n.value == 0 {
			*n.value = n.def
		}
	}
	names := make([]string, 0, len(c.Kinds))
	for name := range c.Kinds {
		names = append(names, name)
	}
	if err := rail.ValidateBindings(c.Bindings, names...); err != nil {
		return c, fmt.Errorf("%w: Rails: %w", ErrConfig, err)
	}
	for i, b := range c.Bindings {
		if c.Kinds[b.Kind] == nil {
			return c, fmt.Errorf("%w: Rails: rail %d (%s) is of kind %q, which this node cannot carry", ErrConfig, i, b, b.Kind)
		}
	}
	if err := c.checkTLS(); err != nil {
		return c, err
	}
	if err := c.Health.Validate(); err != nil {
		return c, fmt.Errorf("%w: Health: %w", ErrConfig, err)
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Events == nil {
		c.Events = rail.NewEvents()
	}
	c.Session.PeerMaxOpen = session.MaxOpenLimit // peers may have other settings than this node
	var err error
	c.Session, err = c.Session.WithDefaults()
	return c, err
}
