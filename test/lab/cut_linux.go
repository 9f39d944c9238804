package lab

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Kind is a way in which a rail fails.
type Kind int

const (
	// LinkDown turns the card of the side Where off; its other end loses its carrier.
	LinkDown Kind = iota + 1
	// BlackHole loses every packet, ARP too, in both directions.
	BlackHole
	// OneWay loses what the side Where sends.
	OneWay
	// Reset answers every TCP segment with a reset.
	Reset
	// SwallowedReset is a Reset whose resets are lost on their way: connections hang, ARP and ping go on.
	SwallowedReset
	// Loss loses Percent of the packets, in both directions, at random.
	Loss
	// Slow shapes the rail to Rate bits a second.
	Slow
	// Delay makes each packet take Delay. Only in a lab that has wires with a delay.
	Delay
	// Flap turns the card of the side Where off for Down and on for Up, again and again.
	Flap
	// AddressRemoved takes the address off the card of the side Where.
	AddressRemoved
	// Narrow makes the MTU of both cards smaller.
	Narrow
	// Poisoned makes the side Where send its packets to a card that does not exist.
	Poisoned
)

var kindNames = [...]string{LinkDown: "link down", BlackHole: "black hole", OneWay: "one way", Reset: "reset",
	SwallowedReset: "swallowed reset", Loss: "loss", Slow: "slow", Delay: "delay", Flap: "flap",
	AddressRemoved: "address removed", Narrow: "narrow", Poisoned: "poisoned neighbor"}

// String gives its name.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

// Cut is what happens to a rail. Which fields count depends on Kind.
type Cut struct {
	Kind     Kind
	Where    Side
	Percent  float64       // above 0, at most 100
	Rate     int64         // bits a second
	Delay    time.Duration // one way
	Down, Up time.Duration
	MTU      int // 576 at least
}

// step does one thing and says how to undo it.
type step func() (undo func() error, err error)

// Cut breaks rail i, and says when it began to. A rail may be cut in several ways at once. What could be done is undone
// by Heal even where there is an error.
func (l *Lab) Cut(i int, c Cut) (at time.Time, err error) {
	steps, err := l.steps(i, c)
	if err != nil {
		return time.Time{}, err
	}
	at = time.Now()
	for _, s := range steps {
		undo, err := s()
		if err != nil {
			return at, fmt.Errorf("lab: %s of rail %d: %w", c.Kind, i, err)
		}
		l.undo[i] = append(l.undo[i], undo)
	}
	return at, nil
}

// Heal undoes all cuts of rail i, and says when it began to.
func (l *Lab) Heal(i int) (at time.Time, err error) {
	at = time.Now()
	undo := l.undo[i]
	l.undo[i] = nil
	var all []error
	for k := len(undo) - 1; k >= 0; k-- {
		if err := undo[k](); err != nil {
			all = append(all, fmt.Errorf("lab: rail %d does not heal: %w", i, err))
		}
	}
	return at, errors.Join(all...)
}

// both makes a step for each host.
func (l *Lab) both(f func(h *host) step) []step {
	return []step{f(l.hosts[A]), f(l.hosts[B])}
}

