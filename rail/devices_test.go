package rail

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestCardsAreJudgedWithAReason(t *testing.T) {
	const on = net.FlagUp | net.FlagRunning
	address := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}
	for _, c := range []struct {
		card   card
		usable bool
		why    string
	}{
		{card{name: "eth0", kind: "device", flags: on, addresses: address}, true, ""},
		{card{name: "eth0", kind: "veth", flags: on, addresses: address}, true, ""},
		{card{name: "bond0", kind: "bond", flags: on, addresses: address}, true, ""},
		{card{name: "eth1", kind: "device", flags: net.FlagUp, addresses: address}, true, "no carrier now"},
		{card{name: "eth2", kind: "device", addresses: address}, false, "ip link set eth2 up"},
		{card{name: "eth3", kind: "device", flags: on}, false, "no address"},
		{card{name: "eth4", kind: "device", flags: on, master: "bond0", addresses: address}, false, "part of bond0"},
		{card{name: "veth1", kind: "veth", flags: on, master: "docker0"}, false, "part of docker0"},
		{card{name: "docker0", kind: "bridge", flags: on, addresses: address}, false, "a bridge"},
		{card{name: "tun0", kind: "tuntap", flags: on, addresses: address}, false, "a virtual device (tuntap)"},
		{card{name: "what0", flags: on, addresses: address}, false, "of unknown kind"},
		{card{name: "lo", kind: "device", flags: on | net.FlagLoopback, addresses: address}, false, "loopback"},
	} {
		t.Run(c.card.name+" "+c.card.kind, func(t *testing.T) {
			d := c.card.device()
			assert.Equal(t, c.usable, d.Usable)
			if c.why == "" {
				assert.Empty(t, d.Why)
			}
			assert.Contains(t, d.Why, c.why)
			b, ok := d.Binding(7400)
			require.Equal(t, c.usable, ok)
			if ok {
				require.NoError(t, b.Validate())
				assert.Equal(t, "10.0.0.1:7400", b.Address)
				assert.Equal(t, c.card.name, b.Name)
			}
		})
	}
}

func TestCardFactsComeFromSysfs(t *testing.T) {
	sysfs := t.TempDir()
	dir := filepath.Join(sysfs, "card0")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "device"), 0o755))
	require.NoError(t, os.Symlink("../../drivers/mlx5_core", filepath.Join(dir, "device", "driver")))
	require.NoError(t, os.Symlink("../bond7", filepath.Join(dir, "master")))
	speed := filepath.Join(dir, "speed")
	require.NoError(t, os.WriteFile(speed, []byte("100000\n"), 0o644))
	c := readCard(sysfs, net.Interface{Name: "card0"}, "")
	assert.Equal(t, card{name: "card0", kind: "device", driver: "mlx5_core", master: "bond7", speed: 100_000_000_000}, c)
	for _, unknown := range []string{"-1\n", "", "fast", "99999999999999"} {
		require.NoError(t, os.WriteFile(speed, []byte(unknown), 0o644))
		assert.Zero(t, readSpeed(speed), unknown)
	}
	assert.Equal(t, card{name: "gone"}, readCard(sysfs, net.Interface{Name: "gone"}, ""))
	assert.Equal(t, "veth", readCard(sysfs, net.Interface{Name: "gone"}, "veth").kind)
}

func TestReachableAddressesComeFirstIPv4(t *testing.T) {
	var list []net.Addr
	for _, s := range []string{"fd00::1/64", "fe80::1/64", "10.1.2.3/24", "169.254.0.1/16", "127.0.0.1/8", "224.0.0.1/4"} {
		ip, n, err := net.ParseCIDR(s)
		require.NoError(t, err)
		list = append(list, &net.IPNet{IP: ip, Mask: n.Mask})
	}
	list = append(list, &net.UnixAddr{Name: "odd"})
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.1.2.3/24"), netip.MustParsePrefix("fd00::1/64")},
		reachable(list))
}

func TestDiscoverFindsThisHostsCards(t *testing.T) {
	devices, err := Discover()
	require.NoError(t, err)
	usable := true
	loopback := false
	for _, d := range devices {
		assert.False(t, d.Usable && !usable, "usable cards come first")
		usable = d.Usable
		if !d.Usable {
			assert.NotEmpty(t, d.Why, d.Name)
		}
		if strings.HasPrefix(d.Name, "lo") && strings.Contains(d.Why, "loopback") {
			loopback = true
		}
		if b, ok := d.Binding(0); ok {
			require.NoError(t, b.Validate())
		}
	}
	assert.True(t, loopback, "%+v", devices)
}

