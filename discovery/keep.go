package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"railyard/endpoint"
)

// Defaults of Config.
const (
	DefaultInterval    = 5 * time.Second
	DefaultConnectTime = 5 * time.Second
)

// atOnce bounds the connections that are being made at once.
const atOnce = 16

// ErrConfig is wrapped by the errors of Keep.
var ErrConfig = errors.New("discovery settings refused")

// Connector is a node: *actors.Node is one.
type Connector interface {
	Address() string
	Connect(ctx context.Context, address string) (*endpoint.Endpoint, error)
}

// Config says what to keep connected to.
type Config struct {
	Node   Connector
	Finder Finder
	// Interval is the time between two questions to the Finder; one that is Changing is asked when it has changed as
	// well. 0: 5 s.
	Interval time.Duration
	// ConnectTime is how long a node may take to answer, until it is found again. 0: 5 s.
	ConnectTime time.Duration
	// Logger gets what fails. Nil: nothing is logged.
	Logger *zap.Logger
}

// Keeper keeps a node connected. All methods may be called from any goroutine.
type Keeper struct {
	cfg    Config
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	peers map[string]*endpoint.Endpoint // by the address that was found. Owner: mu
}

// Keep begins. Peers is complete only after some time: at once it knows nobody.
func Keep(cfg Config) (*Keeper, error) {
	switch {
	case cfg.Node == nil:
		return nil, fmt.Errorf("%w: Node is nil: give the node that is to be connected", ErrConfig)
	case cfg.Finder == nil:
		return nil, fmt.Errorf("%w: Finder is nil: give one, such as discovery.Static", ErrConfig)
	case cfg.Interval < 0 || cfg.ConnectTime < 0:
		return nil, fmt.Errorf("%w: Interval is %s, ConnectTime %s: give positive times, or 0 for the defaults",
			ErrConfig, cfg.Interval, cfg.ConnectTime)
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.ConnectTime == 0 {
		cfg.ConnectTime = DefaultConnectTime
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{cfg: cfg, cancel: cancel, done: make(chan struct{}), peers: make(map[string]*endpoint.Endpoint)}
	go k.run(ctx)
	return k, nil
}

// Close ends it. Connections stay.
func (k *Keeper) Close() {
	k.cancel()
	<-k.done
}

// Peers gives the addresses of the nodes that were found and are connected, sorted, each once.
func (k *Keeper) Peers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []string
	for _, e := range k.peers {
		if e.Err() == nil {
			list = append(list, e.Address())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	var changed <-chan struct{}
	if c, ok := k.cfg.Finder.(Changing); ok {
		changed = c.Changed()
	}
	t := time.NewTicker(k.cfg.Interval)
	defer t.Stop()
	for {
		k.round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-t.C:
		}
	}
}

// round asks once, and connects to whoever was found.
func (k *Keeper) round(ctx context.Context) {
	found, err := k.cfg.Finder.Find(ctx)
	if err != nil {
		if ctx.Err() == nil {
			k.cfg.Logger.Warn("nodes could not be looked for", zap.Error(err))
		}
		return
	}
	slices.Sort(found)
	found = slices.Compact(found)
	k.forget(found)
	var work sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, address := range found {
		if address == k.cfg.Node.Address() || k.connected(address) {
			continue
		}
		room <- struct{}{}
		work.Go(func() {
			defer func() { <-room }()
			k.connect(ctx, address)
		})
	}
	work.Wait()
}

// forget drops what is found no more; its endpoint ends by itself.
func (k *Keeper) forget(found []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for address := range k.peers {
		if !slices.Contains(found, address) {
			delete(k.peers, address)
		}
	}
}

func (k *Keeper) connected(address string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.peers[address]
	return e != nil && e.Err() == nil
}

func (k *Keeper) connect(ctx context.Context, address string) {
	ctx, done := context.WithTimeout(ctx, k.cfg.ConnectTime)
	defer done()
	e, err := k.cfg.Node.Connect(ctx, address)
	if err != nil {
		k.cfg.Logger.Info("a node that was found does not answer", zap.String("peer", address), zap.Error(err))
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.peers[address] = e
}