func (l *Lab) steps(i int, c Cut) ([]step, error) {
	if i < 0 || i >= l.options.Rails || c.Where != A && c.Where != B {
		return nil, fmt.Errorf("%w: a cut of rail %d at host %d; there are %d rails and the hosts A and B", ErrOptions, i, c.Where,
			l.options.Rails)
	}
	here := l.hosts[c.Where]
	switch c.Kind {
	case LinkDown:
		return []step{here.down(i)}, nil
	case BlackHole:
		return l.both(func(h *host) step { return h.filtered(h.chains[i].ingress, drop()) }), nil
	case OneWay:
		h := l.hosts[c.Where.Other()]
		return []step{h.filtered(h.chains[i].ingress, drop())}, nil
	case Reset:
		return l.both(func(h *host) step { return h.filtered(h.chains[i].input, reset(i, true)) }), nil
	case SwallowedReset:
		return l.both(func(h *host) step { return h.filtered(h.chains[i].input, reset(i, false)) }), nil
	case Loss:
		if c.Percent <= 0 || c.Percent > 100 {
			return nil, fmt.Errorf("%w: a loss of %v %%; above 0 up to 100 is", ErrOptions, c.Percent)
		}
		return l.both(func(h *host) step { return h.filtered(h.chains[i].ingress, dropSome(c.Percent)) }), nil
	case Slow:
		if c.Rate <= 0 {
			return nil, fmt.Errorf("%w: slow to %d bits a second", ErrOptions, c.Rate)
		}
		return l.both(func(h *host) step { return h.slowed(i, c.Rate, l.options.rate(i)) }), nil
	case Delay:
		if len(l.wires) == 0 || c.Delay < 0 {
			return nil, fmt.Errorf("%w: a delay of %v in a lab that was made without any", ErrOptions, c.Delay)
		}
		return []step{l.wires[i].delayed(c.Delay)}, nil
	case Flap:
		if c.Down <= 0 || c.Up <= 0 {
			return nil, fmt.Errorf("%w: flaps of %v and %v", ErrOptions, c.Down, c.Up)
		}
		return []step{here.flapping(i, c.Down, c.Up)}, nil
	case AddressRemoved:
		return []step{here.homeless(i, l.Address(c.Where, i).String()+"/24")}, nil
	case Narrow:
		if c.MTU < 576 || c.MTU > l.options.MTU {
			return nil, fmt.Errorf("%w: an MTU of %d; 576 to the lab's %d is", ErrOptions, c.MTU, l.options.MTU)
		}
		return l.both(func(h *host) step { return h.narrowed(i, c.MTU, l.options.MTU) }), nil
	case Poisoned:
		return []step{here.poisoned(i, l.Address(c.Where.Other(), i).AsSlice())}, nil
	}
	return nil, fmt.Errorf("%w: a cut without a kind", ErrOptions)
}

func (h *host) down(i int) step {
	return func() (func() error, error) {
		return func() error { return h.links.LinkSetUp(h.cards[i]) }, h.links.LinkSetDown(h.cards[i])
	}
}

func (h *host) slowed(i int, rate, before int64) step {
	return func() (func() error, error) {
		return func() error { return h.shape(i, before) }, h.shape(i, rate)
	}
}

func (h *host) narrowed(i, mtu, before int) step {
	return func() (func() error, error) {
		return func() error { return h.links.LinkSetMTU(h.cards[i], before) }, h.links.LinkSetMTU(h.cards[i], mtu)
	}
}

func (h *host) homeless(i int, address string) step {
	return func() (func() error, error) {
		at, err := netlink.ParseAddr(address)
		if err != nil {
			return nil, err
		}
		return func() error { return h.links.AddrReplace(h.cards[i], at) }, h.links.AddrDel(h.cards[i], at)
	}
}

// poisoned pins the neighbor to an address that no card has. Healing forgets it, so that it is asked for again.
func (h *host) poisoned(i int, neighbor net.IP) step {
	entry := &netlink.Neigh{LinkIndex: h.cards[i].Attrs().Index, IP: neighbor, State: netlink.NUD_PERMANENT,
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0xde, 0xad}}
	return func() (func() error, error) {
		return func() error {
			if err := h.links.NeighDel(entry); err != nil && !errors.Is(err, unix.ENOENT) {
				return err // a card that was off has forgotten it by itself
			}
			return nil
		}, h.links.NeighSet(entry)
	}
}

// flapping turns a card off and on until it is healed, which leaves it on.
func (h *host) flapping(i int, down, up time.Duration) step {
	return func() (func() error, error) {
		stop := make(chan struct{})
		var done sync.WaitGroup
		var failed error // Owner: the goroutine, until it is joined
		done.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for on := true; failed == nil; {
				select {
				case <-stop:
					return
				case <-timer.C:
				}
				if on = !on; on {
					failed = h.links.LinkSetUp(h.cards[i])
					timer.Reset(up)
				} else {
					failed = h.links.LinkSetDown(h.cards[i])
					timer.Reset(down)
				}
			}
		})
		return func() error {
			close(stop)
			done.Wait()
			return errors.Join(failed, h.links.LinkSetUp(h.cards[i]))
		}, nil
	}
}

// filtered adds a rule to a chain. Healing empties the chain.
func (h *host) filtered(to *chain, rule rule) step {
	return func() (func() error, error) {
		return func() error { return h.empty(to) }, h.add(to, rule)
	}
}
