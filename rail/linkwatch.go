package rail

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// This file: the devices actor, which tells whoever wants to know when a local card's carrier, or an address, comes or goes.

// linkRetry is how long the devices actor waits before it subscribes again.
const linkRetry = 5 * time.Second

// LinkState is a card's carrier, as a LinkSource reports it.
type LinkState struct {
	Device string
	Up     bool
	// Gone: the host has no such card any more.
	Gone bool
}

// LinkSource reports the state of every card, then each change of it and of its addresses, until ctx ends. It returns nil
// then, and an error when it cannot go on.
type LinkSource func(ctx context.Context, report func(LinkState)) error

// DevicesConfig is what the devices actor works with.
type DevicesConfig struct {
	// Track runs f in a goroutine that the node joins before its shutdown ends; required.
	Track func(f func())
	// Source is where changes come from; nil: netlink.
	Source LinkSource
	// Events gets a DeviceLink for each change; it and Logger may be nil.
	Events *Events
	Logger *zap.Logger
}

// To the devices actor, as pointers.
type (
	// WatchDevices subscribes PID to LinkChanged, until UnwatchDevices or its end.
	WatchDevices struct{ PID *actor.PID }
	// UnwatchDevices ends it.
	UnwatchDevices struct{ PID *actor.PID }
	// WatchCards makes PID the one that gets CardsChanged.
	WatchCards struct{ PID *actor.PID }
)

// CardsChanged says that the host's cards or their addresses are perhaps not what they were. Whoever gets it looks for himself.
type CardsChanged struct{ late }

// LinkChanged is what subscribers get: a card's carrier came or went. Addresses are the card's, those it had last
// where it has lost them with the carrier. It is a hint: only some flaps are seen.
type LinkChanged struct {
	Device    string
	Addresses []netip.Addr
	Up        bool
}

// From the devices actor's source and timer.
type (
	linkSeen struct {
		life      *devicesActor
		state     LinkState
		addresses []netip.Addr
	}
	linksEnded struct {
		life *devicesActor
		err  error
	}
	linksAgain struct{ life *devicesActor }
)

// DevicesProps makes the devices actor, one a node. Without netlink it logs one line, and there are no hints.
func DevicesProps(cfg DevicesConfig) (*actor.Props, error) {
	if cfg.Track == nil {
		return nil, fmt.Errorf("%w: DevicesConfig.Track is required", ErrConfig)
	}
	if cfg.Source == nil {
		cfg.Source = netlinkStates
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	kept := &cards{links: make(map[string]linkRecord)}
	return actor.PropsFromProducer(
		func() actor.Actor { return &devicesActor{cfg: &cfg, cards: kept, cancel: func() {}} },
		actor.WithDispatcher(actor.NewSynchronizedDispatcher(throughput)),
	), nil
}

// cards is what the actor knows, kept over its own restart.
type cards struct {
	links       map[string]linkRecord
	subscribers []*actor.PID
	follower    *actor.PID // nil: nobody
	// worked: the source has reported something, so that trying again makes sense.
	worked bool
}

type linkRecord struct {
	up bool
	// addresses are those it had last, has those of the latest report.
	addresses, has []netip.Addr
}

// devicesActor keeps the carrier of each card. Owner of the source's goroutine, which ends with it.
type devicesActor struct {
	cfg    *DevicesConfig
	cards  *cards
	cancel context.CancelFunc
	timer  *time.Timer
}

// Receive implements actor.Actor.
func (d *devicesActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		d.subscribe(ctx)
	case *actor.Stopping, *actor.Restarting:
		d.cancel()
		if d.timer != nil {
			d.timer.Stop()
		}
	case *WatchCards:
		d.cards.follower = m.PID
	case *WatchDevices:
		d.forget(m.PID)
		d.cards.subscribers = append(d.cards.subscribers, m.PID)
		ctx.Watch(m.PID)
	case *UnwatchDevices:
		d.forget(m.PID)
		ctx.Unwatch(m.PID)
	case *actor.Terminated:
		d.forget(m.Who)
	case *linkSeen:
		if m.life == d {
			d.seen(ctx, m)
		}
	case *linksEnded:
		if m.life == d {
			d.ended(ctx, m.err)
		}
	case *linksAgain:
		if m.life == d {
			d.subscribe(ctx)
		}
	}
}

func (d *devicesActor) forget(pid *actor.PID) {
	for i, s := range d.cards.subscribers {
		if s.Equal(pid) {
			d.cards.subscribers = append(d.cards.subscribers[:i], d.cards.subscribers[i+1:]...)
			return
		}
	}
}

// subscribe starts the source in a goroutine of its own.
func (d *devicesActor) subscribe(ctx actor.Context) {
	life, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	root, self, source := ctx.ActorSystem().Root, ctx.Self(), d.cfg.Source
	d.cfg.Track(func() {
		err := source(life, func(s LinkState) {
			if life.Err() == nil {
				root.Send(self, &linkSeen{life: d, state: s, addresses: addressesOf(s.Device)})
			}
		})
		if life.Err() == nil {
			root.Send(self, &linksEnded{life: d, err: err})
		}
	})
}

// seen tells the subscribers of a change. What is seen of a card first is no change.
func (d *devicesActor) seen(ctx actor.Context, m *linkSeen) {
	d.cards.worked = true
	old, known := d.cards.links[m.state.Device]
	record := linkRecord{up: m.state.Up, addresses: m.addresses, has: m.addresses}
	if len(record.addresses) == 0 {
		record.addresses = old.addresses
	}
	d.cards.links[m.state.Device] = record
	if m.state.Gone {
		delete(d.cards.links, m.state.Device)
	}
	if f := d.cards.follower; f != nil && (!known || m.state.Gone || old.up != record.up || !slices.Equal(old.has, record.has)) {
		ctx.Send(f, &CardsChanged{})
	}
	if !known || old.up == record.up {
		return
	}
	event := Event{Kind: DeviceLink, Local: m.state.Device}
	if !record.up {
		event.Cause = &SilenceError{Symptom: NoCarrier}
	}
	d.cfg.Logger.Info("card's carrier changed", zap.String("device", m.state.Device), zap.Bool("up", record.up))
	d.cfg.Events.Publish(event)
	for _, s := range d.cards.subscribers {
		ctx.Send(s, &LinkChanged{Device: m.state.Device, Addresses: record.addresses, Up: record.up})
	}
}

// ended: no more hints from this subscription. One that has worked is made again: the kernel ends it when
// it had to drop updates.
func (d *devicesActor) ended(ctx actor.Context, err error) {
	d.cancel()
	if !d.cards.worked {
		d.cfg.Logger.Warn("no hints about local cards' carriers; rails notice by silence alone", zap.Error(err))
		return
	}
	d.cfg.Logger.Debug("hints about local cards interrupted", zap.Error(err))
	root, self := ctx.ActorSystem().Root, ctx.Self()
	d.timer = time.AfterFunc(linkRetry, func() { root.Send(self, &linksAgain{life: d}) })
}

// addressesOf gives a card's addresses by its name; none where it is gone.
func addressesOf(device string) []netip.Addr {
	ifi, err := net.InterfaceByName(device)
	if err != nil {
		return nil
	}
	list, err := ifi.Addrs()
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addresses = append(addresses, p.Addr().Unmap())
		}
	}
	return addresses
}
