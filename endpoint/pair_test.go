package endpoint

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/wire"
)

// Each case is two hosts; the first rail is there already, by the places of its devices.
func TestPairing(t *testing.T) {
	for _, c := range []struct {
		name          string
		nets          []string
		local, remote []string
		first         pair
		sameHost      bool
		rails         []string
		left          []string
	}{
		{name: "two subnets, told in different order",
			nets:  []string{"10.0.0.1/24", "10.0.1.1/24"},
			local: []string{"10.0.0.1:1", "10.0.1.1:1"}, remote: []string{"10.0.1.2:1", "10.0.0.2:1"}, first: pair{local: 0, remote: 1},
			rails: []string{"10.0.1.1:1>10.0.1.2:1"}},
		{name: "routed: no subnet in common, in the order of the configuration",
			nets:  []string{"10.0.0.1/24", "10.0.1.1/24", "10.0.2.1/24"},
			local: []string{"10.0.0.1:1", "10.0.1.1:1", "10.0.2.1:1"}, remote: []string{"10.9.0.2:1", "10.9.1.2:1", "10.9.2.2:1"},
			rails: []string{"10.0.1.1:1>10.9.1.2:1", "10.0.2.1:1>10.9.2.2:1"}},
		{name: "more cards here than there: those there serve again",
			nets:  []string{"10.0.0.1/24", "10.0.1.1/24", "10.0.2.1/24"},
			local: []string{"10.0.0.1:1", "10.0.1.1:1", "10.0.2.1:1"}, remote: []string{"10.0.0.2:1"},
			rails: []string{"10.0.1.1:1>10.0.0.2:1", "10.0.2.1:1>10.0.0.2:1"}},
		{name: "more cards there than here",
			nets: []string{"10.0.0.1/24"}, local: []string{"10.0.0.1:1"}, remote: []string{"10.0.0.2:1", "10.0.1.2:1"},
			rails: []string{"10.0.0.1:1>10.0.1.2:1"}},
		{name: "mixed families go with their own",
			nets:  []string{"10.0.0.1/24", "fd00::1/64"},
			local: []string{"10.0.0.1:1", "[fd00::1]:1"}, remote: []string{"10.0.0.2:1", "[fd00::2]:1"},
			rails: []string{"[fd00::1]:1>[fd00::2]:1"}},
		{name: "no rail between families",
			nets:  []string{"10.0.0.1/24", "fd00::1/64"},
			local: []string{"10.0.0.1:1", "[fd00::1]:1"}, remote: []string{"10.0.0.2:1"},
			left: []string{"[fd00::1]:1: " + errOtherFamily.Error()}},
		{name: "a peer's loopback leads nowhere",
			nets:  []string{"10.0.0.1/24", "10.0.1.1/24"},
			local: []string{"10.0.0.1:1", "10.0.1.1:1"}, remote: []string{"10.0.0.2:1", "127.0.0.1:1"},
			rails: []string{"10.0.1.1:1>10.0.0.2:1"}, left: []string{"127.0.0.1:1: " + errLoopback.Error()}},
		{name: "but to a peer on this host", sameHost: true,
			nets:  []string{"127.0.0.1/8"},
			local: []string{"127.0.0.1:1", "127.0.0.1:2"}, remote: []string{"127.0.0.1:3", "127.0.0.1:4"},
			rails: []string{"127.0.0.1:2>127.0.0.1:4"}},
		{name: "link-local: by the card here, whatever the peer calls its own",
			nets:  []string{"10.0.0.1/24", "fe80::1/64"},
			local: []string{"10.0.0.1:1", "[fe80::1%eth1]:1"}, remote: []string{"10.0.0.2:1", "[fe80::2%enp3s0]:1"},
			rails: []string{"[fe80::1%eth1]:1>[fe80::2%eth1]:1"}},
		{name: "link-local from a routed address",
			nets:  []string{"fd00::1/64", "fd01::1/64"},
			local: []string{"[fd00::1]:1", "[fd01::1]:1"}, remote: []string{"[fd00::2]:1", "[fe80::2%eth0]:1"},
			rails: []string{"[fd01::1]:1>[fd00::2]:1"}, left: []string{"[fe80::2%eth0]:1: " + errLinkLocal.Error()}},
		{name: "a name, behind a forwarder: only a dial can tell",
			nets:  []string{"10.0.0.1/24", "10.0.1.1/24"},
			local: []string{"10.0.0.1:1", "10.0.1.1:1"}, remote: []string{"10.0.0.2:1", "gate.example:7400"},
			rails: []string{"10.0.1.1:1>gate.example:7400"}},
		{name: "the first rail is over an address that the peer does not tell",
			nets:  []string{"10.0.0.1/24"},
			local: []string{"10.0.0.1:1"}, remote: []string{"10.0.0.2:1"}, first: pair{local: 0, remote: -1},
			rails: []string{"10.0.0.1:1>10.0.0.2:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pairing{sameHost: c.sameHost}
			for _, n := range c.nets {
				p.nets = append(p.nets, netip.MustParsePrefix(n))
			}
			for _, a := range c.local {
				p.local = append(p.local, rail.Binding{Kind: rail.KindTCP, Address: a})
			}
			for _, a := range c.remote {
				p.remote = append(p.remote, &wire.Device{Kind: rail.KindTCP, Address: a})
			}
			made := p.make([]had{{pair: c.first}})
			var rails, out []string
			for _, x := range made.fresh {
				rails = append(rails, p.local[x.local].Address+">"+x.address)
			}
			for _, u := range made.left {
				out = append(out, fmt.Sprintf("%s%s: %v", u.local, u.remote, u.why))
			}
			require.Equal(t, c.rails, rails)
			require.Equal(t, c.left, out)
		})
	}
}

