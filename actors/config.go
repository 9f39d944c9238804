package actors

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/admin"
	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/tcp"
	"railyard/supervision"
)

// Defaults of Config, where a field's zero value does not say it all.
const (
	DefaultOutageLimit = 30 * time.Second
	DefaultCancelWait  = 5 * time.Second
	DefaultSendWait    = 5 * time.Second
	DefaultMaxMessage  = 64 << 20

	DefaultStreamWindow = 4 << 20
	DefaultMaxStreams   = 4096

	DefaultMaxSpawned = 65536
)

// ErrConfig is wrapped by every error of Start about a Config. The text names the field and its
// value.
var ErrConfig = errors.New("node settings refused")

// Config says how a node is reached and what it bears. The zero value is usable: every field's zero
// is a documented default. Bad values are refused by Start, never corrected. It is not changed
// after Start.
type Config struct {
	// Rails are the local cards that carry this node, one binding each: rail.TCP("10.0.0.1:7400") for
	// an address, rail.Card("eth1", 7400) for whatever address a card has.
	// Empty: every usable card that is found, each at a port that the system chooses; loopback,
	// where there is none. A node that others are to find by a known address names its rails.
	//
	// Cards that are found or named are followed while the node runs: one that comes up joins, one
	// that is away for a minute ends (its rails, at both ends) until it is back. An address that is
	// named is kept however long it is away.
	Rails []rail.Binding
	// Name is shown in logs and dashboards. Empty: the node's address.
	Name string
	// Advertise is the address in this node's PIDs, "host:port" as peers dial it. Empty: the first
	// rail's.
	Advertise string
	// Secret is shared by all nodes: who does not know it gets in nowhere. Empty: none, and then a
	// session is only protected from strangers who cannot read its traffic.
	Secret []byte
	// TLS encrypts rails over TCP (TLS 1.3), where the peer has it too. It needs a certificate, which both ends
	// show, and the authorities to trust: RootCAs, and ClientCAs where those of callers differ. A
	// peer's certificate must be for the host of its node's address, or for TLS.ServerName where that is set. TLSFiles makes one of
	// files that may change. Nil: none.
	TLS *tls.Config
	// RequireTLS takes no rail but encrypted ones, in either direction. Without it a node that has TLS still
	// takes plain rails to and from nodes that have none, for as long as they are being given theirs.
	RequireTLS bool

	// Policy judges failures of rails. Nil: supervision.Default.
	Policy supervision.Policy
	// OutageLimit is how long an endpoint outlives the last rail on which its peer was heard of. 0: 30 s.
	OutageLimit time.Duration
	// CancelWait bounds the wait for the verdict on a canceled operation where the context is the
	// one that was canceled. 0: 5 s.
	CancelWait time.Duration
	// SendWait is how long a plain Send waits for room in the peer's window, or for its target to
	// process something where that has its share of the window; after that the message is a dead
	// letter whose cause is rma.ErrWindowFull. Of Sends to one target that give up one after the
	// other each waits half as long as the one before, 10 ms at least. 0: 5 s.
	SendWait time.Duration
	// Health sets the heartbeats of rails; zero fields are its own defaults.
	Health rail.HealthConfig

	// MaxMessage is the largest message that this node takes, in bytes. 0: 64 MiB.
	MaxMessage uint64
	// Window is how many bytes of messages a peer may have under way to this node, until its actors
	// have processed them: at least
	// MaxMessage * 5/4 + 128 KiB. 0: that, or 64 MiB where that is more.
	Window uint64
	// MaxOpen bounds the open operations to one peer, 1048576 at most. 0: 262144.
	MaxOpen int
	// MaxRegions bounds the registered regions. 0: 1048576.
	MaxRegions int
	// StreamWindow is how many bytes of one stream (Node.Listen) wait here to be read, and the size of the memory
	// that is registered for a stream once large writes come: 64 KiB to 1 GiB. 0: 4 MiB.
	StreamWindow uint64
	// MaxStreams bounds the open streams that peers have dialed. 0: 4096.
	MaxStreams int
	// MaxPeers bounds the endpoints of this node. 0: 4096.
	MaxPeers int

	// Kinds is what peers may spawn here (Node.Spawn there), by name; nothing else. Nil: nothing. Their actors are stopped by
	// Shutdown, when they have processed what they have.
	Kinds map[string]*actor.Props
	// MaxSpawned bounds the living actors that were spawned for peers. 0: 65536.
	MaxSpawned int
	// Allow are the ids of the actors that peers may address; one that ends in * stands for all that begin so. Empty: all.
	// What answers a future, a Watch or a dead letter needs no entry; an actor that gets answers to its requests does.
	Allow []string
	// Authorize is asked for everything that a peer wants, of what Allow allows, and for each spawn: with an error the
	// peer does not get it, and learns so as ErrNotAllowed. It runs in a connection's reader, from many goroutines at
	// once, and must not block. Nil: everything is allowed.
	Authorize func(Access) error
	// Serializers write and read messages beside protobuf, raw bytes and JSON. A message goes by the one that its
	// SerializerHeader names; without that, protobuf messages by protobuf, and others by the first that takes them. Nil: none.
	Serializers []Serializer
	// JSONTypes are types that travel as JSON, by the name that both nodes give them, each with a sample: &Order{} for
	// messages of type *Order. Nil: none.
	JSONTypes map[string]any
	// Transports are kinds of rail beside those that are built in ("tcp"), for bindings that name
	// them.
	Transports []rail.Kind
	// RailProps and TransportProps let users add middleware to the actors of rails and transports.
	// Nil: as they are.
	RailProps, TransportProps func(*actor.Props) *actor.Props
	// Admin is where the node shows itself to people and to Prometheus (package admin): an IP address with a port, on loopback unless
	// AdminToken is set, which has 16 characters at least and is asked of everybody who looks. Empty: nowhere.
	Admin, AdminToken string
	// Logger gets the framework's log. Nil: nothing is logged.
	Logger *zap.Logger
}

