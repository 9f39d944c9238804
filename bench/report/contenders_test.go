package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/bench/internal/bars"
	"railyard/bench/internal/cell"
)

// TestContenders runs each contender's program with each of its loads for a moment.
func TestContenders(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, bars.Build(t.Context(), folder, contenders))
	papers, err := cell.NewPapers()
	require.NoError(t, err)
	run := func(name string, s cell.Spec) (cell.Result, error) {
		return cell.Run(t.Context(), cell.Cell{Program: filepath.Join(folder, name), Spec: s, Time: 200 * time.Millisecond,
			Papers: papers, Stderr: os.Stderr})
	}
	tls := bars.With(put4M, func(s *cell.Spec) { s.TLS = true })
	busy := bars.With(ping64, func(s *cell.Spec) { s.Beside = put4M.Size })
	loads := map[string][]cell.Spec{}
	for _, name := range contenders {
		loads[name] = []cell.Spec{ping64, small, mega}
	}
	loads[raw] = append(loads[raw], put4M, tls)
	loads[ours] = append(loads[ours], put4M, tls, get4M, putSingle, putSmall, bars.With(put4M, func(s *cell.Spec) { s.Rails = 2 }), busy)
	for _, name := range contenders {
		for _, s := range loads[name] {
			t.Run(name+" "+s.String(), func(t *testing.T) {
				r, err := run(name, s)
				require.NoError(t, err)
				assert.Positive(t, r.Bytes)
				assert.Positive(t, r.MBps)
				assert.InEpsilon(t, r.MBps*1e6, r.OpsPerS*float64(s.Size), 1e-6)
				assert.Positive(t, r.CPUPerGB)
				assert.Equal(t, s.Load == cell.Ping || s.Window == 1, r.P50 > 0, "times are taken where one is under way at a time")
				assert.Equal(t, s.Beside > 0, r.Beside > 0)
			})
		}
	}
	_, err = run(raw, get4M)
	require.ErrorContains(t, err, cell.ErrNoLoad.Error(), "what a contender cannot do is told")
}

// TestProfiles: both sides write theirs.
func TestProfiles(t *testing.T) {
	folder, profiles := t.TempDir(), t.TempDir()
	require.NoError(t, bars.Build(t.Context(), folder, []string{raw}))
	_, err := cell.Run(t.Context(), cell.Cell{Program: filepath.Join(folder, raw), Spec: ping64, Time: 100 * time.Millisecond,
		Stderr: os.Stderr, Profiles: profiles})
	require.NoError(t, err)
	for _, side := range []string{"serve", "drive"} {
		for _, kind := range []string{"cpu", "allocs", "block", "mutex"} {
			info, err := os.Stat(filepath.Join(profiles, "raw-ping-64-B_rails-1-"+side+"."+kind+".prof"))
			require.NoError(t, err)
			assert.Positive(t, info.Size())
		}
	}
}

// TestStopEndsChildren: whoever is interrupted leaves no process behind.
func TestStopEndsChildren(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, bars.Build(t.Context(), folder, []string{raw}))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	b := bars.NewBooks(bars.Books{Programs: folder, Log: os.Stderr})
	require.ErrorIs(t, b.Round(ctx, []bars.Side{side(raw, ping64)}, time.Hour), context.Canceled)
	assert.Empty(t, children())
}

// children lists the processes that this one has started and that are still there.
func children() (all []string) {
	lists, _ := filepath.Glob(filepath.Join("/proc/self/task", "*", "children"))
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err == nil && len(b) > 0 {
			all = append(all, string(b))
		}
	}
	return all
}
