package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func TestDevicesComeAsTheyWereTold(t *testing.T) {
	told := &Devices{Serial: 7, Devices: []*Device{{Kind: "tcp", Address: "10.0.0.1:7400"}, {Kind: "verbs", Name: "mlx5_0"}},
		Rails: []uint32{0, 2, 1<<16 - 1}}
	b, err := AppendDevices([]byte("x"), told)
	require.NoError(t, err)
	heard, err := ParseDevices(b[1:])
	require.NoError(t, err)
	require.True(t, proto.Equal(told, heard), "%v", heard)
}

func TestDevicesAreBounded(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range []*Devices{
		{Devices: make([]*Device, MaxDevices+1)},
		{Rails: make([]uint32, MaxRails+1)},
		{Rails: []uint32{1 << 16}},
		{Devices: []*Device{{Address: strings.Repeat("a", MaxName+1)}}},
	} {
		_, err := AppendDevices(nil, m)
		require.ErrorIs(t, err, ErrMalformed)
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		_, err = ParseDevices(b)
		require.ErrorIs(t, err, ErrMalformed, "what is not said is not heard either")
		seen[err.Error()] = true
	}
	many, err := proto.Marshal(&Devices{Devices: make([]*Device, 2*maxParts)})
	require.NoError(t, err)
	for _, b := range [][]byte{{0xff}, make([]byte, MaxHandshake+1), many, {0x12, 0x02, 0x0a, 0xff}} {
		_, err := ParseDevices(b)
		require.ErrorIs(t, err, ErrMalformed)
		seen[err.Error()] = true
	}
	assert.Len(t, seen, 8, "%v", seen)
}

func FuzzDevices(f *testing.F) {
	b, err := AppendDevices(nil, &Devices{Serial: 1, Devices: []*Device{{Kind: "tcp", Address: "10.0.0.1:1"}}, Rails: []uint32{3}})
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseDevices(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := AppendDevices(nil, m)
		require.NoError(t, err)
		back, err := ParseDevices(again)
		require.NoError(t, err)
		require.True(t, proto.Equal(m, back))
	})
}
