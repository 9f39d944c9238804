package lab

import (
	"errors"
	"fmt"
	"testing"
	"time"

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
			if d.Usable && d.Why == "" {
				why[d.Name] = "used"
			}
		}
		return err
	}))
	return why
}

// give gives a card of this namespace an address. Nothing in it may end the test: it runs in the host's thread.
func give(card, address string) error {
	link, err := netlink.LinkByName(card)
	if err != nil {
		return fmt.Errorf("card %s: %w", card, err)
	}
	at, err := netlink.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("address of card %s: %w", card, err)
	}
	return netlink.AddrAdd(link, at)
}

// A host with containers: their bridge, its ports and other made-up cards carry no rail, and each says why.
func TestOnlyCardsThatReachTheOtherHostAreChosen(t *testing.T) {
	l := laboratory(t, Options{Rails: 2})
	require.NoError(t, l.Do(A, func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "docker0"}}
		port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "veth1234"}, PeerName: "veth5678"}
		tunnel := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun9"}, Mode: netlink.TUNTAP_MODE_TUN}
		for _, link := range []netlink.Link{bridge, tunnel, port} {
			if err := errors.Join(netlink.LinkAdd(link), netlink.LinkSetUp(link)); err != nil {
				return fmt.Errorf("%s: %w", link.Attrs().Name, err)
			}
		}
		return errors.Join(netlink.LinkSetMaster(port, bridge), give("docker0", "172.17.0.1/16"), give("tun9", "10.1.1.1/24"))
	}))
	why := usable(t, l)
	// A card that was just switched on takes a moment to find its carrier.
	for end := time.Now().Add(10 * time.Second); (why["rail0"] != "used" || why["rail1"] != "used") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		why = usable(t, l)
	}
	require.Equal(t, "used", why["rail0"])
	require.Equal(t, "used", why["rail1"])
	require.Contains(t, why["docker0"], "bridge")
	require.Contains(t, why["veth1234"], "part of docker0")
	require.Contains(t, why["veth5678"], "switched off")
	require.Contains(t, why["tun9"], "not a card")
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
	require.NoError(t, l.Do(A, func() error { return give("rail1", "10.77.0.9/24") }))
	found := traps()
	require.Len(t, found, 1)
	require.Equal(t, []string{"rail0", "rail1"}, found[0].Cards)
}
