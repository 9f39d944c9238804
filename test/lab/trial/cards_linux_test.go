package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"railyard/test/lab"
)

// onCard does something with a card of a host. Nothing in it may end the test: it runs in the host's thread.
func onCard(t *testing.T, l *lab.Lab, s lab.Side, card string, do func(netlink.Link) error) {
	t.Helper()
	require.NoError(t, l.Do(s, func() error {
		link, err := netlink.LinkByName(card)
		if err != nil {
			return fmt.Errorf("card %s: %w", card, err)
		}
		return do(link)
	}))
}

func address(t *testing.T, l *lab.Lab, s lab.Side, i int) *netlink.Addr {
	t.Helper()
	a, err := netlink.ParseAddr(l.Address(s, i).String() + "/24")
	require.NoError(t, err)
	return a
}

// Two nodes that name no rails, under a load that verifies: at the start each has one card. The second one gets its addresses, loses
// them, gets them again, is switched off and on. Nothing is lost, and at the end both cards carry.
func TestCardsComeAndGoUnderALoad(t *testing.T) {
	tool := build(t)
	l, err := lab.New(lab.Options{Rails: 2, Rates: []int64{shaped}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	each := func(do func(s lab.Side, card netlink.Link) error) {
		for _, s := range []lab.Side{lab.A, lab.B} {
			onCard(t, l, s, "rail1", func(card netlink.Link) error { return do(s, card) })
		}
	}
	remove := func(s lab.Side, card netlink.Link) error { return netlink.AddrDel(card, address(t, l, s, 1)) }
	add := func(s lab.Side, card netlink.Link) error { return netlink.AddrAdd(card, address(t, l, s, 1)) }
	each(remove)

	ready := &awaited{word: "serving", seen: make(chan struct{})}
	target, err := l.Start(lab.B, lab.Command{Path: tool.Path, Args: []string{"perf", "serve"}, Stdout: ready, Stderr: ready})
	require.NoError(t, err)
	select {
	case <-ready.seen:
	case <-target.Ended():
		require.FailNow(t, "the target has ended", ready.text())
	case <-time.After(settle):
		require.FailNow(t, "the target does not serve", ready.text())
	}
	at := l.Address(lab.B, 0).String()
	_, said, found := strings.Cut(ready.text(), at)
	require.True(t, found, ready.text())
	at += strings.FieldsFunc(said, func(r rune) bool { return r != ':' && (r < '0' || r > '9') })[0]
	var out, complaint bytes.Buffer
	initiator, err := l.Start(lab.A, lab.Command{Path: tool.Path, Args: []string{"perf", "put-bw", "--json", "--verify", "--to", at,
		"--size", "256KiB", "--window", "16", "--time", "14s"}, Stdout: &out, Stderr: &complaint})
	require.NoError(t, err)
	require.NoError(t, flowing(t.Context(), l), "%s", &complaint)

	carries := func(what string) {
		t.Helper()
		before, err := l.Received(lab.B, 1)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now, err := l.Received(lab.B, 1)
			return err == nil && now > before+1<<20
		}, settle, 10*time.Millisecond, "%s", what)
	}
	each(add)
	carries("a card that comes joins")
	each(remove)
	require.NoError(t, Pause(t.Context(), time.Second))
	each(add)
	carries("addresses that are back are used again")
	onCard(t, l, lab.B, "rail1", netlink.LinkSetDown)
	require.NoError(t, Pause(t.Context(), time.Second))
	onCard(t, l, lab.B, "rail1", netlink.LinkSetUp)
	carries("so is a card that is switched on again")

	require.NoError(t, ended(t.Context(), initiator))
	require.NoError(t, target.End())
	var r Result
	require.NoError(t, json.Unmarshal(out.Bytes(), &r), "%s%s", &out, &complaint)
	require.Zero(t, r.Errors, r.FirstErr)
	require.Zero(t, r.Bad)
	require.Positive(t, r.Verified)
	require.Equal(t, 2, r.Rails)
	for _, tr := range r.Trouble {
		require.NotEqual(t, "EndpointDown", tr.Kind, "%+v", tr)
	}
}