// withDefaults checks everything that can be checked without touching the network, and fills zeros
// in.
func (c Config) withDefaults() (Config, error) {
	if err := c.checkTLS(); err != nil {
		return c, err
	}
	if err := c.checkDurations(); err != nil {
		return c, err
	}
	if err := c.checkLimits(); err != nil {
		return c, err
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if err := errors.Join(c.checkKinds(), c.checkSerializers()); err != nil {
		return c, err
	}
	if c.Advertise != "" {
		if err := checkAdvertise(c.Advertise); err != nil {
			return c, err
		}
	}
	if err := c.checkAdmin(); err != nil {
		return c, err
	}
	return c, c.checkRails()
}

func (c *Config) checkAdmin() error {
	if c.Admin == "" {
		if c.AdminToken != "" {
			return refused("AdminToken", "set", "Admin is empty, so there is no page: give it an address, or leave the token out")
		}
		return nil
	}
	if err := admin.Validate(c.Admin, c.AdminToken); err != nil {
		return fmt.Errorf("%w: Admin: %w", ErrConfig, err)
	}
	return nil
}

func (c *Config) checkTLS() error {
	if c.RequireTLS && c.TLS == nil {
		return refused("RequireTLS", true, "TLS is nil, so no rail could be encrypted: give TLS a certificate")
	}
	return nil
}

func (c *Config) checkKinds() error {
	for name, props := range c.Kinds {
		if name == "" || props == nil {
			return refused("Kinds", fmt.Sprintf("%q: %v", name, props), "give each kind a name and its props")
		}
	}
	for i, id := range c.Allow {
		if id == "" {
			return refused("Allow["+strconv.Itoa(i)+"]", `""`, "give an actor's id, or the beginning of some and a *")
		}
	}
	return nil
}

func (c *Config) checkDurations() error {
	for _, d := range []struct {
		field string
		value *time.Duration
		def   time.Duration
	}{
		{"OutageLimit", &c.OutageLimit, DefaultOutageLimit},
		{"CancelWait", &c.CancelWait, DefaultCancelWait},
		{"SendWait", &c.SendWait, DefaultSendWait},
	} {
		if *d.value < 0 {
			return refused(d.field, *d.value, fmt.Sprintf("give a positive time, or 0 for %s", d.def))
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if err := c.Health.Validate(); err != nil {
		return fmt.Errorf("%w: Health: %w", ErrConfig, err)
	}
	return nil
}

func (c *Config) checkLimits() error {
	for _, n := range []struct {
		field string
		value int
	}{{"MaxOpen", c.MaxOpen}, {"MaxRegions", c.MaxRegions}, {"MaxPeers", c.MaxPeers}, {"MaxStreams", c.MaxStreams},
		{"MaxSpawned", c.MaxSpawned}} {
		if n.value < 0 {
			return refused(n.field, n.value, "give a positive number, or 0 for the default")
		}
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = DefaultMaxStreams
	}
	if c.MaxSpawned == 0 {
		c.MaxSpawned = DefaultMaxSpawned
	}
	if c.StreamWindow == 0 {
		c.StreamWindow = DefaultStreamWindow
	}
	if c.StreamWindow < leastStreamWindow || c.StreamWindow > maxStreamWindow {
		return refused("StreamWindow", c.StreamWindow,
			fmt.Sprintf("from %d to %d bytes, or 0 for the default", leastStreamWindow, maxStreamWindow))
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.MaxMessage > maxMaxMessage {
		return refused("MaxMessage", c.MaxMessage,
			fmt.Sprintf("at most %d: larger data travels by Put into a registered region", uint64(maxMaxMessage)))
	}
	if need := windowFor(c.MaxMessage); c.Window != 0 && c.Window < need {
		return refused("Window", c.Window,
			fmt.Sprintf("at least %d, to let messages of MaxMessage (%d) through; or 0 for the default",
				need, c.MaxMessage))
	}
	_, err := c.session().WithDefaults()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// maxMaxMessage is what protobuf itself can encode.
const maxMaxMessage = 1<<31 - 1

// windowFor is the smallest window that lets a message of that size through: a grant is said again
// once an eighth of the window is free.
func windowFor(message uint64) uint64 { return message + message/4 + 128<<10 }

func (c *Config) session() session.Config {
	return session.Config{Window: c.Window, MaxMessage: c.MaxMessage, MaxOpen: c.MaxOpen}
}

// checkRails names the binding's field where one is wrong.
func (c *Config) checkRails() error {
	kinds, err := c.transports()
	if err != nil {
		return err
	}
	extra := make([]string, 0, len(c.Transports))
	for _, k := range c.Transports {
		extra = append(extra, k.Name())
	}
	if err := rail.ValidateBindings(c.Rails, extra...); err != nil {
		return fmt.Errorf("%w: Rails: %w", ErrConfig, err)
	}
	for i, b := range c.Rails {
		if kinds[b.Kind] == nil {
			return refused("Rails["+strconv.Itoa(i)+"]", b.String(),
				fmt.Sprintf("rails of kind %q are not built yet: use rail.TCP", b.Kind))
		}
	}
	return nil
}

// transports are the kinds of rail that this node can carry, by name.
func (c *Config) transports() (map[string]rail.Kind, error) {
	kinds := map[string]rail.Kind{rail.KindTCP: tcp.New(tcp.Config{Logger: c.Logger})}
	for i, k := range c.Transports {
		field := "Transports[" + strconv.Itoa(i) + "]"
		if k == nil || k.Name() == "" {
			return nil, refused(field, k, "give a transport that has a name")
		}
		if kinds[k.Name()] != nil {
			return nil, refused(field, k.Name(), "that kind is there already: give it another name")
		}
		kinds[k.Name()] = k
	}
	return kinds, nil
}

// checkAdvertise accepts host names: peers resolve them.
func checkAdvertise(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return refused("Advertise", address, `want "host:port" as peers dial it: `+err.Error())
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return refused("Advertise", address, "peers need a port from 1 to 65535")
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return refused("Advertise", address, "peers cannot dial an unspecified host: give one that they reach")
	}
	return nil
}

func refused(field string, value any, advice string) error {
	return fmt.Errorf("%w: %s is %v: %s", ErrConfig, field, value, advice)
}
