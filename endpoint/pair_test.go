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
			pairs, left := p.make(c.first)
			var rails, out []string
			for _, x := range pairs {
				rails = append(rails, p.local[x.local].Address+">"+x.address)
			}
			for _, u := range left {
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
	pairs, left := p.make(pair{})
	require.Empty(t, pairs)
	require.Equal(t, []unpaired{{local: "x", why: errOtherKind}}, left)
}
