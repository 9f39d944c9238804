package perf

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
)

func TestOnceCountsInAnyOrder(t *testing.T) {
	var o once
	for _, n := range []uint64{2, 0, 3, 1, 5, 4} {
		o.saw(n)
	}
	assert.Equal(t, once{next: 6, landed: 6, ahead: map[uint64]struct{}{}}, o)
	for _, n := range []uint64{0, 5, 7, 7} {
		o.saw(n)
	}
	assert.EqualValues(t, 7, o.landed, "six has not come")
	assert.EqualValues(t, 3, o.doubled)
}

func TestOnceIsBounded(t *testing.T) {
	var o once
	for n := uint64(1); n < 2*maxAhead; n++ { // the first is missing
		o.saw(n)
	}
	assert.Len(t, o.ahead, maxAhead)
	assert.EqualValues(t, maxAhead, o.landed)
	assert.Zero(t, o.doubled)
}

func TestTargetCountsWhatItIsToldOf(t *testing.T) {
	server, ask := asker(t, "i", "j")
	system := server.system
	first, second := ask(&Prepare{Initiator: "i", Region: 4096}).(*Ready), ask(&Prepare{Initiator: "j", Region: 4096}).(*Ready)
	assert.NotEqual(t, first.Test, second.Test)
	inspect := func(who string) *Inspected { return ask(&Inspect{Initiator: who, Size: 4096, Count: 1}).(*Inspected) }
	for _, n := range []uint64{0, 1, 1} {
		system.Root.Send(actor.NewPID(system.Address(), controlName), &Landed{Test: first.Test, Number: n})
	}
	assert.EqualValues(t, 2, inspect("i").Landed)
	assert.EqualValues(t, 1, inspect("i").Doubled)
	assert.Zero(t, inspect("j").Landed, "each test by itself")
}
