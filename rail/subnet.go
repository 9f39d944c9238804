package rail

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// This file: the trap of two cards in one subnet.

// LocalAddress is an address of this host, with its subnet and its card.
type LocalAddress struct {
	Card   string
	Prefix netip.Prefix
}

// LocalAddresses lists those of all cards. What cannot be read is left out.
func LocalAddresses() []LocalAddress {
	cards, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var list []LocalAddress
	for _, card := range cards {
		addresses, err := card.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				list = append(list, LocalAddress{Card: card.Name, Prefix: p})
			}
		}
	}
	return list
}

// SharedSubnetError is a trap: the system has one route to a subnet, so that all rails in it may leave by one card, and cards answer
// for each other's addresses.
type SharedSubnetError struct {
	Subnet netip.Prefix
	// Cards are those with an address in it, and a rail.
	Cards []string
}

// Error says what happens, and what to do.
func (e *SharedSubnetError) Error() string {
	return fmt.Sprintf("cards %s are all in subnet %s: the kernel may send by one of them what is meant for the others, and each answers "+
		"for the others' addresses; give each rail a subnet of its own, or a route by its source (ip rule add from ADDRESS table N) with "+
		"arp_ignore=1 and arp_announce=2 on its card",
		strings.Join(e.Cards, ", "), e.Subnet)
}

// SharedSubnets finds the subnets in which more than one card has one of the bindings' addresses, in order.
func SharedSubnets(host []LocalAddress, bindings []Binding) []*SharedSubnetError {
	cards := make(map[netip.Prefix][]string)
	for _, b := range bindings {
		ap, err := netip.ParseAddrPort(b.Address)
		if b.Kind != KindTCP || err != nil {
			continue
		}
		for _, a := range host {
			ip := a.Prefix.Addr().Unmap()
			subnet := a.Prefix.Masked()
			if ip != ap.Addr().Unmap().WithZone("") || ip.IsLinkLocalUnicast() || slices.Contains(cards[subnet], a.Card) {
				continue // every card has the link-local subnet, and an address says which is meant
			}
			cards[subnet] = append(cards[subnet], a.Card)
		}
	}
	var list []*SharedSubnetError
	for subnet, names := range cards {
		if len(names) > 1 {
			slices.Sort(names)
			list = append(list, &SharedSubnetError{Subnet: subnet, Cards: names})
		}
	}
	slices.SortFunc(list, func(a, b *SharedSubnetError) int { return cmp.Compare(a.Subnet.String(), b.Subnet.String()) })
	return list
}
