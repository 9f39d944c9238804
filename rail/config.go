package rail

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/supervision"
	"railyard/wire"
)

// ErrConfig is wrapped by every error of Config.Validate.
var ErrConfig = errors.New("rail settings refused")

// Config is all that an endpoint gives one of its rails. It is not changed after Props.
type Config struct {
	// ID numbers the rail in its session, the same at both ends. Peer names the node at the other end.
	ID   wire.RailID
	Peer string
	// Local and Remote are the two devices' addresses, as Kind dials them and as events name them.
	Local, Remote string
	// Kind makes the connections. Only a rail that dials needs one.
	Kind Kind
	// Dials: this side opened the session and dials; the other side only accepts.
	Dials bool

	// Joiner is the session's side; required.
	Joiner Joiner
	// Policy judges failures; required.
	Policy supervision.Policy
	// Probation says how long a rail that is back gets a reduced share (nil: supervision.Probation).
	Probation func(supervision.History) time.Duration
	Health    HealthConfig
	// DialTimeout and HandshakeTimeout bound a dial's two phases (1 s, 2 s).
	DialTimeout, HandshakeTimeout time.Duration
	// ReportAfter: a rail that is not up after this long is reported as RailNeverUp, once (5 s).
	ReportAfter time.Duration

	// Clock is the monotonic time since the node's start; required.
	Clock func() time.Duration
	// Track runs f in a goroutine that the endpoint joins before its shutdown ends; required. f ends within the
	// timeouts above, or sooner when the rail stops.
	Track func(f func())
	// Events and Logger may be nil.
	Events *Events
	Logger *zap.Logger
	// RailProps and TransportProps let users add middleware; they may be nil.
	RailProps, TransportProps func(*actor.Props) *actor.Props
}

// Validate names the field that is missing or out of range. The error wraps ErrConfig or ErrHealth.
func (c Config) Validate() error {
	for _, need := range []struct {
		missing bool
		field   string
	}{
		{c.Joiner == nil, "Joiner"}, {c.Policy == nil, "Policy"}, {c.Clock == nil, "Clock"},
		{c.Track == nil, "Track"}, {c.Dials && c.Kind == nil, "Kind (the rail dials)"},
		{c.Dials && c.Remote == "", "Remote (the rail dials)"},
	} {
		if need.missing {
			return fmt.Errorf("%w: %s is required", ErrConfig, need.field)
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"DialTimeout", c.DialTimeout}, {"HandshakeTimeout", c.HandshakeTimeout}, {"ReportAfter", c.ReportAfter},
	} {
		if d.value < 0 {
			return fmt.Errorf("%w: %s is %s: give a positive time, or 0 for the default", ErrConfig, d.field, d.value)
		}
	}
	return c.Health.Validate()
}

func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = time.Second
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = 2 * time.Second
	}
	if c.ReportAfter == 0 {
		c.ReportAfter = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Probation == nil {
		c.Probation = supervision.Probation
	}
	c.Health = c.Health.WithDefaults()
	return c
}

// throughput is how many messages an actor of ours serves in a sender's goroutine before it lets others run.
const throughput = 64

// Props makes the rail actor. The endpoint spawns it as its child, and sends Connect where it dials. The
// endpoint's supervisor may restart it after a bug: it then takes up where it was, with a new generation.
func Props(cfg Config) (*actor.Props, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	kept := &memory{}
	props := actor.PropsFromProducer(
		func() actor.Actor { return newRailActor(&cfg, kept) },
		actor.WithDispatcher(actor.NewSynchronizedDispatcher(throughput)),
	)
	if cfg.RailProps != nil {
		props = cfg.RailProps(props)
	}
	return props, nil
}
