package lab

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"railyard/rail"
)

// usable gives why each card is not used; empty: it is.
func usable(t *testing.T, l *Lab) map[string]string {
	t.Helper()
	why := make(map[string]string)
	require.NoError(t, l.Do(A, func() error {
		devices, err := rail.Discover()
		for _, d := range devices {
			why[d.Name] = d.Why
			require.True(t, d.Usable || d.Why != "", "%s is not used, and nobody says why", d.Name)
			if d.Usable && d.Why == "" {
				why[d.Name] = "used"
			}
		}
		return err
	}))
	return why
}

// A host with containers: their bridge, its ports and other made-up cards carry no rail, and each says why.
func TestOnlyCardsThatReachTheOtherHostAreChosen(t *testing.T) {
	l := laboratory(t, Options{Rails: 2})
	require.NoError(t, l.Do(A, func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "docker0"}}
		dummy := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "dummy0"}}
		port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "veth1234"}, PeerName: "veth5678"}
		for _, link := range []netlink.Link{bridge, dummy, port} {
			require.NoError(t, netlink.LinkAdd(link))
			require.NoError(t, netlink.LinkSetUp(link))
		}
		for name, address := range map[string]string{"docker0": "172.17.0.1/16", "dummy0": "10.1.1.1/24"} {
			link, err := netlink.LinkByName(name)
			require.NoError(t, err)
			at, err := netlink.ParseAddr(address)
			require.NoError(t, err)
			require.NoError(t, netlink.AddrAdd(link, at))
		}
		index, err := net.InterfaceByName("docker0")
		require.NoError(t, err)
		return netlink.LinkSetMasterByIndex(port, index.Index)
	}))
	why := usable(t, l)
	require.Equal(t, "used", why["rail0"])
	require.Equal(t, "used", why["rail1"])
	require.Contains(t, why["docker0"], "bridge")
	require.Contains(t, why["veth1234"], "part of docker0")
	require.Contains(t, why["veth5678"], "switched off")
	require.Contains(t, why["dummy0"], "not a card")
	require.Contains(t, why["lo"], "this host only")
}

// Two cards of one host in one subnet: the trap is found where it is, and says which cards.
func TestCardsThatShareASubnetAreFound(t *testing.T) {
	l := laboratory(t, Options{Rails: 2})
	traps := func() (found []*rail.SharedSubnetError) {
		require.NoError(t, l.Do(A, func() error {
			devices, err := rail.Discover()
			var bindings []rail.Binding
			for _, d := range devices {
				for _, a := range d.Addresses {
					bindings = append(bindings, rail.TCP(a.Addr().String()))
				}
			}
			found = rail.SharedSubnets(rail.LocalAddresses(), bindings)
			return err
		}))
		return found
	}
	require.Empty(t, traps())
	require.NoError(t, l.Do(A, func() error {
		card, err := netlink.LinkByName("rail1")
		require.NoError(t, err)
		at, err := netlink.ParseAddr("10.77.0.9/24")
		require.NoError(t, err)
		return netlink.AddrAdd(card, at)
	}))
	found := traps()
	require.Len(t, found, 1)
	require.Equal(t, []string{"rail0", "rail1"}, found[0].Cards)
}
