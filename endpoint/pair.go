package endpoint

import (
	"errors"
	"net/netip"

	"railyard/rail"
	"railyard/wire"
)

// This file: which local device goes with which of the peer's. All but bindingsFor is pure.

// pairing is what is known of both sides' devices.
type pairing struct {
	local  []rail.Binding
	remote []*wire.Device
	// nets are the prefixes of this host's addresses.
	nets []netip.Prefix
	// sameHost: the peer runs on this host, so that loopback leads to it.
	sameHost bool
	// reach says which devices were seen to reach each other, or not to.
	reach map[[2]string]bool
	// routed: a rail has been down for a while, so that dials are to tell of devices that only routers join, too.
	routed bool
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
	errNoAddress   = errors.New("the peer does not say where it can be dialed")
	errLoopback    = errors.New("loopback leads to its own host only: name a card's address in Config.Rails")
	errLinkLocal   = errors.New("a link-local address is reached from a link-local address of the same link only")
)

// fit tells why two devices cannot be a rail; nil: they may.
func (p *pairing) fit(b rail.Binding, d *wire.Device) error {
	if b.Kind != d.GetKind() {
		return errOtherKind
	}
	if d.GetAddress() == "" {
		return errNoAddress
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

// had is a rail that is there already: the places of its devices, -1 where it is none of the list, and whether it has ever been up.
type had struct {
	pair
	up bool
}

// plan is what became of a pairing.
type plan struct {
	// fresh are pairs that no rail is made of yet; spare are the places, in the list of those that were there, of rails that are not
	// needed once the others are up.
	fresh []pair
	spare []int
	left  []unpaired
	// open are pairs of which only a dial can tell whether they are better than those chosen. choice: there were such pairs, and
	// perhaps dials have told.
	open   []pair
	choice bool
}

// rank is how much speaks for a pair; more is better.
type rank int

// A subnet in common counts more than the order; what was seen to work more than what is not known; a rail that is there more than
// one to be made. What was seen not to work comes last.
const (
	unfit rank = iota
	there rank = 1
	works rank = 2
	near  rank = 4
	maybe rank = 8
)

// rank of two devices. rails are those that are there.
func (p *pairing) rank(i, j int, rails []had) rank {
	if p.fit(p.local[i], p.remote[j]) != nil {
		return unfit
	}
	r := maybe
	if p.near(i, j) {
		r |= near
	}
	seen, known := p.reach[p.key(i, j)]
	for _, h := range rails {
		if h.local == i && h.remote == j {
			r |= there
			seen, known = seen || h.up, known || h.up
		}
	}
	switch {
	case known && seen:
		r |= works
	case known:
		r &^= maybe | near
		r |= works // above unfit, below all that may work
	}
	return r
}

// alone marks the devices that share no subnet with any of the other side. A name is not judged: who gave it knows what it leads to.
func (p *pairing) alone() (alone [2][]bool) {
	for _, b := range p.local {
		alone[0] = append(alone[0], numeric(b.Address))
	}
	for _, d := range p.remote {
		alone[1] = append(alone[1], numeric(d.GetAddress()))
	}
	for i := range p.local {
		for j := range p.remote {
			if p.near(i, j) {
				alone[0][i], alone[1][j] = false, false
			}
		}
	}
	return alone
}

// numeric tells whether an address is one of IP, not a name.
func numeric(address string) bool {
	_, err := netip.ParseAddrPort(address)
	return err == nil
}

// key names two devices in what is known of who reaches whom.
func (p *pairing) key(i, j int) [2]string {
	return [2]string{p.local[i].Address, p.remote[j].GetAddress()}
}

// make pairs devices, best rank first, then in order; each device serves once. Where one side has more than the other, those of the
// shorter side serve again, so that each device has a rail.
func (p *pairing) make(rails []had) plan {
	m := &match{p: p, rails: rails, usedL: make([]bool, len(p.local)), usedR: make([]bool, len(p.remote)), kept: make([]bool, len(rails))}
	m.ranks = make([][]rank, len(p.local))
	for i := range p.local {
		m.ranks[i] = make([]rank, len(p.remote))
		for j := range p.remote {
			m.ranks[i][j] = p.rank(i, j, rails)
		}
	}
	m.alone = p.alone()
	for k, h := range rails { // over an address that the peer does not tell: nobody else can judge it
		if h.remote < 0 || h.local < 0 {
			m.kept[k] = true
			if h.local >= 0 {
				m.usedL[h.local] = true
			}
		}
	}
	for r := maybe | near | works | there; r > unfit; r-- {
		for i := range p.local {
			for j := range p.remote {
				if m.ranks[i][j] == r && !m.usedL[i] && !m.usedR[j] {
					m.take(i, j)
				}
			}
		}
	}
	for i := range p.local { // more here than there
		if !m.usedL[i] {
			m.best(len(p.remote), func(k int) (int, int) { return i, (i + k) % len(p.remote) })
		}
	}
	for j := range p.remote { // more there than here
		if !m.usedR[j] {
			m.best(len(p.local), func(k int) (int, int) { return (j + k) % len(p.local), j })
		}
	}
	for k, kept := range m.kept {
		if !kept {
			m.spare = append(m.spare, k)
		}
	}
	m.left = p.left(m.usedL, m.usedR)
	m.questions()
	return m.plan
}

// match is a pairing being made.
type match struct {
	plan
	p            *pairing
	rails        []had
	ranks        [][]rank
	usedL, usedR []bool
	kept         []bool
	alone        [2][]bool // devices of either side that share no subnet with any of the other
}

// take makes a rail of a pair, or keeps the one that is there.
func (m *match) take(i, j int) {
	m.usedL[i], m.usedR[j] = true, true
	for k, h := range m.rails {
		if h.local == i && h.remote == j {
			m.kept[k] = true
			return
		}
	}
	m.fresh = append(m.fresh, pair{i, j, written(m.p.local[i].Address, m.p.remote[j].GetAddress())})
}

// best takes the best of n pairs, the first of equals; none where nothing fits.
func (m *match) best(n int, at func(k int) (i, j int)) {
	top, bi, bj := unfit, 0, 0
	for k := range n {
		if i, j := at(k); m.ranks[i][j] > top {
			top, bi, bj = m.ranks[i][j], i, j
		}
	}
	if top > unfit {
		m.take(bi, bj)
	}
}

// maxQuestions bounds the pairs that are tried at a time.
const maxQuestions = 64

// questions lists the pairs whose rank says the same as that of others of both their devices, so that the order alone has chosen: of
// cards in one subnet, or on links of their own that all have the same one, and of cards that only routers join. Mostly all of those
// reach each other, so that they are asked where a rail stays down. Loopback leads everywhere, and is not asked.
func (m *match) questions() {
	for i := range m.p.local {
		for j := range m.p.remote {
			if !m.alike(i, j) {
				continue
			}
			m.choice = true
			_, known := m.p.reach[m.p.key(i, j)]
			ask := m.p.routed || m.p.near(i, j)
			if ask && !known && m.ranks[i][j]&works == 0 && len(m.open) < maxQuestions {
				m.open = append(m.open, pair{i, j, written(m.p.local[i].Address, m.p.remote[j].GetAddress())})
			}
		}
	}
}

// alike tells whether nothing but a dial can tell what the pair is worth, since there is something to choose at both ends.
func (m *match) alike(i, j int) bool {
	if !m.close(i, j) || loops(m.p.local[i].Address) {
		return false
	}
	here, there := false, false
	for k := range m.p.local {
		here = here || k != i && m.close(k, j)
	}
	for k := range m.p.remote {
		there = there || k != j && m.close(i, k)
	}
	return here && there
}

// close tells whether two devices fit and are in one subnet, or neither of them in one with any other, whatever dials have shown.
func (m *match) close(i, j int) bool {
	return m.ranks[i][j] != unfit && (m.p.near(i, j) || m.alone[0][i] && m.alone[1][j])
}

func loops(address string) bool {
	ap, err := netip.ParseAddrPort(address)
	return err == nil && ap.Addr().IsLoopback()
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

// bindingsFor orders the local devices by how well they fit a remote address: one in its subnet first. Those that cannot reach
// it come last: an address alone may be a forwarder's.
func (m *Manager) bindingsFor(remote string) []rail.Binding {
	var near, far, not []rail.Binding
	here := m.cards.current.Load()
	p := &pairing{sameHost: true}
	for _, b := range here.bindings {
		switch {
		case sameSubnet(here.nets, b.Address, remote):
			near = append(near, b)
		case p.fit(b, &wire.Device{Kind: b.Kind, Address: remote}) == nil:
			far = append(far, b)
		default:
			not = append(not, b)
		}
	}
	return append(append(near, far...), not...)
}
