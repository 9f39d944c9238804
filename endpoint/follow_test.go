package endpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rail"
)

// Each step is a look at the host; what follows from it is written down in short.
func TestCardsAreJudged(t *testing.T) {
	errPulled := errors.New("pulled")
	card := func(address string) rail.Binding {
		b := rail.TCP(address)
		b.Name = "eth" + address[len(address)-1:]
		return b
	}
	one, two := card("10.0.0.1"), card("10.0.1.2")
	lacking := func(gone ...string) func(rail.Binding) error {
		return func(b rail.Binding) error {
			for _, g := range gone {
				if b.Address == g+":0" {
					return errPulled
				}
			}
			return nil
		}
	}
	have := []*presence{{asked: one}, {asked: rail.TCP("10.0.9.9"), fixed: true, seen: true}, {asked: rail.TCP("10.0.9.8"), fixed: true}}
	for _, step := range []struct {
		name string
		at   time.Duration
		s    situation
		want moves
	}{
		{"nothing has changed", 0, situation{[]rail.Binding{one}, lacking("10.0.9.8")}, moves{}},
		{"another card", 1, situation{[]rail.Binding{one, two}, lacking()}, moves{open: []rail.Binding{two}}},
		{"a card goes", 10, situation{nil, lacking("10.0.0.1")}, moves{lost: []int{0}, next: 60}},
		{"and is still away", 40, situation{nil, lacking("10.0.0.1")}, moves{next: 30}},
		{"it is back", 69, situation{[]rail.Binding{one}, lacking()}, moves{back: []int{0}}},
		{"the card has another address now", 70, situation{[]rail.Binding{two}, lacking()}, moves{open: []rail.Binding{two}, lost: []int{0}, next: 60}},
		{"for good", 130, situation{[]rail.Binding{two}, lacking()}, moves{open: []rail.Binding{two}, gone: []int{0}}},
		{"an address that is named is away", 131, situation{[]rail.Binding{one}, lacking("10.0.9.9", "10.0.9.8")},
			moves{lost: []int{1, 2}, back: []int{0}}},
		{"it is never given up", 9999, situation{[]rail.Binding{one}, lacking("10.0.9.9", "10.0.9.8")}, moves{}},
		{"it is back, after all", 10000, situation{[]rail.Binding{one}, lacking()}, moves{back: []int{1, 2}}},
	} {
		require.Equal(t, step.want, judgeCards(step.at, 60, have, step.s), step.name)
	}
	require.False(t, have[0].fixed)
}

// A host that does not list an address may have it all the same, so long as it never has listed it.
func TestWhatIsNotListedIsNotAway(t *testing.T) {
	have := []*presence{{asked: rail.TCP("10.0.9.8"), fixed: true}}
	lacks := func(rail.Binding) error { return errUnwanted }
	require.Equal(t, moves{}, judgeCards(1, 60, have, situation{lacks: lacks}))
}

// However often the peer tells new devices, it makes this side look the less often the more it does so.
func TestPaceBoundsWhatAPeerCanMakeUsDo(t *testing.T) {
	var p pace
	looks := 0
	for now := time.Duration(0); now < time.Hour; now += 10 * time.Millisecond {
		if p.wait(now) == 0 {
			p.took(now)
			looks++
		}
	}
	require.Less(t, looks, 250)
	require.Greater(t, looks, 200, "and it goes on")
	later := 2 * time.Hour
	require.Zero(t, p.wait(later))
	p.took(later)
	require.Equal(t, paceMin, p.wait(later), "who has been quiet is trusted again")
}
