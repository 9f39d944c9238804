package rail

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// This file: which addresses of this host a node's bindings mean at one moment. It is pure but for Look.

// Host is what one look at this host has shown.
type Host struct {
	Cards     []Device
	Addresses []LocalAddress
}

// Look looks at this host. The error says that its cards could not be listed.
func Look() (Host, error) {
	cards, err := Discover()
	return Host{Cards: cards, Addresses: LocalAddresses()}, err
}

// Why a device that a node has used is not there.
var (
	errCardGone   = errors.New("this host has no such card any more")
	errNoAddress  = errors.New("it has no address that a peer could reach")
	errOtherCard  = errors.New("it has lost this address")
	errNowhere    = errors.New("no card of this host has this address any more")
	errNotAllowed = errors.New("cannot carry a rail")
)

// Choose gives the bindings that are meant, each with an address: those that name one as they are, those that name a card at that
// card's first address, where it has one. No bindings mean every usable card. Their order is kept.
func Choose(named []Binding, host Host) []Binding {
	var chosen []Binding
	if len(named) == 0 {
		for _, d := range host.Cards {
			if b, ok := d.Binding(0); ok {
				chosen = append(chosen, b)
			}
		}
		return chosen
	}
	for _, b := range named {
		if !b.Follows() {
			chosen = append(chosen, b)
			continue
		}
		if d := host.card(b.Name); d != nil && len(d.Addresses) > 0 {
			port := b.Address[len(":"):]
			b.Address = net.JoinHostPort(d.Addresses[0].Addr().String(), port)
			chosen = append(chosen, b)
		}
	}
	return chosen
}

// card finds a card by its name; nil: there is none.
func (h Host) card(name string) *Device {
	i := slices.IndexFunc(h.Cards, func(d Device) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &h.Cards[i]
}

// Lacks says why the host does not have a binding's device: nil where it has, and where that cannot be told.
func (h Host) Lacks(b Binding) error {
	ap, err := netip.ParseAddrPort(b.Address)
	if b.Kind != KindTCP || err != nil || ap.Addr().IsLoopback() {
		return nil //nolint:nilerr // the kind's own notation: only a dial can tell
	}
	if b.Name == "" {
		for _, a := range h.Addresses {
			if a.Prefix.Addr().Unmap() == ap.Addr().Unmap().WithZone("") {
				return nil
			}
		}
		return errNowhere
	}
	d := h.card(b.Name)
	switch {
	case d == nil:
		return fmt.Errorf("card %s: %w", b.Name, errCardGone)
	case len(d.Addresses) == 0:
		return fmt.Errorf("card %s: %w", b.Name, errNoAddress)
	case !slices.ContainsFunc(d.Addresses, func(p netip.Prefix) bool { return p.Addr() == ap.Addr() }):
		return fmt.Errorf("card %s: %w (%s)", b.Name, errOtherCard, ap.Addr())
	case !d.Usable:
		return fmt.Errorf("card %s %w: %s", b.Name, errNotAllowed, d.Why)
	}
	return nil
}

// IgnoredError says why a card carries no rail of a node that looks for its cards itself.
type IgnoredError struct {
	// Card is its name, Why what `railyard info` says of it.
	Card, Why string
}

// Error says which card, why, and what to do.
func (e *IgnoredError) Error() string {
	return fmt.Sprintf("card %s is not used: %s", e.Card, e.Why)
}

// Ignored lists the cards that a node without bindings does not use. Loopback is no card that anybody would miss.
func (h Host) Ignored() []*IgnoredError {
	var list []*IgnoredError
	for _, d := range h.Cards {
		if _, ok := d.Binding(0); !ok && d.Why != whyLoopback {
			list = append(list, &IgnoredError{Card: d.Name, Why: d.Why})
		}
	}
	return list
}
