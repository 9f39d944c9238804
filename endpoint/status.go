package endpoint

import (
	"net"
	"net/netip"

	"railyard/rail"
	"railyard/wire"
)

// record gives what is known of a rail; nil: nothing. Called with the lock held.
func (e *Endpoint) record(id wire.RailID) *railRecord {
	if int(id) >= len(e.rails) {
		return nil
	}
	return e.rails[id]
}

// devicesOf names a rail's two devices. Called with the lock held.
func (e *Endpoint) devicesOf(id wire.RailID) (local, remote string) {
	if r := e.record(id); r != nil {
		return r.local, r.remote
	}
	return "", ""
}

// records copies the list of rails.
func (e *Endpoint) records() []railRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []railRecord
	for _, r := range e.rails {
		if r != nil {
			list = append(list, *r)
		}
	}
	return list
}

// Rails gives the state of each rail now, in the order of their numbers. A rail that never came up is there too.
func (e *Endpoint) Rails() []rail.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.m.now()
	var list []rail.Status
	for _, r := range e.rails {
		if r == nil {
			continue
		}
		l := e.s.Lane(r.id)
		st := r.status
		st.ID, st.Peer, st.Local, st.Remote, st.Since = r.id, e.address, r.local, r.remote, now-r.since
		if r.kind != nil {
			st.Kind = r.kind.Name()
		}
		st.Rate, st.RoundTrip = l.Rate, l.RoundTrip
		g := l.Current()
		switch {
		case l.Up():
			st.State, st.Reason, st.Weight = rail.Up, "", 1
			if r.rampTill > now {
				st.State = rail.Probation
			}
		case g != nil && g.Suspect():
			st.State = rail.Suspect
		case g != nil:
			st.State = rail.Down
		default:
			st.State = rail.Connecting
		}
		if g != nil {
			st.Generation, st.BytesInFlight = uint64(g.ID), g.BytesInFlight()
		}
		list = append(list, st)
	}
	return list
}

// bindingsFor orders the local devices by how well they fit a remote address: one in its subnet first.
func (m *Manager) bindingsFor(remote string) []int {
	var near, far []int
	nets := localNets()
	for i, b := range m.bindings {
		if sameSubnet(nets, b.Address, remote) {
			near = append(near, i)
		} else {
			far = append(far, i)
		}
	}
	return append(near, far...)
}

// pair makes the rails besides the first: devices in one subnet first, in order, then what is left, in order. Where one side has
// more devices than the other, those of the shorter side serve again: each device has a rail.
func (m *Manager) pair(remote []*wire.Device, first railPlan) []railPlan {
	nets := localNets()
	usedL, usedR := make([]bool, len(m.bindings)), make([]bool, len(remote))
	for i, b := range m.bindings {
		if b.Address == first.local {
			usedL[i] = true
		}
	}
	for j, d := range remote {
		if d.GetAddress() == first.remote {
			usedR[j] = true
		}
	}
	var plans []railPlan
	add := func(i, j int) {
		usedL[i], usedR[j] = true, true
		b := m.bindings[i]
		plans = append(plans, railPlan{local: b.Address, remote: remote[j].GetAddress(), kind: m.cfg.Kinds[b.Kind]})
	}
	fits := func(i, j int) bool { return m.bindings[i].Kind == remote[j].GetKind() }
	for _, near := range []bool{true, false} {
		for i := range m.bindings {
			for j := range remote {
				if !usedL[i] && !usedR[j] && fits(i, j) && sameSubnet(nets, m.bindings[i].Address, remote[j].GetAddress()) == near {
					add(i, j)
				}
			}
		}
	}
	for i := range m.bindings { // more here than there
		for k := range remote {
			if j := (i + k) % len(remote); !usedL[i] && fits(i, j) {
				add(i, j)
			}
		}
	}
	for j := range remote { // more there than here
		for k := range m.bindings {
			if i := (j + k) % len(m.bindings); !usedR[j] && fits(i, j) {
				add(i, j)
			}
		}
	}
	return plans
}

// localNets gives the prefixes of this host's addresses.
func localNets() []netip.Prefix {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var nets []netip.Prefix
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			nets = append(nets, p)
		}
	}
	return nets
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
