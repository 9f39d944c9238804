package rail

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func someHost() Host {
	prefix := netip.MustParsePrefix
	return Host{
		Cards: []Device{
			{Name: "eth0", Usable: true, Addresses: []netip.Prefix{prefix("10.1.2.3/24"), prefix("10.9.9.9/24")}},
			{Name: "docker0", Addresses: []netip.Prefix{prefix("172.17.0.1/16")}, Why: "a bridge"},
			{Name: "eth1", Usable: true},
			{Name: "eth2", Usable: true, Addresses: []netip.Prefix{prefix("fd00::1/64")}},
			{Name: "lo", Why: whyLoopback},
		},
		Addresses: []LocalAddress{{"eth0", prefix("10.1.2.3/24")}, {"docker0", prefix("172.17.0.1/16")}},
	}
}

func addressesOfBindings(list []Binding) (addresses []string) {
	for _, b := range list {
		addresses = append(addresses, b.Address)
	}
	return addresses
}

func TestCardsAreChosen(t *testing.T) {
	host := someHost()
	found := Choose(nil, host)
	assert.Equal(t, []string{"10.1.2.3:0", "[fd00::1]:0"}, addressesOfBindings(found))
	require.NoError(t, ValidateBindings(found))
	named := Choose([]Binding{Card("eth9", 1), Card("docker0", 2), TCP("10.7.7.7:3"), Card("eth2", 4), Card("eth1", 5)}, host)
	assert.Equal(t, []string{"172.17.0.1:2", "10.7.7.7:3", "[fd00::1]:4"}, addressesOfBindings(named), "who is named need not be usable")
	require.NoError(t, ValidateBindings(named))
}

func TestIgnoredCardsSayWhy(t *testing.T) {
	list := someHost().Ignored()
	require.Len(t, list, 2)
	assert.Equal(t, "card docker0 is not used: a bridge", list[0].Error())
	assert.Equal(t, "eth1", list[1].Card)
}

func TestWhatTheHostLacksHasAReason(t *testing.T) {
	host := someHost()
	on := func(card, address string) Binding { return Binding{Kind: KindTCP, Name: card, Address: address} }
	for _, there := range []Binding{on("eth0", "10.1.2.3:0"), TCP("172.17.0.1:1"), TCP("127.0.0.9:1"), {Kind: "pipe", Address: "x"}} {
		require.NoError(t, host.Lacks(there), "%+v", there)
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		b    Binding
		want error
	}{
		{on("eth9", "10.0.0.1:0"), errCardGone}, {on("eth1", "10.0.0.1:0"), errNoAddress}, {on("eth0", "10.0.0.1:0"), errOtherCard},
		{on("docker0", "172.17.0.1:0"), errNotAllowed}, {TCP("10.0.0.1:1"), errNowhere},
	} {
		err := host.Lacks(c.b)
		require.ErrorIs(t, err, c.want)
		seen[err.Error()] = true
	}
	assert.Len(t, seen, 5)
}

func TestBindingsOfCards(t *testing.T) {
	b := Card("eth1", 7400, Advertised("gate.example:1"))
	require.NoError(t, b.Validate())
	assert.True(t, b.Follows())
	assert.Equal(t, "eth1:7400", b.String())
	assert.False(t, TCP("10.0.0.1:1").Follows())
	for _, bad := range []Binding{Card("eth 1", 1), {Kind: KindTCP, Name: "eth1", Address: ":x"}, {Kind: KindTCP, Address: ":7400"},
		Card("eth1", 1, Advertised("gate")), {Kind: KindTCP, Name: "eth1", Address: ":1", Device: "mlx5_0"}} {
		require.ErrorIs(t, bad.Validate(), ErrBinding, "%+v", bad)
	}
	require.ErrorIs(t, ValidateBindings([]Binding{Card("eth1", 1), Card("eth1", 2)}), ErrBinding)
}
