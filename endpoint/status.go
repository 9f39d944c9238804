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
