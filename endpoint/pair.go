package endpoint

import (
	"errors"
	"fmt"
	"net/netip"

	"go.uber.org/zap"

	"railyard/rail"
	"railyard/wire"
)

// This file: which local device goes with which of the peer's. It is pure but for the Manager's two methods at the end.

// pairing is what is known of both sides' devices.
type pairing struct {
	local  []rail.Binding
	remote []*wire.Device
	// nets are the prefixes of this host's addresses.
	nets []netip.Prefix
	// sameHost: the peer runs on this host, so that loopback leads to it.
	sameHost bool
}

// pair is one rail to be: places in both lists, and the address to dial.
type pair struct {
	local, remote int
	address       string
}

// unpaired is a device of either side that no rail is made of, and why.
type unpaired struct {
	local, remote string // one of them is empty
	why           error
}

// Why two devices cannot be a rail.
var (
	errOtherKind   = errors.New("they are devices of different kinds")
	errOtherFamily = errors.New("one has an IPv4 address and the other an IPv6 address: give both cards one of the same family")
	errLoopback    = errors.New("loopback leads to its own host only: name a card's address in Config.Rails")
	errLinkLocal   = errors.New("a link-local address is reached from a link-local address of the same link only")
)

// fit tells why two devices cannot be a rail; nil: they may.
func (p *pairing) fit(b rail.Binding, d *wire.Device) error {
	if b.Kind != d.GetKind() {
		return errOtherKind
	}
	l, err := netip.ParseAddrPort(b.Address)
	if err != nil {
		return nil //nolint:nilerr // the kind's own notation: only a dial can tell
	}
	r, err := netip.ParseAddrPort(d.GetAddress())
	if err != nil {
		return nil //nolint:nilerr // a host name: only a dial can tell
	}
	from, to := l.Addr().Unmap(), r.Addr().Unmap()
	switch {
	case from.Is4() != to.Is4():
		return errOtherFamily
	case (from.IsLoopback() || to.IsLoopback()) && !p.sameHost:
		return errLoopback
	case from.IsLinkLocalUnicast() != to.IsLinkLocalUnicast():
		return errLinkLocal
	}
	return nil
}

// make pairs devices: those in one subnet first, in order, then what is left, in order. Where one side has more than the
// other, those of the shorter side serve again, so that each device has a rail. first is there already; its places may be -1.
func (p *pairing) make(first pair) (pairs []pair, left []unpaired) {
	usedL, usedR := make([]bool, len(p.local)), make([]bool, len(p.remote))
	if first.local >= 0 {
		usedL[first.local] = true
	}
	if first.remote >= 0 {
		usedR[first.remote] = true
	}
	add := func(i, j int) {
		usedL[i], usedR[j] = true, true
		pairs = append(pairs, pair{i, j, written(p.local[i].Address, p.remote[j].GetAddress())})
	}
	fits := func(i, j int) bool { return p.fit(p.local[i], p.remote[j]) == nil }
	for _, near := range []bool{true, false} {
		for i := range p.local {
			for j := range p.remote {
				if !usedL[i] && !usedR[j] && fits(i, j) && p.near(i, j) == near {
					add(i, j)
				}
			}
		}
	}
	for i := range p.local { // more here than there
		for k := range p.remote {
			if j := (i + k) % len(p.remote); !usedL[i] && fits(i, j) {
				add(i, j)
			}
		}
	}
	for j := range p.remote { // more there than here
		for k := range p.local {
			if i := (j + k) % len(p.local); !usedR[j] && fits(i, j) {
				add(i, j)
			}
		}
	}
	return pairs, p.left(usedL, usedR)
}

// near tells whether the peer's device is in the local one's subnet.
func (p *pairing) near(i, j int) bool {
	return sameSubnet(p.nets, p.local[i].Address, p.remote[j].GetAddress())
}

// left lists the devices without a rail. The reason is that of the first device of the other side, which any will do for.
func (p *pairing) left(usedL, usedR []bool) (list []unpaired) {
	for i, used := range usedL {
		if !used && len(p.remote) > 0 {
			list = append(list, unpaired{local: p.local[i].Address, why: p.fit(p.local[i], p.remote[0])})
		}
	}
	for j, used := range usedR {
		if !used && len(p.local) > 0 {
			list = append(list, unpaired{remote: p.remote[j].GetAddress(), why: p.fit(p.local[0], p.remote[j])})
		}
	}
	return list
}

// written is the peer's address as this host has to write it: a link-local one names the local card, which the peer
// cannot know.
func written(local, remote string) string {
	l, err := netip.ParseAddrPort(local)
	if err != nil {
		return remote
	}
	r, err := netip.ParseAddrPort(remote)
	if err != nil || !r.Addr().IsLinkLocalUnicast() || !r.Addr().Is6() {
		return remote
	}
	return netip.AddrPortFrom(r.Addr().WithZone(l.Addr().Zone()), r.Port()).String()
}

// sameSubnet tells whether the local address's own prefix covers the remote one.
func sameSubnet(nets []netip.Prefix, local, remote string) bool {
	l, err1 := netip.ParseAddrPort(local)
	r, err2 := netip.ParseAddrPort(remote)
	if err1 != nil || err2 != nil {
		return false
	}
	for _, p := range nets {
		if p.Addr().Unmap() == l.Addr().Unmap().WithZone("") && p.Masked().Contains(r.Addr().Unmap().WithZone("")) {
			return true
		}
	}
	return false
}

// own tells whether an address is one of this host's.
func own(nets []netip.Prefix, address string) bool {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	ip := ap.Addr().Unmap().WithZone("")
	for _, p := range nets {
		if p.Addr().Unmap() == ip {
			return true
		}
	}
	return ip.IsLoopback()
}

// pair makes the rails besides the first, and reports which devices are left out of them.
func (m *Manager) pair(peer string, remote []*wire.Device, first railPlan) []railPlan {
	nets := localNets()
	p := &pairing{local: m.bindings, remote: remote, nets: nets, sameHost: own(nets, first.remote)}
	there := pair{local: -1, remote: -1}
	for i, b := range m.bindings {
		if b.Address == first.local {
			there.local = i
		}
	}
	for j, d := range remote {
		if d.GetAddress() == first.remote {
			there.remote = j
		}
	}
	pairs, left := p.make(there)
	for _, u := range left {
		m.log.Warn("device is in no rail", zap.String("peer", peer), zap.String("local", u.local), zap.String("remote", u.remote),
			zap.Error(u.why))
		m.cfg.Events.Publish(rail.Event{Kind: rail.DeviceWarning, Peer: peer, Local: u.local, Remote: u.remote,
			Cause: fmt.Errorf("no rail to %s is made of it: %w", peer, u.why)})
	}
	plans := make([]railPlan, 0, len(pairs))
	for _, x := range pairs {
		b := m.bindings[x.local]
		plans = append(plans, railPlan{local: b.Address, remote: x.address, kind: m.cfg.Kinds[b.Kind]})
	}
	return plans
}

// bindingsFor orders the local devices by how well they fit a remote address: one in its subnet first. Those that cannot reach
// it come last: an address alone may be a forwarder's.
func (m *Manager) bindingsFor(remote string) []int {
	var near, far, not []int
	nets := localNets()
	p := &pairing{sameHost: true}
	for i, b := range m.bindings {
		switch {
		case sameSubnet(nets, b.Address, remote):
			near = append(near, i)
		case p.fit(b, &wire.Device{Kind: b.Kind, Address: remote}) == nil:
			far = append(far, i)
		default:
			not = append(not, i)
		}
	}
	return append(append(near, far...), not...)
}
