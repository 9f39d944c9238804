package info

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rail/verbs"
)

var host = []rail.Device{
	{Name: "eth0", Kind: "device", Driver: "mlx5_core", Up: true, Usable: true, Speed: 100e9, RDMA: "mlx5_0",
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"),
			netip.MustParsePrefix("fd00:1234:5678:9abc:def0:1234:5678:9abc/64")}},
	{Name: "enp0s31f6np0", Kind: "device", Usable: true, Speed: 2.5e9, Why: "no carrier now; its rail comes up when the cable is in",
		Addresses: []netip.Prefix{netip.MustParsePrefix("fd00::2/64")}},
	{Name: "docker0", Kind: "bridge", Up: true, Speed: 10e6, Why: "a bridge (containers, virtual machines): this host's own ports are behind it, " +
		"and here follows averyverylongwordthatnoterminalhasroomforbecauseitgoesonandonandonandonandonandonandonandonandon"},
	{Name: "lo", Up: true, Why: "loopback: it reaches this host only"},
}

var rdma = RDMA{Ports: []verbs.Port{
	{Device: "mlx5_0", Port: 1, Active: true, State: "ACTIVE", Ethernet: true, Rate: 100e9, NUMA: 1, HasGID: true, Netdev: "eth0",
		GID: verbs.GID(netip.MustParseAddr("::ffff:10.0.0.1").As16())},
	{Device: "mlx5_0", Port: 2, State: "DOWN", Ethernet: true, NUMA: 1},
	{Device: "mlx5_1", Port: 1, Active: true, State: "ACTIVE", Ethernet: true, NUMA: -1},
}}

func TestPorts(t *testing.T) {
	r := New(host, rdma)
	require.Len(t, r.RDMA, 3)
	assert.Equal(t, Port{Device: "mlx5_0", Port: 1, State: "ACTIVE", Link: "RoCE", Address: "10.0.0.1", Netdev: "eth0", SpeedBits: 100e9,
		NUMA: 1, Usable: true}, r.RDMA[0])
	assert.Contains(t, r.RDMA[1].Why, verbs.ErrPortDown.Error())
	assert.Contains(t, r.RDMA[2].Why, verbs.ErrNoGID.Error())
	assert.Empty(t, r.NoVerbs)
	text := r.Text(80)
	assert.Contains(t, text, "mlx5_0/1   active  RoCE  100 Gbit/s  eth0  yes\n    10.0.0.1\n")
	assert.Contains(t, text, "mlx5_0/2   down    RoCE  unknown     -     no\n    mlx5_0/2 is DOWN: ")
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	for _, c := range []struct {
		what RDMA
		want []error
	}{
		{RDMA{Library: verbs.ErrNotBuilt, Devices: verbs.ErrNoDevice}, []error{verbs.ErrNotBuilt}},
		{RDMA{Library: verbs.ErrNoLibrary, Devices: verbs.ErrNoDevice}, []error{verbs.ErrNoLibrary, verbs.ErrNoDevice}},
		{RDMA{Devices: verbs.ErrNoDevice}, []error{verbs.ErrNoDevice}},
		{RDMA{Library: verbs.ErrNoLibrary, Ports: rdma.Ports}, []error{verbs.ErrNoLibrary}},
	} {
		r := New(host, c.what)
		for _, want := range c.want {
			assert.Contains(t, r.NoVerbs, want.Error())
		}
		assert.Contains(t, strings.Join(strings.Fields(r.Text(80)), " "), "no rails over verbs: "+r.NoVerbs)
		for _, p := range r.RDMA {
			assert.False(t, p.Usable, "without a library no port can be used")
		}
	}
}

func TestReport(t *testing.T) {
	r := New(host, rdma)
	assert.Equal(t, []string{"10.0.0.1", "[fd00::2]"}, r.Rails)
	require.Len(t, r.Devices, 4)
	assert.True(t, r.Devices[0].Used)
	assert.Equal(t, "mlx5_0", r.Devices[0].RDMA)
	assert.False(t, r.Devices[3].Used)
	assert.Contains(t, strings.Join(r.Notes, " "), "verbs")
	b, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"speed_bits_per_s":100000000000`)

	shared := New([]rail.Device{
		{Name: "eth0", Usable: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}},
		{Name: "eth1", Usable: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}},
		{Name: "eth2", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.3/24")}},
	}, RDMA{})
	require.Len(t, shared.Notes, 1)
	assert.Contains(t, shared.Notes[0], "eth0, eth1 are all in subnet 10.0.0.0/24")

	empty := New(nil, RDMA{})
	assert.Contains(t, empty.Notes[0], "no card can be used")
	b, err = json.Marshal(empty)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "null", "lists are lists, even empty ones")
}

func TestTextFitsAndIsAligned(t *testing.T) {
	for _, width := range []int{1, 40, 80, 500} {
		text := New(host, rdma).Text(width)
		for _, line := range strings.Split(text, "\n") {
			assert.LessOrEqual(t, len(line), max(width, 60), "%q", line)
		}
	}
	text := New(host, rdma).Text(80)
	lines := strings.Split(text, "\n")
	column := strings.Index(lines[0], "speed")
	for _, line := range lines[1:] {
		switch {
		case strings.HasPrefix(line, "eth0"):
			assert.True(t, strings.HasPrefix(line[column:], "100 Gbit/s"), line)
		case strings.HasPrefix(line, "enp0"):
			assert.True(t, strings.HasPrefix(line[column:], "2.5 Gbit/s"), line)
		case strings.HasPrefix(line, "docker0"):
			assert.True(t, strings.HasPrefix(line[column:], "10 Mbit/s"), line)
		case strings.HasPrefix(line, "lo "):
			assert.True(t, strings.HasPrefix(line[column:], "unknown"), line)
		}
	}
	assert.Contains(t, text, "    10.0.0.1/24, ")
	assert.Contains(t, text, "rails of a node without bindings: 2\n    10.0.0.1, [fd00::2]")
}

func TestThisHost(t *testing.T) {
	r, err := Look()
	require.NoError(t, err)
	assert.NotEmpty(t, r.Devices, "loopback at least")
	assert.NotEmpty(t, r.Limits)
	for _, d := range r.Devices {
		assert.NotZero(t, d.MTU, d.Name)
	}
	assert.NotEmpty(t, r.Text(80))
}

func TestLimitsThatAreTooLowComeWithAHint(t *testing.T) {
	low := limits(facts{memlock: "8388608", files: "1024", receive: "4096 131072 1048576", send: "4096\t16384\t1048576", congestion: "bbr",
		cpus: 2, nodes: 1})
	hints := 0
	for _, l := range low {
		if l.Hint != "" {
			hints++
		}
	}
	assert.Equal(t, 5, hints, low)
	for _, l := range limits(facts{memlock: unlimited, files: "65536", receive: "4096 131072 33554432", send: "4096 131072 33554432", congestion: "cubic"}) {
		assert.Empty(t, l.Hint, l)
	}
	for _, l := range limits(facts{}) {
		assert.Empty(t, l.Hint, "what is not known is not blamed: %v", l)
	}
	r := New(host, RDMA{})
	r.Limits = low
	text := r.Text(80)
	assert.Contains(t, text, "locked memory")
	assert.Contains(t, text, "8 MiB")
	assert.Contains(t, text, "LimitNOFILE=65536")
	for _, line := range strings.Split(text, "\n") {
		assert.LessOrEqual(t, len(line), 80, "%q", line)
	}
}
