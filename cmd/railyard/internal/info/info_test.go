package info

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
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

func TestReport(t *testing.T) {
	r := New(host)
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
	})
	require.Len(t, shared.Notes, 1)
	assert.Contains(t, shared.Notes[0], "eth0, eth1 are all in subnet 10.0.0.0/24")

	empty := New(nil)
	assert.Contains(t, empty.Notes[0], "no card can be used")
	b, err = json.Marshal(empty)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "null", "lists are lists, even empty ones")
}

func TestTextFitsAndIsAligned(t *testing.T) {
	for _, width := range []int{1, 40, 80, 500} {
		text := New(host).Text(width)
		for _, line := range strings.Split(text, "\n") {
			assert.LessOrEqual(t, len(line), max(width, 60), "%q", line)
		}
	}
	text := New(host).Text(80)
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
	assert.NotEmpty(t, r.Text(80))
}
