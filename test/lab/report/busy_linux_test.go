package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/test/lab"
	"railyard/test/lab/trial"
)

// rootless is why there can be no lab here; nil: there can.
var rootless error

func TestMain(m *testing.M) {
	rootless = lab.Enter()
	os.Exit(m.Run())
}

// TestNothingIsLostOnABusyMachine is the list, short. How soon a hole is noticed is the report's business: nobody knows what else
// this machine does.
func TestNothingIsLostOnABusyMachine(t *testing.T) {
	if rootless != nil {
		t.Skip(rootless)
	}
	var out bytes.Buffer
	tool, err := trial.Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	b := &bench{options: options{time: leastBusy}, tool: tool, out: &out}
	_, err = b.busy(t.Context())
	require.NoError(t, err)
	t.Log(out.String())
	assert.Contains(t, out.String(), "1 black holes")
	assert.Contains(t, out.String(), "failed 0, lost 0, doubled 0, wrong 0, ended 0")
}

func TestWhatCountsOnABusyMachine(t *testing.T) {
	second := int64(time.Second)
	holes := []hole{{10 * second, 18 * second}, {30 * second, 38 * second}}
	at := func(s float64, kind, remote string) trial.Trouble {
		return trial.Trouble{At: int64(s * float64(second)), Kind: kind, Remote: remote}
	}
	cut := func(address string) bool { return address == "b1" }
	good := []trial.Trouble{at(10.5, "RailSuspect", "b1"), at(10.7, "RailDown", "b1"), at(15, "RailRejoined", "b1"),
		at(31, "RailDown", "b1")}
	slowest, missed, falsely := judgeBusy(holes, good, cut)
	assert.Equal(t, time.Second, slowest)
	assert.Zero(t, missed+falsely)
	_, missed, falsely = judgeBusy(holes, append(good, at(12, "RailDown", "b0")), cut)
	assert.Equal(t, []int{0, 1}, []int{missed, falsely}, "the other rail")
	_, missed, falsely = judgeBusy(holes, append(good, at(25, "RailDown", "b1")), cut)
	assert.Equal(t, []int{0, 1}, []int{missed, falsely}, "between the holes")
	_, missed, falsely = judgeBusy(holes, good[:3], cut)
	assert.Equal(t, []int{1, 0}, []int{missed, falsely}, "the second was not noticed")
	_, missed, _ = judgeBusy(holes, append(good[:3:3], at(32.5, "RailDown", "b1")), cut)
	assert.Equal(t, 1, missed, "or too late")
}
