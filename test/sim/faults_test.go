package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryFaultIsNamedAndCounted(t *testing.T) {
	names := make(map[string]bool)
	w := NewWorld(OptionsOf(1))
	for k := range faultKinds {
		require.NotContains(t, names, k.String())
		names[k.String()] = true
		require.True(t, w.fault(k))
		require.Equal(t, uint64(1), k.Of(&w.Count), "%s has a counter of its own", k)
		require.Equal(t, uint64(k)+1, w.Count.Faults)
	}
}

func TestFaultsEndAtTheBound(t *testing.T) {
	opt := OptionsOf(1)
	opt.MaxFaults = 2
	w := NewWorld(opt)
	require.True(t, w.fault(FaultHole))
	require.True(t, w.fault(FaultReset))
	require.False(t, w.fault(FaultReset))
	require.Equal(t, Counts{Faults: 2, Holes: 1, Resets: 1}, w.Count)

	opt.MaxFaults = -1
	w = NewWorld(opt)
	require.False(t, w.fault(FaultHole))
	require.Zero(t, w.Count)
}
