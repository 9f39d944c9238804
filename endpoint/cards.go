package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"railyard/rail"
	"railyard/wire"
)

// This file: the local devices of a node, which may change while it runs. What is to be done when they have changed is decided in
// follow.go.

// localDevices is what a node has at one moment. It is not changed once others see it.
type localDevices struct {
	// serial rises with each change of what peers are told.
	serial   uint64
	bindings []rail.Binding // with the addresses in force
	told     []*wire.Device // as peers are told; in the same places
	away     []error        // why a device is not there; nil: it is, as far as is known; in the same places
	nets     []netip.Prefix // of all addresses of this host
	traps    []*rail.SharedSubnetError
	ignored  []*rail.IgnoredError
}

// place finds a device by the address in force; -1: it is none.
func (l *localDevices) place(address string) int {
	return slices.IndexFunc(l.bindings, func(b rail.Binding) bool { return b.Address == address })
}

// warnings tells of what is wrong with local cards, as events without a peer.
func (l *localDevices) warnings() (list []rail.Event) {
	for _, trap := range l.traps {
		list = append(list, rail.Event{Kind: rail.DeviceWarning, Local: strings.Join(trap.Cards, ","), Cause: trap})
	}
	for _, card := range l.ignored {
		list = append(list, rail.Event{Kind: rail.DeviceIgnored, Local: card.Card, Cause: card})
	}
	for i, why := range l.away {
		if why != nil {
			list = append(list, rail.Event{Kind: rail.DeviceWarning, Local: l.bindings[i].Address, Cause: why})
		}
	}
	return list
}

// Bounds of following the cards.
const (
	// cardSettle is how long a change may take until the cards are looked at: most come in bursts.
	cardSettle = 50 * time.Millisecond
	// cardRetry is when an address is tried again at which nobody could listen: a fresh IPv6 one takes a moment.
	cardRetry = time.Second
)

// cards follows the local devices: it listens at those that come, and lets go of those that are gone for good.
type cards struct {
	m       *Manager
	current atomic.Pointer[localDevices]

	mu sync.Mutex
	// Owner of the rest: mu. held is also read by whoever runs adjust: only he changes it.
	held    []*held
	refused map[string]bool // bindings at which nobody can listen, said already
	timer   *time.Timer
	running bool // somebody runs adjust
	again   bool // and is to do it once more
	closed  bool
}

// held is a device in use.
type held struct {
	presence
	force    rail.Binding
	told     *wire.Device
	listener rail.Listener
}

// discovers tells whether the node looks for its cards itself.
func (m *Manager) discovers() bool { return len(m.cfg.Bindings) == 0 }

// follows tells whether the bindings mean cards, so that their addresses may change.
func (m *Manager) follows() bool {
	return m.discovers() || slices.ContainsFunc(m.cfg.Bindings, rail.Binding.Follows)
}

// look looks at this host, as far as the bindings make it matter.
func (m *Manager) look() (rail.Host, error) {
	switch {
	case m.cfg.Look != nil:
		return m.cfg.Look()
	case m.follows():
		return rail.Look()
	}
	return rail.Host{Addresses: rail.LocalAddresses()}, nil
}

// loopback is where a node is that has nothing else: its peers are on this host.
const loopback = "127.0.0.1:0"

// open listens at what is there when the node starts. What it has opened is closed by close, also where there is an error.
func (c *cards) open() error {
	m := c.m
	host, err := m.look()
	if err != nil {
		return fmt.Errorf("%w: Rails: %w", ErrConfig, err)
	}
	wanted := rail.Choose(m.cfg.Bindings, host)
	bare := m.discovers() && len(wanted) == 0
	if bare {
		wanted = []rail.Binding{rail.TCP(loopback)}
	}
	var failed []error
	for i, b := range wanted {
		fixed := bare || slices.ContainsFunc(m.cfg.Bindings, func(n rail.Binding) bool { return same(n, b) })
		h, err := c.listen(b, fixed)
		if err != nil {
			err = fmt.Errorf("%w: Rails: rail %d (%s): %w", ErrConfig, i, b, err)
			if fixed {
				return err
			}
			failed = append(failed, err) // tried again while the node runs
			continue
		}
		h.seen = lacks(&h.presence, host.Lacks) == nil
		c.held = append(c.held, h)
	}
	if len(c.held) == 0 {
		none := fmt.Errorf("%w: Rails: none of the cards named is there with an address: %v", ErrConfig, m.cfg.Bindings)
		return join(append(failed, none)...)
	}
	c.publish(host, 1)
	for _, w := range c.current.Load().warnings() {
		m.log.Info("local device", zap.Stringer("event", w.Kind), zap.String("local", w.Local), zap.Error(w.Cause))
	}
	return nil
}

// listen begins to listen at a binding.
func (c *cards) listen(b rail.Binding, fixed bool) (*held, error) {
	l, err := c.m.cfg.Kinds[b.Kind].Listen(c.m.ctx, b)
	if err != nil {
		return nil, err
	}
	h := &held{presence: presence{asked: b, fixed: fixed}, force: b, listener: l}
	h.force.Address = l.Addr()
	advertise := b.Advertise
	if advertise == "" {
		advertise = h.force.Address
	}
	h.told = &wire.Device{Kind: b.Kind, Address: advertise, Name: b.Device}
	return h, nil
}

