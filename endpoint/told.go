package endpoint

import (
	"time"

	"go.uber.org/zap"

	"railyard/wire"
)

// This file: how the two ends of a session tell each other of devices that have changed since the handshake. The side that accepts tells
// its devices, the opener which rails it has. It is a message like others, so that it arrives once whatever rails die; but its
// target is the endpoint, and no actor can have that name.

const (
	devicesTarget = "railyard-$devices"
	devicesType   = "railyard.wire.Devices"
)

// tell tells the peer what it has not been told yet.
func (a *endpointActor) tell() {
	e := a.e
	local := e.m.cards.current.Load()
	news := &wire.Devices{}
	e.mu.Lock()
	switch {
	case !e.agreed || e.over() != nil:
	case !e.opener && local.serial > e.toldSerial:
		e.toldSerial = local.serial
		news.Serial, news.Devices = local.serial, local.told
	case e.opener && a.serial > a.said:
		a.said, news.Serial = a.serial, a.serial
		for _, r := range e.rails {
			if r != nil {
				news.Rails = append(news.Rails, uint32(r.id))
			}
		}
	}
	e.mu.Unlock()
	if news.GetSerial() == 0 {
		return
	}
	payload, err := wire.AppendDevices(nil, news)
	if err == nil {
		err = e.send(&Outgoing{Target: NewRefOnce(devicesTarget), Type: NewRefOnce(devicesType), System: true, Payload: payload})
	}
	if err != nil {
		e.log.Warn("the peer cannot be told of changed devices", zap.Error(err))
	}
}

// hearDevices takes what the peer tells, from a connection's reader. Only the newest is kept until the actor comes to it.
func (e *Endpoint) hearDevices(payload []byte) {
	told, err := wire.ParseDevices(payload)
	if err != nil {
		e.log.Warn("what the peer tells of its devices is malformed", zap.Error(err))
		return
	}
	e.mu.Lock()
	news := e.learn(told)
	e.mu.Unlock()
	if news {
		e.root.Send(e.pid, &devicesTold{})
	}
}

// learn takes over what the peer tells if it is newer; true: the actor has to look at it. Called with the lock held.
func (e *Endpoint) learn(told *wire.Devices) bool {
	if told.GetSerial() <= e.serial && e.devices != nil {
		return false
	}
	waiting := e.news != nil
	e.serial, e.news = told.GetSerial(), told
	if e.opener {
		e.devices = told.GetDevices()
	}
	return !waiting
}

// pace bounds how often the peer can make this side look at changed devices, and so dial: the first time at once, then the less often the
// more often it changes.
type pace struct {
	last, gap time.Duration
	began     bool
}

// The gap between two looks, at least and at most.
const (
	paceMin = 250 * time.Millisecond
	paceMax = 16 * time.Second
)

// wait is how long until the next look.
func (p *pace) wait(now time.Duration) time.Duration {
	if !p.began {
		return 0
	}
	return max(p.last+p.gap-now, 0)
}

// took notes a look. Changes that follow each other sooner than twice the gap make it twice as long.
func (p *pace) took(now time.Duration) {
	if p.began && now-p.last <= 2*p.gap {
		p.gap = min(2*p.gap, paceMax)
	} else {
		p.gap = paceMin
	}
	p.last, p.began = now, true
}
