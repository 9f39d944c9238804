package endpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/rail"
	"railyard/wire"
)

// This file: which rails an endpoint has. The opener makes them, and ends them, as the devices of both sides come and go; the other
// side has those that the opener dials.

// railPlan is a pair of devices that a rail joins.
type railPlan struct {
	local, remote string
	device        string // of the peer, as it tells it; empty: not known
	given         bool   // remote is the application's, not the peer's own
	kind          rail.Kind
}

// ensure makes the rail's actor unless it is there.
func (a *endpointActor) ensure(ctx actor.Context, id wire.RailID, p railPlan) *actor.PID {
	e := a.e
	e.mu.Lock()
	for int(id) >= len(e.rails) {
		e.rails = append(e.rails, nil)
	}
	r := e.rails[id]
	if r == nil {
		r = &railRecord{id: id, local: p.local, remote: p.remote, device: p.device, given: p.given, kind: p.kind, since: e.m.now()}
		e.rails[id] = r
	}
	opener := e.opener
	pid := r.pid
	e.mu.Unlock()
	if pid != nil {
		return pid
	}
	props, err := rail.Props(rail.Config{
		ID: id, Peer: e.address, Local: p.local, Remote: p.remote, Kind: p.kind, Dials: opener && p.kind != nil,
		Joiner: joiner{e}, Policy: e.policy, Health: e.m.cfg.Health, Clock: e.m.now, Track: e.m.track,
		Events: e.m.cfg.Events, Logger: e.m.cfg.Logger,
		RailProps: e.m.cfg.RailProps, TransportProps: e.m.cfg.TransportProps,
	})
	if err != nil {
		panic(fmt.Errorf("rail %d to %s: %w", id, e.address, err)) // checked at Start: a bug
	}
	pid = ctx.SpawnPrefix(props, fmt.Sprintf("rail-%d-", id))
	e.mu.Lock()
	r.pid = pid
	e.mu.Unlock()
	if opener {
		ctx.Send(pid, &rail.Connect{})
	}
	return pid
}

// accept hands a connection that the peer dialed to its rail. The peer may have given the rail's number to another pair.
func (a *endpointActor) accept(ctx actor.Context, m *accepted) {
	e := a.e
	if _, busy := a.busy[m.id]; busy || e.Err() != nil { // the peer dials again
		e.discard(m)
		return
	}
	pid := a.ensure(ctx, m.id, railPlan{local: m.local, remote: m.remote})
	e.mu.Lock()
	if r := e.record(m.id); r != nil {
		r.local, r.remote, r.unlisted = m.local, m.remote, false
	}
	e.mu.Unlock()
	m.message.Local, m.message.Remote = m.local, m.remote
	ctx.Send(pid, m.message)
}

// discard ends a connection that no rail takes.
func (e *Endpoint) discard(m *accepted) {
	e.mu.Lock()
	e.dropPending(m.id, m.message.Generation)
	e.mu.Unlock()
	m.message.Conn.Kill()
	e.m.track(m.message.Conn.Close)
}

// yield stops the rails that dial: the peer opened the session, and dials.
func (a *endpointActor) yield(ctx actor.Context) {
	e := a.e
	e.mu.Lock()
	var stop []*actor.PID
	for _, r := range e.rails {
		if r != nil && r.pid != nil {
			stop = append(stop, r.pid)
		}
	}
	e.rails = nil
	e.mu.Unlock()
	for _, pid := range stop {
		ctx.Stop(pid)
	}
}

// pairer is what the endpoint actor remembers to pair devices.
//
// Owner: the endpoint actor's turn.
type pairer struct {
	// busy are numbers whose rail is still stopping: nothing that it says may be taken for its successor's.
	busy map[wire.RailID]*actor.PID
	// reach is what dials have shown; asking: some are under way.
	reach  map[[2]string]bool
	asking bool
	// askNext is when the next may be.
	askNext time.Duration
	// choice: dials tell which devices belong together.
	choice bool
	// routed: they are asked of devices that only routers join, too.
	routed bool
	// sameHost: the peer was found on this host.
	sameHost bool
	// warned are the devices in no rail of which was said so.
	warned map[string]bool
	// serial counts the changes of this side's rails, said what the peer was told of it.
	serial, said uint64
	pace         pace
	// due looks at what the peer has told, doubt asks again.
	due, doubt *time.Timer
}

