package rail

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBindingsThatAreFine(t *testing.T) {
	for _, b := range []Binding{
		TCP("10.0.0.1:7400"), TCP("10.0.0.1"), TCP("[fd00::1]:7400"), TCP("fd00::1"), TCP("[fe80::1%eth0]:7400"),
		TCP("127.0.0.1:0"), TCP("10.0.0.1:7400", Advertised("gateway.example.org:9000")),
		TCP("10.0.0.1:7400", Advertised("[fd00::9]:9000")), Verbs("mlx5_0", 1),
	} {
		require.NoError(t, b.Validate(), "%+v", b)
		assert.NotEmpty(t, b.String())
	}
	assert.Equal(t, "10.0.0.1:0", TCP("10.0.0.1").Address, "no port: the system chooses")
	assert.Equal(t, "[fd00::1]:0", TCP("fd00::1").Address)
	require.NoError(t, Binding{Kind: "pipe", Address: "left"}.Validate("pipe"))
	require.NoError(t, ValidateBindings([]Binding{
		TCP("10.0.0.1:7400"), TCP("10.0.1.1:7400"), TCP("10.0.0.1:7401"), TCP("127.0.0.1:0"), TCP("127.0.0.1:0"),
		Verbs("mlx5_0", 1), Verbs("mlx5_0", 2),
	}))
	require.NoError(t, ValidateBindings(nil))
}

func TestBindingsAreRefusedByFieldAndValue(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		binding     Binding
		field, want string
	}{
		{Binding{}, "Kind", "use one of tcp, verbs"},
		{Binding{Kind: "pipe", Address: "x"}, "Kind", `"pipe"`},
		{TCP(""), "Address", "10.0.0.1:7400"},
		{TCP("10.0.0.1:"), "Address", `"10.0.0.1:"`},
		{TCP("10.0.0.1:99999"), "Address", "99999"},
		{TCP("localhost:7400"), "Address", `"localhost:7400"`},
		{TCP("eth0"), "Address", `"eth0"`},
		{TCP("0.0.0.0:7400"), "Address", "a rail is one card"},
		{TCP("[::]:7400"), "Address", "a rail is one card"},
		{TCP("224.0.0.1:7400"), "Address", "multicast"},
		{Binding{Kind: KindTCP, Address: "10.0.0.1:7400", Device: "mlx5_0"}, "Device", "only verbs"},
		{TCP("10.0.0.1:7400", Advertised("gateway")), "Advertise", `"gateway"`},
		{TCP("10.0.0.1:7400", Advertised(":7400")), "Advertise", "as peers should dial it"},
		{TCP("10.0.0.1:7400", Advertised("gateway:0")), "Advertise", "1 to 65535"},
		{TCP("10.0.0.1:7400", Advertised("gateway:http")), "Advertise", `"gateway:http"`},
		{TCP("10.0.0.1:7400", Advertised("0.0.0.0:7400")), "Advertise", "unspecified"},
		{TCP("10.0.0.1:7400", Advertised("gate way:7400")), "Advertise", "not a name"},
		{Verbs("", 1), "Device", "mlx5_0"},
		{Verbs("mlx5_0/1", 1), "Device", `"mlx5_0/1"`},
		{Verbs("mlx5_0", 0), "Port", `"0"`},
		{Verbs("mlx5_0", 255), "Port", `"255"`},
		{Binding{Kind: KindVerbs, Device: "mlx5_0", Port: 1, Address: "10.0.0.1:1"}, "Address", "Device and Port"},
	} {
		err := c.binding.Validate()
		require.ErrorIs(t, err, ErrBinding, "%+v", c.binding)
		assert.Contains(t, err.Error(), c.field+" is ")
		assert.Contains(t, err.Error(), c.want)
		require.False(t, seen[err.Error()], err)
		seen[err.Error()] = true
		require.ErrorIs(t, ValidateBindings([]Binding{TCP("10.9.9.9:1"), c.binding}), ErrBinding)
	}
	require.ErrorIs(t, Binding{Kind: "pipe"}.Validate("pipe"), ErrBinding)
}

func TestTwoRailsCannotShareAnAddress(t *testing.T) {
	for _, pair := range [][]Binding{
		{TCP("10.0.0.1:7400"), TCP("10.0.0.1:7400")},
		{TCP("10.0.0.1:7400"), TCP("[::ffff:10.0.0.1]:7400")},
		{TCP("[fd00::1]:7400"), TCP("[fd00:0:0::1]:7400")},
		{Verbs("mlx5_0", 1), Verbs("mlx5_0", 1)},
	} {
		err := ValidateBindings(append([]Binding{TCP("10.9.9.9:1")}, pair...))
		require.ErrorIs(t, err, ErrBinding)
		assert.Contains(t, err.Error(), "rails 1 and 2")
	}
	pipes := []Binding{{Kind: "pipe", Address: "left"}, {Kind: "pipe", Address: "left"}}
	require.ErrorIs(t, ValidateBindings(pipes, "pipe"), ErrBinding)
}
