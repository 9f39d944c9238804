package endpoint

import (
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
	defer e.unlock()
	now, here := e.m.now(), e.m.cards.current.Load()
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
		st.Rate, st.RoundTrip, st.BytesOut, st.BytesIn = l.Rate, l.RoundTrip, l.BytesOut, l.BytesIn
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
		if k := here.place(r.local); k >= 0 && here.away[k] != nil && st.State != rail.Up && st.State != rail.Probation {
			st.Reason = here.away[k].Error()
		}
		if g != nil {
			st.Generation, st.BytesInFlight = uint64(g.ID), g.BytesInFlight()
		}
		list = append(list, st)
	}
	return list
}
