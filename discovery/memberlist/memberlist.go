package memberlist

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"time"

	hashicorp "github.com/hashicorp/memberlist"
	"go.uber.org/zap"
)

// ErrConfig is wrapped by the errors of Join about its settings.
var ErrConfig = errors.New("memberlist settings refused")

// Config says who this member is.
type Config struct {
	// Node is the address of this process's node: what the others find.
	Node string
	// Bind is where the list listens, UDP and TCP: "10.0.0.1:7946". Port 0: any free one, see Finder.Bound.
	Bind string
	// Seeds are where other members listen. One that is there is enough. None: the others join this one.
	Seeds []string
	// Secret encrypts the list; the same on all members. Empty: it is readable.
	Secret []byte
	// Change may change the settings further. Nil: they are memberlist's for local networks.
	Change func(*hashicorp.Config)
	// Logger gets the list's log. Nil: nothing is logged.
	Logger *zap.Logger
}

// Finder is a member of the list. It implements discovery.Changing.
type Finder struct {
	list    *hashicorp.Memberlist
	seeds   []string
	changed chan struct{}
}

// Join makes a member. Seeds that do not answer are tried again at each Find, while this member is alone.
func Join(cfg Config) (*Finder, error) {
	host, portText, err := net.SplitHostPort(cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("%w: Bind is %q: want \"host:port\": %w", ErrConfig, cfg.Bind, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: Bind is %q: want a port from 0 to 65535", ErrConfig, cfg.Bind)
	}
	if len(cfg.Node) == 0 || len(cfg.Node) > hashicorp.MetaMaxSize {
		return nil, fmt.Errorf("%w: Node has %d bytes: give the node's address, of 1 to %d",
			ErrConfig, len(cfg.Node), hashicorp.MetaMaxSize)
	}
	f := &Finder{seeds: cfg.Seeds, changed: make(chan struct{}, 1)}
	c := hashicorp.DefaultLANConfig()
	c.Name = cfg.Node
	c.BindAddr, c.BindPort, c.AdvertisePort = host, int(port), int(port)
	c.Delegate, c.Events = says(cfg.Node), f
	c.Logger = log.New(io.Discard, "", 0)
	if cfg.Logger != nil {
		c.Logger = zap.NewStdLog(cfg.Logger)
	}
	if len(cfg.Secret) > 0 {
		key := sha256.Sum256(cfg.Secret)
		c.SecretKey = key[:]
	}
	if cfg.Change != nil {
		cfg.Change(c)
	}
	if f.list, err = hashicorp.Create(c); err != nil {
		return nil, fmt.Errorf("%w: Bind is %q: %w", ErrConfig, cfg.Bind, err)
	}
	f.seek()
	return f, nil
}

// seek joins the seeds. Whoever is not there will be tried again, or joins us.
func (f *Finder) seek() {
	if len(f.seeds) > 0 && f.list.NumMembers() <= 1 {
		_, _ = f.list.Join(f.seeds)
	}
}

// Bound is where this member listens.
func (f *Finder) Bound() string {
	n := f.list.LocalNode()
	return n.Address()
}

// Find implements discovery.Finder: the nodes of all members, this one's own among them.
func (f *Finder) Find(context.Context) ([]string, error) {
	f.seek()
	var found []string
	for _, m := range f.list.Members() {
		if len(m.Meta) > 0 {
			found = append(found, string(m.Meta))
		}
	}
	return found, nil
}

// Changed implements discovery.Changing.
func (f *Finder) Changed() <-chan struct{} { return f.changed }

// Leave tells the others, within the time, and ends the member.
func (f *Finder) Leave(within time.Duration) error {
	return errors.Join(f.list.Leave(within), f.list.Shutdown())
}

func (f *Finder) change() {
	select {
	case f.changed <- struct{}{}:
	default: // whoever reads it has not yet asked since the change before
	}
}

// NotifyJoin implements hashicorp's EventDelegate.
func (f *Finder) NotifyJoin(*hashicorp.Node) { f.change() }

// NotifyLeave implements hashicorp's EventDelegate.
func (f *Finder) NotifyLeave(*hashicorp.Node) { f.change() }

// NotifyUpdate implements hashicorp's EventDelegate.
func (f *Finder) NotifyUpdate(*hashicorp.Node) { f.change() }

// says is what a member tells of itself: its node's address.
type says string

// NodeMeta implements hashicorp's Delegate.
func (s says) NodeMeta(int) []byte { return []byte(s) }

// NotifyMsg implements hashicorp's Delegate: members have nothing else to say.
func (says) NotifyMsg([]byte) {}

// GetBroadcasts implements hashicorp's Delegate.
func (says) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements hashicorp's Delegate.
func (says) LocalState(bool) []byte { return nil }

// MergeRemoteState implements hashicorp's Delegate.
func (says) MergeRemoteState([]byte, bool) {}