// maxWarned bounds the warnings about devices of one peer.
const maxWarned = 512

func newPairer() pairer {
	return pairer{busy: make(map[wire.RailID]*actor.PID), reach: make(map[[2]string]bool), warned: make(map[string]bool)}
}

// deviceNews takes what has changed about devices.
func (a *endpointActor) deviceNews(ctx actor.Context, message any) {
	switch m := message.(type) {
	case *devicesChanged:
		a.devicesChanged(ctx, m.back)
	case *devicesTold:
		a.devicesTold(ctx)
	case *revise:
		a.due = nil
		a.pace.took(a.e.m.now())
		a.takeTold(ctx)
	case *reached:
		a.reached(ctx, m.pairs)
	case *doubted:
		a.doubted(ctx)
	case *actor.Terminated:
		for id, pid := range a.busy {
			if pid.Equal(m.Who) { // what it has sent is in the mailbox already
				ctx.Send(ctx.Self(), &freed{id: id})
			}
		}
	case *freed:
		delete(a.busy, m.id)
		a.revise(ctx)
	}
}

// devicesChanged: the opener pairs anew, the other side tells the opener. Rails at devices that are back need not wait.
func (a *endpointActor) devicesChanged(ctx actor.Context, back []string) {
	for _, r := range a.e.records() {
		if r.pid != nil && slices.Contains(back, r.local) {
			ctx.Send(r.pid, &rail.LinkHint{Up: true})
		}
	}
	if len(back) > 0 {
		a.forgetRefusals()
	}
	a.revise(ctx)
	a.tell()
}

// devicesTold: the peer has told something new. It is looked at no more often than its pace allows.
func (a *endpointActor) devicesTold(ctx actor.Context) {
	if a.due != nil {
		return
	}
	root, self := a.e.root, ctx.Self()
	wait := a.pace.wait(a.e.m.now())
	if wait == 0 {
		a.pace.took(a.e.m.now())
		a.takeTold(ctx)
		return
	}
	a.due = time.AfterFunc(wait, func() { root.Send(self, &revise{}) })
}

// takeTold does what follows from what the peer has told.
func (a *endpointActor) takeTold(ctx actor.Context) {
	e := a.e
	e.mu.Lock()
	told := e.news
	e.news = nil
	if told != nil && !e.opener {
		for _, r := range e.rails {
			if r != nil {
				r.unlisted = !slices.Contains(told.GetRails(), uint32(r.id))
			}
		}
	}
	e.mu.Unlock()
	a.forgetRefusals()
	a.revise(ctx)
	a.prune(ctx)
}

// revise pairs the devices of both sides anew: pairs that are new get a rail, rails at devices that are gone end, and those that
// others take the place of end once these are up.
func (a *endpointActor) revise(ctx actor.Context) {
	e := a.e
	e.mu.Lock()
	opener, devices := e.opener && e.agreed && e.over() == nil, e.devices
	e.mu.Unlock()
	if !opener {
		return
	}
	here := e.m.cards.current.Load()
	p := &pairing{local: here.bindings, remote: devices, nets: here.nets, reach: a.reach, routed: a.routed}
	var rails []had
	var records []railRecord
	for _, r := range e.records() {
		h := had{pair: pair{local: -1, remote: -1}, up: e.worked(r.id)}
		h.local = slices.IndexFunc(p.local, func(b rail.Binding) bool { return b.Address == r.local })
		h.remote = slices.IndexFunc(p.remote, func(d *wire.Device) bool { return d.GetAddress() == r.deviceOrRemote() })
		if h.local < 0 || (h.remote < 0 && (!r.given || r.remote == r.device)) {
			a.end(ctx, r.id, ErrDeviceGone)
			continue
		}
		a.sameHost = a.sameHost || own(p.nets, r.remote)
		rails, records = append(rails, h), append(records, r)
	}
	p.sameHost = a.sameHost
	made := p.make(rails)
	e.mu.Lock()
	for k, r := range records {
		if r := e.record(r.id); r != nil {
			r.spare = slices.Contains(made.spare, k)
		}
	}
	e.mu.Unlock()
	a.extend(ctx, p, made.fresh)
	a.warn(made.left)
	a.choice = made.choice
	a.explore(ctx, p, made.open)
	a.railsChanged(ctx)
}

