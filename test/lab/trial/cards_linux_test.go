package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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

// underLoad is a target and an initiator that puts and verifies, each a process on a host of the lab.
type underLoad struct {
	target, initiator *lab.Process
	out, complaint    bytes.Buffer
}

// begin starts the load, and returns when it flows. Without rails that are named each side finds its own cards.
func begin(t *testing.T, tool Tool, l *lab.Lab, there, here []string) *underLoad {
	t.Helper()
	ready := &awaited{word: "serving", seen: make(chan struct{})}
	rails := func(list []string) (args []string) {
		for _, r := range list {
			args = append(args, "--rail", r)
		}
		return args
	}
	var err error
	u := &underLoad{}
	u.target, err = l.Start(lab.B, lab.Command{Path: tool.Path, Args: append([]string{"perf", "serve"}, rails(there)...), Stdout: ready, Stderr: ready})
	require.NoError(t, err)
	select {
	case <-ready.seen:
	case <-u.target.Ended():
		require.FailNow(t, "the target has ended", ready.text())
	case <-time.After(settle):
		require.FailNow(t, "the target does not serve", ready.text())
	}
	var at string
	if len(there) > 0 {
		at = there[0]
	} else {
		at = l.Address(lab.B, 0).String()
		_, said, found := strings.Cut(ready.text(), at)
		require.True(t, found, ready.text())
		at += strings.FieldsFunc(said, func(r rune) bool { return r != ':' && (r < '0' || r > '9') })[0]
	}
	args := append([]string{"perf", "put-bw", "--json", "--verify", "--to", at, "--size", "256KiB", "--window", "16", "--time", "14s"}, rails(here)...)
	u.initiator, err = l.Start(lab.A, lab.Command{Path: tool.Path, Args: args, Stdout: &u.out, Stderr: &u.complaint})
	require.NoError(t, err)
	require.NoError(t, flowing(t.Context(), l), "%s", &u.complaint)
	return u
}

// end waits for the end of the load: nothing has failed, and so many rails carried at the end.
func (u *underLoad) end(t *testing.T, rails int) {
	t.Helper()
	require.NoError(t, ended(t.Context(), u.initiator))
	require.NoError(t, u.target.End())
	var r Result
	require.NoError(t, json.Unmarshal(u.out.Bytes(), &r), "%s%s", &u.out, &u.complaint)
	require.Zero(t, r.Unsound(), r.FirstErr)
	require.Positive(t, r.Verified)
	require.Equal(t, rails, r.Rails)
	for _, tr := range r.Trouble {
		require.NotEqual(t, "EndpointDown", tr.Kind, "%+v", tr)
	}
}

// carries waits until a card has received a MiB more.
func carries(t *testing.T, received func() (uint64, error), what string) {
	t.Helper()
	before, err := received()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := received()
		return err == nil && now > before+1<<20
	}, settle, 10*time.Millisecond, "%s", what)
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

	load := begin(t, tool, l, nil, nil)
	carries := func(what string) {
		t.Helper()
		carries(t, func() (uint64, error) { return l.Received(lab.B, 1) }, what)
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

	load.end(t, 2)
}

// A card that is not only switched off but gone from the host, and made anew, under a load: it joins each time.
func TestCardsAreMadeAndUnmadeUnderALoad(t *testing.T) {
	tool := build(t)
	l, err := lab.New(lab.Options{Rails: 1, Rates: []int64{shaped}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	load := begin(t, tool, l, nil, nil)
	received := func() (n uint64, err error) {
		err = l.Do(lab.B, func() error {
			link, err := netlink.LinkByName("extra")
			if err == nil {
				n = link.Attrs().Statistics.RxBytes
			}
			return err
		})
		return n, err
	}
	for round := range 2 {
		require.NoError(t, l.Cable("extra"))
		for s, address := range []string{"10.99.0.1/24", "10.99.0.2/24"} {
			at, err := netlink.ParseAddr(address)
			require.NoError(t, err)
			onCard(t, l, lab.Side(s), "extra", func(card netlink.Link) error {
				return errors.Join(netlink.AddrAdd(card, at), netlink.LinkSetUp(card))
			})
		}
		carries(t, received, fmt.Sprintf("a card that was made joins, round %d", round))
		if round == 0 {
			onCard(t, l, lab.A, "extra", netlink.LinkDel) // its other end goes with it
			require.NoError(t, Pause(t.Context(), time.Second))
		}
	}
	load.end(t, 2)
}

// Rails that have link-local addresses alone: each belongs to the card that its zone names.
func TestLinkLocalRails(t *testing.T) {
	tool := build(t)
	l, err := lab.New(lab.Options{Rails: 2, Rates: []int64{shaped}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	addresses := [2]string{"fe80::a", "fe80::b"} // the same on both links, as it may be
	give := func(s lab.Side, card string) {
		at, err := netlink.ParseAddr(addresses[s] + "/64")
		require.NoError(t, err)
		at.Flags = unix.IFA_F_NODAD
		onCard(t, l, s, card, func(link netlink.Link) error { return netlink.AddrAdd(link, at) })
	}
	var rails [2][]string
	for i := range 2 {
		card := fmt.Sprintf("rail%d", i)
		for s, address := range addresses {
			give(lab.Side(s), card)
			rails[s] = append(rails[s], fmt.Sprintf("[%s%%%s]:%d", address, card, port))
		}
	}
	load := begin(t, tool, l, rails[lab.B], rails[lab.A])
	for i := range 2 {
		carries(t, func() (uint64, error) { return l.Received(lab.B, i) }, fmt.Sprintf("rail %d", i))
	}
	_, err = l.Cut(1, lab.Cut{Kind: lab.LinkDown, Where: lab.B})
	require.NoError(t, err)
	require.NoError(t, Pause(t.Context(), time.Second))
	_, err = l.Heal(1)
	require.NoError(t, err)
	give(lab.B, "rail1") // the system takes it away from a card that is switched off
	carries(t, func() (uint64, error) { return l.Received(lab.B, 1) }, "a link that is up again")
	load.end(t, 2)
}