func TestKindsAreNotMixed(t *testing.T) {
	p := &pairing{local: []rail.Binding{{Kind: rail.KindTCP, Address: "10.0.0.1:1"}, {Kind: "other", Address: "x"}},
		remote: []*wire.Device{{Kind: rail.KindTCP, Address: "10.0.0.2:1"}}}
	made := p.make([]had{{}})
	require.Empty(t, made.fresh)
	require.Equal(t, []unpaired{{local: "x", why: errOtherKind}}, made.left)
}

// The rails that are there are places in both lists; u marks those that were up. The answers are places too.
func TestPairingAnew(t *testing.T) {
	up := func(i, j int) had { return had{pair: pair{local: i, remote: j}, up: true} }
	not := func(i, j int) had { return had{pair: pair{local: i, remote: j}} }
	two, one := []string{"10.0.0.1:1", "10.0.1.1:1"}, []string{"10.0.0.1:1"}
	far, near := []string{"10.9.0.2:1", "10.9.1.2:1"}, []string{"10.0.0.2:1", "10.0.1.2:1"}
	shared := []string{"10.0.0.1:1", "10.0.0.2:1"}
	for _, c := range []struct {
		name          string
		local, remote []string
		rails         []had
		reach         map[[2]int]bool
		fresh         [][2]int
		spare         []int
		open          [][2]int
		routed        bool
	}{
		{name: "nothing new", local: two, remote: near, rails: []had{up(0, 0), up(1, 1)}},
		{name: "a card here: the rail that served twice is spare", local: two, remote: near, rails: []had{up(0, 0), up(0, 1)},
			fresh: [][2]int{{1, 1}}, spare: []int{1}},
		{name: "the same without a subnet in common", local: two, remote: far, rails: []had{up(0, 0), up(0, 1)},
			fresh: [][2]int{{1, 1}}, spare: []int{1}},
		{name: "rails that are there stay, whatever the order", local: two, remote: far, rails: []had{up(0, 1), not(1, 0)}},
		{name: "unless a subnet says better", local: two, remote: near, rails: []had{up(0, 1), up(1, 0)},
			fresh: [][2]int{{0, 0}, {1, 1}}, spare: []int{0, 1}},
		{name: "a card there serves with the one that is here", local: one, remote: near, rails: []had{up(0, 0)}, fresh: [][2]int{{0, 1}}},
		{name: "what the application dialed is not judged", local: one, remote: nil, rails: []had{up(0, -1)}},
		{name: "one subnet at both ends: the order, until dials tell", local: shared, remote: []string{"10.0.0.3:1", "10.0.0.4:1"},
			fresh: [][2]int{{0, 0}, {1, 1}}, open: [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}}},
		{name: "dials have told", local: shared, remote: []string{"10.0.0.3:1", "10.0.0.4:1"}, rails: []had{not(0, 0), not(1, 1)},
			reach: map[[2]int]bool{{0, 0}: false, {1, 1}: false, {0, 1}: true, {1, 0}: true},
			fresh: [][2]int{{0, 1}, {1, 0}}, spare: []int{0, 1}},
		{name: "nobody was there to answer: the order stays", local: shared, remote: []string{"10.0.0.3:1", "10.0.0.4:1"},
			rails: []had{not(0, 0), not(1, 1)}, reach: map[[2]int]bool{{0, 0}: false, {1, 1}: false, {0, 1}: false, {1, 0}: false}},
		{name: "several links that all have the link-local subnet", local: []string{"[fe80::1%a]:1", "[fe80::2%b]:1"},
			remote: []string{"[fe80::3]:1", "[fe80::4]:1"}, rails: []had{up(1, 0)},
			fresh: [][2]int{{0, 1}}, open: [][2]int{{0, 0}, {0, 1}, {1, 1}}},
		{name: "routers join them: the order, until a rail stays down", local: two, remote: far, fresh: [][2]int{{0, 0}, {1, 1}}},
		{name: "and then dials tell", local: two, remote: far, rails: []had{not(0, 0), not(1, 1)}, routed: true,
			open: [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}}},
		{name: "of those alone that no subnet joins", local: append(two, "10.7.0.1:1", "10.7.1.1:1"), remote: append(near, "10.8.0.1:1", "10.8.1.1:1"),
			rails: []had{up(0, 0), up(1, 1), not(2, 2), not(3, 3)}, routed: true, open: [][2]int{{2, 2}, {2, 3}, {3, 2}, {3, 3}}},
		{name: "one card there: nothing to ask", local: shared, remote: []string{"10.0.0.3:1"}, fresh: [][2]int{{0, 0}, {1, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pairing{reach: make(map[[2]string]bool), routed: c.routed}
			for _, n := range []string{"10.0.0.1/24", "10.0.0.2/24", "10.0.1.1/24", "fe80::1/64", "fe80::2/64"} {
				p.nets = append(p.nets, netip.MustParsePrefix(n))
			}
			for _, a := range c.local {
				p.local = append(p.local, rail.Binding{Kind: rail.KindTCP, Address: a})
			}
			for _, a := range c.remote {
				p.remote = append(p.remote, &wire.Device{Kind: rail.KindTCP, Address: a})
			}
			for k, yes := range c.reach {
				p.reach[p.key(k[0], k[1])] = yes
			}
			places := func(list []pair) (to [][2]int) {
				for _, x := range list {
					to = append(to, [2]int{x.local, x.remote})
				}
				return to
			}
			made := p.make(c.rails)
			require.Equal(t, c.fresh, places(made.fresh), "fresh")
			require.Equal(t, c.spare, made.spare, "spare")
			require.Equal(t, c.open, places(made.open), "open")
		})
	}
}

// What a peer tells is not to be trusted: a device without an address must not become a rail.
func TestADeviceWithoutAnAddressIsNoRail(t *testing.T) {
	p := &pairing{local: []rail.Binding{rail.TCP("10.0.0.1:1")}, remote: []*wire.Device{{Kind: rail.KindTCP}}}
	made := p.make(nil)
	require.Empty(t, made.fresh)
	require.Len(t, made.left, 2)
	require.ErrorIs(t, made.left[0].why, errNoAddress)
}