// script is a LinkSource that the test drives.
type script struct {
	states chan LinkState
	fail   chan error
	starts chan struct{}
}

func newScript() *script {
	return &script{states: make(chan LinkState), fail: make(chan error), starts: make(chan struct{}, 8)}
}

func (s *script) run(ctx context.Context, report func(LinkState)) error {
	s.starts <- struct{}{}
	for {
		select {
		case state := <-s.states:
			report(state)
		case err := <-s.fail:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func TestDevicesActorTellsItsSubscribersOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		source := newScript()
		events := NewEvents()
		published := events.Subscribe(t.Context())
		props, err := DevicesProps(DevicesConfig{Track: func(f func()) { work.Go(f) }, Source: source.run, Events: events})
		require.NoError(t, err)
		system := actor.NewActorSystem(quiet)
		devices := system.Root.Spawn(props)
		got := make(chan LinkChanged, 16)
		listener := actor.PropsFromFunc(func(ctx actor.Context) {
			if m, is := ctx.Message().(*LinkChanged); is {
				got <- *m
			}
		})
		first, second := system.Root.Spawn(listener), system.Root.Spawn(listener)
		for _, pid := range []*actor.PID{first, second, second} {
			system.Root.Send(devices, &WatchDevices{PID: pid})
		}
		looks := 0
		follower := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, is := ctx.Message().(*CardsChanged); is {
				looks++
			}
		}))
		system.Root.Send(devices, &WatchCards{PID: follower})
		see := func(device string, up bool) int {
			source.states <- LinkState{Device: device, Up: up}
			synctest.Wait()
			return len(got)
		}
		assert.Zero(t, see("lo", true), "the first state is no change")
		assert.Zero(t, see("lo", true))
		require.Equal(t, 1, looks, "a card that is new is a change of the host, the same report again is not")
		require.Equal(t, 2, see("lo", false), "each subscriber once")
		require.Equal(t, 2, looks)
		change := <-got
		assert.False(t, change.Up)
		assert.Contains(t, change.Addresses, netip.MustParseAddr("127.0.0.1"))
		<-got
		e := <-published
		assert.Equal(t, DeviceLink, e.Kind)
		require.Error(t, e.Cause)

		// The subscription breaks and is made again: what changed meanwhile is told.
		<-source.starts
		source.fail <- errors.New("no buffer space")
		time.Sleep(linkRetry + time.Second)
		synctest.Wait()
		require.Len(t, source.starts, 1)
		require.Equal(t, 2, see("lo", true))
		assert.True(t, (<-got).Up)
		<-got
		assert.NoError(t, (<-published).Cause)

		source.states <- LinkState{Device: "never seen", Gone: true}
		synctest.Wait()
		require.Equal(t, 4, looks, "a card that goes is a change")
		system.Root.Send(devices, &UnwatchDevices{PID: first})
		require.NoError(t, system.Root.StopFuture(second).Wait())
		synctest.Wait()
		assert.Zero(t, see("lo", false), "neither the one that unsubscribed nor the dead one")
		require.NoError(t, system.Root.StopFuture(devices).Wait())
		work.Wait()
		system.Root.Stop(first)
		system.Root.Stop(follower)
		system.Shutdown()
	})
}

func TestDevicesActorWithoutNetlinkSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		core, logs := observer.New(zapcore.InfoLevel)
		starts := 0
		props, err := DevicesProps(DevicesConfig{Track: func(f func()) { work.Go(f) }, Logger: zap.New(core),
			Source: func(context.Context, func(LinkState)) error { starts++; return errors.New("not permitted") }})
		require.NoError(t, err)
		system := actor.NewActorSystem(quiet)
		devices := system.Root.Spawn(props)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, starts)
		assert.Len(t, logs.All(), 1)
		require.NoError(t, system.Root.StopFuture(devices).Wait())
		work.Wait()
		system.Shutdown()
	})
	_, err := DevicesProps(DevicesConfig{})
	require.ErrorIs(t, err, ErrConfig)
}

func TestNetlinkReportsEveryCardAndEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	seen := make(map[string]bool)
	err := netlinkStates(ctx, func(s LinkState) {
		seen[s.Device] = s.Up
		if s.Device == "lo" {
			cancel()
		}
	})
	if err != nil {
		// A host without netlink: then the error says so, and nothing was reported.
		require.Empty(t, seen)
		require.ErrorContains(t, err, "netlink")
		return
	}
	assert.True(t, seen["lo"], "%v", seen)
}