// serve takes connections at all that was opened so far, and begins to follow the cards.
func (c *cards) serve() {
	for _, h := range c.held {
		c.m.track(func() { c.m.listen(h.listener, h.told.GetAddress()) })
	}
	c.m.cfg.System.Root.Send(c.m.watcher, &rail.WatchCards{PID: c.m.node})
	if c.m.follows() { // what has changed since open looked was told to nobody
		c.changed()
	}
}

// close stops listening. Nothing is opened after it.
func (c *cards) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	for _, h := range c.held {
		_ = h.listener.Close() // it is over either way
	}
}

// changed: the host's cards may not be what they were. It does not wait.
func (c *cards) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.running {
		c.again = true
		return
	}
	c.running = true
	c.m.track(c.run) // not closed: its goroutine is waited for
}

// run looks until nothing has changed meanwhile.
func (c *cards) run() {
	for {
		select {
		case <-time.After(cardSettle):
		case <-c.m.stop:
		}
		c.mu.Lock()
		c.again = false
		over := c.closed
		c.mu.Unlock()
		if !over {
			c.adjust()
		}
		c.mu.Lock()
		if c.closed || !c.again {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// adjust does what has to be done about the cards as they are.
func (c *cards) adjust() {
	m := c.m
	host, err := m.look()
	if err != nil {
		m.log.Warn("the host's cards cannot be looked at; trying again", zap.Error(err))
		c.later(cardRetry)
		return
	}
	before := c.current.Load()
	states := make([]*presence, len(c.held))
	for i, h := range c.held {
		states[i] = &h.presence
	}
	moves := judgeCards(m.now(), m.cfg.DeviceAway, states, situation{wanted: rail.Choose(m.cfg.Bindings, host), lacks: host.Lacks})
	next := moves.next
	var news []rail.Event
	for _, i := range moves.lost {
		news = append(news, rail.Event{Kind: rail.DeviceWarning, Local: c.held[i].force.Address, Cause: c.held[i].away})
	}
	var back []string
	for _, i := range moves.back {
		back = append(back, c.held[i].force.Address)
		news = append(news, rail.Event{Kind: rail.DeviceJoined, Local: c.held[i].force.Address})
	}
	changed := false
	for _, i := range moves.gone {
		changed = true
		news = append(news, rail.Event{Kind: rail.DeviceGone, Local: c.held[i].force.Address,
			Cause: fmt.Errorf("%w for %s: %w", ErrDeviceGone, m.cfg.DeviceAway, c.held[i].away)})
	}
	c.drop(moves.gone)
	for _, b := range moves.open {
		ev, opened := c.join(b)
		if changed = changed || opened; !opened {
			next = cardRetry
		}
		news = append(news, ev...)
	}
	serial := before.serial
	if changed {
		serial++
	}
	c.publish(host, serial)
	c.tell(before, news, back)
	c.later(next)
}

// later looks again after a while; 0: nothing is due.
func (c *cards) later(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	if d > 0 && !c.closed {
		c.timer = time.AfterFunc(d, c.changed)
	}
}

// join takes a device into use. Where that fails it is said once.
func (c *cards) join(b rail.Binding) (news []rail.Event, opened bool) {
	h, err := c.listen(b, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.refused[b.String()] {
			return nil, false
		}
		c.refused[b.String()] = true
		return []rail.Event{{Kind: rail.DeviceWarning, Local: b.Address, Cause: fmt.Errorf("it cannot be used yet: %w", err)}}, false
	}
	if c.closed {
		_ = h.listener.Close()
		return nil, true
	}
	delete(c.refused, b.String())
	c.held = append(c.held, h)
	c.m.track(func() { c.m.listen(h.listener, h.told.GetAddress()) })
	return []rail.Event{{Kind: rail.DeviceJoined, Local: h.force.Address}}, true
}

// drop lets go of devices, by their places.
func (c *cards) drop(places []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []*held
	for i, h := range c.held {
		if slices.Contains(places, i) {
			_ = h.listener.Close()
			continue
		}
		left = append(left, h)
	}
	c.held = left
}

// publish makes what is held the node's devices.
func (c *cards) publish(host rail.Host, serial uint64) {
	l := &localDevices{serial: serial}
	for _, h := range c.held {
		l.bindings, l.told, l.away = append(l.bindings, h.force), append(l.told, h.told), append(l.away, h.away)
	}
	for _, a := range host.Addresses {
		l.nets = append(l.nets, a.Prefix)
	}
	l.traps = rail.SharedSubnets(host.Addresses, l.bindings)
	if c.m.discovers() {
		l.ignored = host.Ignored()
	}
	c.current.Store(l)
}

// tell publishes what has changed, and lets every endpoint know.
func (c *cards) tell(before *localDevices, news []rail.Event, back []string) {
	m, after := c.m, c.current.Load()
	said := make(map[string]bool)
	for _, w := range before.warnings() {
		said[w.String()] = true
	}
	for _, n := range news {
		said[n.String()] = true
	}
	for _, w := range after.warnings() {
		if !said[w.String()] {
			news = append(news, w)
		}
	}
	for _, n := range news {
		m.log.Info("local device", zap.Stringer("event", n.Kind), zap.String("local", n.Local), zap.Error(n.Cause))
		m.cfg.Events.Publish(n)
	}
	if after.serial == before.serial && len(back) == 0 {
		return
	}
	for _, e := range m.all() {
		e.root.Send(e.pid, &devicesChanged{back: back})
	}
}

// ErrDeviceGone is wrapped by the causes of DeviceGone and RailEnded: a device was away for too long.
var ErrDeviceGone = errors.New("the device was away")
