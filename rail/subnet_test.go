package rail

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func hostWith(addresses ...string) (list []LocalAddress) {
	for i := 0; i < len(addresses); i += 2 {
		list = append(list, LocalAddress{Card: addresses[i], Prefix: netip.MustParsePrefix(addresses[i+1])})
	}
	return list
}

func TestSharedSubnets(t *testing.T) {
	host := hostWith("eth0", "10.0.0.1/24", "eth0", "fe80::1/64", "eth1", "10.0.0.2/24", "eth1", "fe80::2/64", "eth2", "10.0.1.1/24",
		"eth3", "fd00::1/64", "eth4", "fd00::2/64", "eth5", "10.0.0.3/24")
	bindings := func(list ...string) (b []Binding) {
		for _, a := range list {
			b = append(b, TCP(a))
		}
		return b
	}
	require.Empty(t, SharedSubnets(host, bindings("10.0.0.1:1", "10.0.1.1:1", "fd00::1")))
	require.Empty(t, SharedSubnets(host, bindings("fe80::1%eth0", "fe80::2%eth1")))
	require.Empty(t, SharedSubnets(host, bindings("10.0.0.1:1", "10.0.0.1:2")), "one card twice is no trap")
	found := SharedSubnets(host, bindings("10.0.0.2:1", "10.0.0.1:1", "10.0.1.1:1", "fd00::1", "fd00::2"))
	require.Len(t, found, 2)
	require.Equal(t, []string{"eth0", "eth1"}, found[0].Cards)
	require.Equal(t, netip.MustParsePrefix("10.0.0.0/24"), found[0].Subnet)
	require.Equal(t, []string{"eth3", "eth4"}, found[1].Cards)
	require.ErrorContains(t, found[0], "eth0, eth1")
	require.ErrorContains(t, found[0], "arp_ignore")
}

func TestLocalAddressesHaveLoopback(t *testing.T) {
	require.Contains(t, LocalAddresses(), LocalAddress{Card: "lo", Prefix: netip.MustParsePrefix("127.0.0.1/8")})
}