// deviceOrRemote names the peer's device as the peer tells it, as far as it is known.
func (r *railRecord) deviceOrRemote() string {
	if r.device != "" {
		return r.device
	}
	return r.remote
}

// extend makes rails of pairs, as far as there are numbers.
func (a *endpointActor) extend(ctx actor.Context, p *pairing, fresh []pair) {
	for _, x := range fresh {
		id, ok := a.free()
		if !ok {
			a.e.log.Warn("more pairs of devices than rails; the rest is not used", zap.Int("pairs", len(fresh)), zap.Int("rails", maxRails))
			return
		}
		b := p.local[x.local]
		device := p.remote[x.remote].GetAddress()
		a.ensure(ctx, id, railPlan{local: b.Address, remote: x.address, device: device, kind: a.e.m.cfg.Kinds[b.Kind]})
	}
}

// free gives the lowest number that no rail has.
func (a *endpointActor) free() (wire.RailID, bool) {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	for id := range wire.RailID(maxRails) {
		if _, busy := a.busy[id]; !busy && a.e.record(id) == nil {
			return id, true
		}
	}
	return 0, false
}

// warn reports devices that are in no rail, each once.
func (a *endpointActor) warn(left []unpaired) {
	e := a.e
	for _, u := range left {
		name := u.local + ">" + u.remote
		if a.warned[name] || len(a.warned) >= maxWarned {
			continue
		}
		a.warned[name] = true
		e.log.Warn("device is in no rail", zap.String("local", u.local), zap.String("remote", u.remote), zap.Error(u.why))
		e.m.cfg.Events.Publish(rail.Event{Kind: rail.DeviceWarning, Peer: e.address, Local: u.local, Remote: u.remote,
			Cause: fmt.Errorf("no rail to %s is made of it: %w", e.address, u.why)})
	}
}

// prune ends the rails that are over: spare ones whose devices are both in other rails that are up, and at the side that does not
// dial those that the opener does not have any more.
func (a *endpointActor) prune(ctx actor.Context) {
	e := a.e
	over := make(map[wire.RailID]error)
	e.look(func() {
		for _, r := range e.rails {
			switch {
			case r == nil:
			case r.spare && e.outdone(r):
				over[r.id] = errReplaced
			case r.unlisted && !e.opener && !e.connected(r.id):
				over[r.id] = errUnlisted
			}
		}
	})
	for id := range wire.RailID(maxRails) {
		if cause := over[id]; cause != nil {
			a.end(ctx, id, cause)
		}
	}
}

// Why rails end, besides that a device is gone.
var (
	errReplaced = fmt.Errorf("rails that fit better have its devices: %w", rail.ErrStopped)
	errUnlisted = fmt.Errorf("the peer does not dial it any more: %w", rail.ErrStopped)
)

// outdone tells whether both devices of a rail are in others that are up and stay. Called with the lock held.
func (e *Endpoint) outdone(old *railRecord) bool {
	local, remote := false, false
	for _, r := range e.rails {
		if r != nil && r != old && !r.spare && e.s.Lane(r.id).Up() {
			local = local || r.local == old.local
			remote = remote || r.deviceOrRemote() == old.deviceOrRemote()
		}
	}
	return local && remote
}

// connected tells whether a rail has a connection. Called with the lock held.
func (e *Endpoint) connected(id wire.RailID) bool {
	g := e.s.Lane(id).Current()
	return g != nil && !g.Fenced()
}

// end ends a rail for good. What it carried goes on over the others; its number is free once its actor has stopped.
func (a *endpointActor) end(ctx actor.Context, id wire.RailID, cause error) {
	e := a.e
	var r *railRecord
	e.locked(func(now time.Duration) {
		if r = e.record(id); r != nil {
			e.rails[id] = nil
			a.serial++
			e.s.Lane(id).FenceOlder(now, ^wire.Generation(0), cause)
		}
	})
	if r == nil {
		return
	}
	e.log.Info("rail ended", zap.Uint16("rail", uint16(id)), zap.String("local", r.local), zap.String("remote", r.remote), zap.Error(cause))
	e.m.cfg.Events.Publish(rail.Event{Kind: rail.RailEnded, Peer: e.address, Rail: id, Local: r.local, Remote: r.remote, Cause: cause})
	if r.pid != nil {
		a.busy[id] = r.pid
		ctx.Stop(r.pid)
	}
}
