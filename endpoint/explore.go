package endpoint

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/rail"
	"railyard/wire"
)

// This file: dials that find out which devices reach each other, where neither subnets nor the order tell.

// Bounds of asking who reaches whom.
const (
	askTimeout = 1500 * time.Millisecond
	askAtOnce  = 8
	askGap     = 5 * time.Second // between two rounds
	// askAgain is how long a rail may be down until those that did not answer are asked once more: cables may have been moved.
	askAgain = 30 * time.Second
)

// explore finds out which pairs of devices reach the peer, by a dial that ends with its greeting.
func (a *endpointActor) explore(ctx actor.Context, p *pairing, open []pair) {
	now := a.e.m.now()
	if a.asking || len(open) == 0 || (a.askNext > 0 && now < a.askNext) {
		return
	}
	a.asking, a.askNext = true, now+askGap
	m, address, root, self := a.e.m, a.e.address, a.e.root, ctx.Self()
	m.track(func() { root.Send(self, &reached{pairs: m.tryAll(address, p, open)}) })
}

// tryAll dials pairs, a few at a time.
func (m *Manager) tryAll(node string, p *pairing, open []pair) map[[2]string]bool {
	type answer struct {
		key [2]string
		yes bool
	}
	answers := make(chan answer, maxQuestions)
	turns := make(chan struct{}, askAtOnce)
	for _, x := range open {
		m.track(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			answers <- answer{p.key(x.local, x.remote), m.try(node, p, x)}
		})
	}
	pairs := make(map[[2]string]bool, len(open))
	for range open {
		a := <-answers
		pairs[a.key] = a.yes
	}
	return pairs
}

// maxReach bounds what is remembered of pairs.
const maxReach = 4096

// try asks one pair.
func (m *Manager) try(node string, p *pairing, x pair) bool {
	ctx, done := context.WithTimeout(m.ctx, askTimeout)
	defer done()
	who, err := m.ask(ctx, p.local[x.local], x.address, hostOf(node))
	return err == nil && who == node
}

// reached takes what dials have shown into the pairing.
func (a *endpointActor) reached(ctx actor.Context, pairs map[[2]string]bool) {
	a.asking = false
	if len(a.reach) >= maxReach { // of devices that are long gone
		clear(a.reach)
	}
	for key, yes := range pairs {
		a.reach[key] = yes
	}
	a.revise(ctx)
}

// wonder sees to it that pairs are looked at again while a rail is down and dials tell which pairs reach.
func (a *endpointActor) wonder(ctx actor.Context) {
	if !a.choice || a.doubt != nil || !a.e.opens() {
		return
	}
	for _, r := range a.e.Rails() {
		if r.State != rail.Up && r.State != rail.Probation {
			root, self := a.e.root, ctx.Self()
			a.doubt = time.AfterFunc(askAgain, func() { root.Send(self, &doubted{}) })
			return
		}
	}
}

// doubted: a rail has been down for a while, so that what dials have shown, or the order has chosen, may not be true any more.
func (a *endpointActor) doubted(ctx actor.Context) {
	a.doubt, a.routed = nil, true
	clear(a.reach)
	a.revise(ctx)
}

// opens tells whether this side dials the peer.
func (e *Endpoint) opens() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.opener && e.agreed && e.over() == nil
}

// worked tells whether a rail is up, or was a moment ago.
func (e *Endpoint) worked(id wire.RailID) bool {
	e.mu.Lock()
	defer e.unlock()
	r := e.record(id)
	return r != nil && (e.s.Lane(id).Up() || r.everUp && e.m.now()-r.since < askAgain)
}

// forgetRefusals makes pairs that did not answer be asked again.
func (a *endpointActor) forgetRefusals() {
	for key, yes := range a.reach {
		if !yes {
			delete(a.reach, key)
		}
	}
}
