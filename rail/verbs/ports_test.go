package verbs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree writes files below a folder of the test's own and gives the folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	}
	return root
}

func TestLookReadsRoCE(t *testing.T) {
	const port = "mlx5_0/ports/1/"
	root := tree(t, map[string]string{
		port + "state": "4: ACTIVE", port + "link_layer": "Ethernet", port + "rate": "100 Gb/sec (4X EDR)", port + "lid": "0x0",
		"mlx5_0/device/numa_node": "1",
		port + "gids/0":           "fe80:0000:0000:0000:0077:00ff:fe00:0001", port + "gid_attrs/types/0": "IB/RoCE v1",
		port + "gids/1": "fe80:0000:0000:0000:0077:00ff:fe00:0001", port + "gid_attrs/types/1": "RoCE v2",
		port + "gids/2": "0000:0000:0000:0000:0000:ffff:0a4d:0001", port + "gid_attrs/types/2": "IB/RoCE v1",
		port + "gids/3": "0000:0000:0000:0000:0000:ffff:0a4d:0001", port + "gid_attrs/types/3": "RoCE v2", port + "gid_attrs/ndevs/3": "eth0",
		port + "gids/4": "fd00:0000:0000:0000:0000:0000:0000:0001", port + "gid_attrs/types/4": "RoCE v2",
	})
	ports, err := look(root)
	require.NoError(t, err)
	require.Len(t, ports, 1)
	assert.Equal(t, Port{Device: "mlx5_0", Port: 1, Active: true, State: "ACTIVE", Ethernet: true, Rate: 100e9, NUMA: 1,
		GID: GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 15: 1}, GIDIndex: 3, HasGID: true, Netdev: "eth0"}, ports[0])
	require.NoError(t, ports[0].Usable())
	assert.Equal(t, "mlx5_0/1", ports[0].String())
}

func TestLookReadsInfiniBand(t *testing.T) {
	const port = "ib0/ports/2/"
	p, err := find(tree(t, map[string]string{port + "state": "4: ACTIVE", port + "link_layer": "InfiniBand", port + "lid": "0x12",
		port + "rate": "2.5 Gb/sec (1X SDR)"}), "ib0", 2)
	require.NoError(t, err)
	assert.Equal(t, uint16(0x12), p.LID)
	assert.Equal(t, uint64(2_500_000_000), p.Rate)
	require.NoError(t, p.Usable(), "InfiniBand is reached by its LID")
}

func TestStatesAreErrorsOfTheirOwn(t *testing.T) {
	down := tree(t, map[string]string{"a/ports/1/state": "1: DOWN", "a/ports/1/link_layer": "Ethernet"})
	bare := tree(t, map[string]string{"a/ports/1/state": "4: ACTIVE", "a/ports/1/link_layer": "Ethernet",
		"a/ports/1/gids/0": "0000:0000:0000:0000:0000:0000:0000:0000", "a/ports/1/gids/1": "nonsense"})
	p, err := find(down, "a", 1)
	require.NoError(t, err)
	require.ErrorIs(t, p.Usable(), ErrPortDown)
	assert.Contains(t, p.Usable().Error(), "a/1 is DOWN")
	p, err = find(bare, "a", 1)
	require.NoError(t, err)
	require.ErrorIs(t, p.Usable(), ErrNoGID)

	_, err = find(bare, "b", 1)
	require.ErrorIs(t, err, ErrNoDevice)
	assert.Contains(t, err.Error(), "b/1 is not one of a/1")
	for _, root := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		_, err = look(root)
		require.ErrorIs(t, err, ErrNoDevice)
	}
}
