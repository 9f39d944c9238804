package endpoint

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
	"railyard/wire"
)

// This file: nodes whose cards and addresses come and go while they run.

// fakeHost is a host whose cards the test plugs in and pulls out.
type fakeHost struct {
	mu      sync.Mutex
	host    rail.Host
	changes chan struct{}
}

// newFakeHost has cards such as "eth0 10.0.0.1/24"; one without an address is not usable.
func newFakeHost(cards ...string) *fakeHost {
	h := &fakeHost{changes: make(chan struct{}, 64)}
	h.plug(cards...)
	return h
}

// plug makes these the host's cards.
func (h *fakeHost) plug(cards ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = rail.Host{}
	for _, text := range cards {
		name, address, usable := strings.Cut(text, " ")
		d := rail.Device{Name: name, Usable: usable, Up: true}
		if !usable {
			d.Why = "the test says so"
		} else {
			p := netip.MustParsePrefix(address)
			d.Addresses = []netip.Prefix{p}
			h.host.Addresses = append(h.host.Addresses, rail.LocalAddress{Card: name, Prefix: p})
		}
		h.host.Cards = append(h.host.Cards, d)
	}
	h.changes <- struct{}{}
}

func (h *fakeHost) look() (rail.Host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.host, nil
}

// watch is a rail.LinkSource.
func (h *fakeHost) watch(ctx context.Context, report func(rail.LinkState)) error {
	for {
		select {
		case <-h.changes:
			report(rail.LinkState{Device: "some card", Gone: true})
		case <-ctx.Done():
			return nil
		}
	}
}

// away is how long devices may be away in these tests.
const away = 10 * time.Second

// plugged is two nodes that follow their cards; they stand on a network in memory that carries "tcp".
type plugged struct {
	*bed
	hosts   [2]*fakeHost
	network *railtest.Network
}

// newPlugged starts two nodes with a card each, in a bubble, and connects them. change changes their settings.
func newPlugged(t *testing.T, change func(*Config), a, b []string) *plugged {
	p := &plugged{network: railtest.NewNetwork(), hosts: [2]*fakeHost{newFakeHost(a...), newFakeHost(b...)}}
	g := &ground{kinds: map[string]rail.Kind{rail.KindTCP: p.network.Kind()}}
	start := func(h *fakeHost) *peer {
		return launch(t, g, nil, func(c *Config) {
			c.Look, c.Links, c.DeviceAway = h.look, h.watch, away
			if change != nil {
				change(c)
			}
		})
	}
	p.bed = &bed{t: t, a: start(p.hosts[0]), b: start(p.hosts[1])}
	p.ab = connectTo(t, p.a, p.b.Address())
	return p
}

// pairs names the devices of each rail that is up at a's end.
func (p *plugged) pairs(e *Endpoint) (list []string) {
	for _, r := range e.Rails() {
		text := bare(r.Local) + ">" + bare(r.Remote)
		if r.State != rail.Up && r.State != rail.Probation {
			text += " " + r.State.String()
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// bare is an address without its port.
func bare(address string) string {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	return ap.Addr().String()
}

// become waits until both ends have these rails and no others, and all are up. They are named as a sees them.
func (p *plugged) become(want ...string) {
	p.t.Helper()
	slices.Sort(want)
	var back []string
	for _, w := range want {
		local, remote, _ := strings.Cut(w, ">")
		back = append(back, remote+">"+local)
	}
	slices.Sort(back)
	eventually(p.t, fmt.Sprint("the rails are ", want), func() (bool, any) {
		here, there := p.pairs(p.ab), p.pairs(p.back())
		return slices.Equal(here, want) && slices.Equal(there, back), [][]string{here, there}
	})
}

// Cards come and go at both ends under a load: each has its rail while it is there, and nothing is lost.
func TestCardsThatComeAndGo(t *testing.T) {
	virtually(t, func(t *testing.T) {
		p := newPlugged(t, nil, []string{"eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.2/24"})
		p.become("10.0.0.1>10.0.0.2")
		there := startTalk(t, p.a, p.b, talkSpec{targets: 2, pause: 30 * time.Millisecond, large: 40 << 10, seed: 1})
		back := startTalk(t, p.b, p.a, talkSpec{targets: 2, pause: 30 * time.Millisecond, large: 40 << 10, seed: 2})
		load := startPuts(t, p.ab, p.b, putSpec{workers: 2, pause: 20 * time.Millisecond, largest: 100 << 10, seed: 3})

		p.hosts[1].plug("eth0 10.0.0.2/24", "eth1 10.0.1.2/24") // at the side that accepts: it tells the other
		p.become("10.0.0.1>10.0.0.2", "10.0.0.1>10.0.1.2")
		p.hosts[0].plug("eth0 10.0.0.1/24", "eth1 10.0.1.1/24") // the straight pair takes the place of the crooked one
		p.become("10.0.0.1>10.0.0.2", "10.0.1.1>10.0.1.2")

		p.hosts[1].plug("eth0 10.0.0.2/24", "eth1") // away, for now
		pass(away / 2)
		require.Empty(t, p.b.events.of(rail.DeviceGone))
		p.hosts[1].plug("eth0 10.0.0.2/24", "eth1 10.0.1.2/24")
		pass(away)
		p.become("10.0.0.1>10.0.0.2", "10.0.1.1>10.0.1.2")

		p.hosts[1].plug("eth0 10.0.0.2/24", "eth1") // for good: a's second card goes with what is left
		pass(away + time.Second)
		p.become("10.0.0.1>10.0.0.2", "10.0.1.1>10.0.0.2")
		p.hosts[0].plug("eth0 10.0.0.1/24")
		pass(away + time.Second)
		p.become("10.0.0.1>10.0.0.2")
		p.hosts[0].plug("eth0 10.0.5.1/24") // another address: it joins before the old one ends
		p.become("10.0.0.1>10.0.0.2", "10.0.5.1>10.0.0.2")
		pass(away + time.Second)
		p.become("10.0.5.1>10.0.0.2")

		there.finish()
		back.finish()
		require.Positive(t, load.finish())
		p.nobodyDown()
		for _, n := range []*peer{p.a, p.b} {
			require.Empty(t, n.undelivered())
		}
		require.Len(t, p.b.events.of(rail.DeviceGone), 1)
		require.Len(t, p.a.events.of(rail.DeviceGone), 2)
		require.Len(t, p.a.events.of(rail.RailEnded), 4)
		require.Len(t, p.b.events.of(rail.RailEnded), 4, "the acceptor's records end with the opener's")
		require.LessOrEqual(t, len(p.ab.rails), 4, "numbers serve again")
	})
}

// What is wrong with a card is said in events and in the rail's reason, with the words of `railyard info`.
func TestCardsAreReported(t *testing.T) {
	virtually(t, func(t *testing.T) {
		p := newPlugged(t, func(c *Config) { c.OutageLimit = time.Hour }, []string{"eth0 10.0.0.1/24", "docker0"}, []string{"eth0 10.0.0.2/24"})
		p.become("10.0.0.1>10.0.0.2")
		synctest.Wait() // the events' reader has a goroutine of its own
		ignored := p.a.events.of(rail.DeviceIgnored)
		require.Len(t, ignored, 1)
		require.Equal(t, p.b.Address(), ignored[0].Peer)
		require.Equal(t, "docker0", ignored[0].Local)
		require.ErrorContains(t, ignored[0].Cause, "the test says so")
		p.hosts[0].plug("eth0 10.0.0.1/24", "docker0", "docker1")
		pass(time.Second)
		require.Len(t, p.a.events.of(rail.DeviceIgnored), 2, "what has been said is not said again")

		p.network.Wire("10.0.0.1", "10.0.0.2").Cut()
		p.hosts[0].plug("docker0", "docker1")
		pass(away / 2)
		require.Contains(t, p.ab.Rails()[0].Reason, "this host has no such card any more")
		require.Len(t, p.a.events.of(rail.DeviceWarning), 1)
		pass(away)
		gone := p.a.events.of(rail.DeviceGone)
		require.Len(t, gone, 1)
		require.ErrorIs(t, gone[0].Cause, ErrDeviceGone)
		require.Empty(t, p.ab.Rails(), "no record is left")
		p.network.Wire("10.0.0.1", "10.0.0.2").Heal()
		p.hosts[0].plug("eth0 10.0.0.1/24")
		p.become("10.0.0.1>10.0.0.2")
		synctest.Wait()
		require.Len(t, p.a.events.of(rail.DeviceJoined), 1)
	})
}

// A card that is named is waited for; an address that is named is kept, however long it is away.
func TestCardsThatAreNamed(t *testing.T) {
	virtually(t, func(t *testing.T) {
		named := func(c *Config) { c.Bindings = []rail.Binding{rail.Card("eth0", 7400), rail.Card("eth1", 7400)} }
		p := newPlugged(t, named, []string{"eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.2/24", "eth1 10.0.1.2/24", "eth2 10.0.2.2/24"})
		p.become("10.0.0.1>10.0.0.2", "10.0.0.1>10.0.1.2")
		require.Equal(t, "10.0.0.1:7400", p.a.Address())
		p.hosts[0].plug("eth0 10.0.0.1/24", "eth1 10.0.1.1/24", "eth2 10.0.2.1/24")
		p.become("10.0.0.1>10.0.0.2", "10.0.1.1>10.0.1.2")

		_, err := Start(Config{System: p.a.system, Host: p.a.witness, Kinds: p.a.cfg.Kinds, Look: newFakeHost().look,
			Bindings: []rail.Binding{rail.Card("eth9", 0)}})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, "eth9")
	})
	virtually(t, func(t *testing.T) {
		fixed := func(c *Config) {
			c.Bindings = []rail.Binding{rail.TCP("10.0.0.1:1")}
			if host, _ := c.Look(); host.Addresses[0].Prefix.Addr().String() == "10.0.0.2" {
				c.Bindings[0] = rail.TCP("10.0.0.2:1")
			}
		}
		p := newPlugged(t, fixed, []string{"eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.2/24"})
		p.hosts[0].plug()
		pass(10 * away)
		p.become("10.0.0.1>10.0.0.2")
		require.Empty(t, p.a.events.of(rail.DeviceGone))
		require.Len(t, p.a.events.of(rail.DeviceWarning), 1)
		p.hosts[0].plug("eth0 10.0.0.1/24")
		pass(time.Second)
		require.Len(t, p.a.events.of(rail.DeviceJoined), 1)
	})
}

// Two cards at each end in one subnet, on cables of their own: neither subnets nor the order tell which pair reaches.
func TestDialsTellWhichPairReaches(t *testing.T) {
	virtually(t, func(t *testing.T) {
		p := newPlugged(t, nil, []string{"eth0 10.9.0.1/24"}, []string{"eth0 10.9.0.2/24", "eth1 10.0.0.3/24", "eth2 10.0.0.4/24"})
		straight := [][2]string{{"10.0.0.1", "10.0.0.3"}, {"10.0.0.2", "10.0.0.4"}}
		crossed := [][2]string{{"10.0.0.1", "10.0.0.4"}, {"10.0.0.2", "10.0.0.3"}}
		cut := func(cables [][2]string) {
			for _, c := range cables {
				p.network.Wire(c[0], c[1]).Cut()
			}
		}
		cut(straight)
		p.hosts[0].plug("eth0 10.9.0.1/24", "eth1 10.0.0.1/24", "eth2 10.0.0.2/24")
		p.become("10.9.0.1>10.9.0.2", "10.0.0.1>10.0.0.4", "10.0.0.2>10.0.0.3")
		// Somebody moves the cables.
		for _, c := range straight {
			p.network.Wire(c[0], c[1]).Heal()
		}
		cut(crossed)
		pass(3 * askAgain)
		p.become("10.9.0.1>10.9.0.2", "10.0.0.1>10.0.0.3", "10.0.0.2>10.0.0.4")
		p.nobodyDown()
	})
}

// Cards that only routers join, and not all of them with each other: where the order has chosen wrongly, dials tell.
func TestDialsTellWhichRoutedPairReaches(t *testing.T) {
	virtually(t, func(t *testing.T) {
		p := newPlugged(t, nil, []string{"eth0 10.9.0.1/24"}, []string{"eth0 10.9.0.2/24", "eth1 10.3.0.1/24", "eth2 10.4.0.1/24"})
		p.network.Wire("10.1.0.1", "10.3.0.1").Cut()
		p.network.Wire("10.2.0.1", "10.4.0.1").Cut()
		p.hosts[0].plug("eth0 10.9.0.1/24", "eth1 10.1.0.1/24", "eth2 10.2.0.1/24")
		pass(2 * askAgain)
		p.become("10.9.0.1>10.9.0.2", "10.1.0.1>10.4.0.1", "10.2.0.1>10.3.0.1")
		p.nobodyDown()
	})
}

// A peer that tells new devices again and again makes this side dial no more than its pace and its rails allow.
func TestAPeerCannotMakeUsDialWithoutLimit(t *testing.T) {
	virtually(t, func(t *testing.T) {
		dials := &countedKind{}
		p := newPlugged(t, func(c *Config) {
			dials.Kind = c.Kinds[rail.KindTCP]
			c.Kinds = map[string]rail.Kind{rail.KindTCP: dials}
		}, []string{"eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.2/24"})
		own := p.b.cards.current.Load().told[0]
		before := dials.count()
		for serial := range uint64(1000) { // ten seconds
			news := &wire.Devices{Serial: serial + 10, Devices: []*wire.Device{own}}
			for k := range wire.MaxDevices - 1 {
				news.Devices = append(news.Devices, &wire.Device{Kind: rail.KindTCP, Address: fmt.Sprintf("10.9.%d.%d:1", serial%200, k)})
			}
			b, err := wire.AppendDevices(nil, news)
			require.NoError(t, err)
			p.ab.hearDevices(b)
			pass(10 * time.Millisecond)
			require.LessOrEqual(t, len(p.ab.Rails()), maxRails)
		}
		require.Less(t, dials.count()-before, 10*maxRails*10, "each rail a few times a second at most")
		p.ab.hearDevices([]byte{0xff})
		p.ab.hearDevices(nil) // older than what is known
		region := p.b.register(t, 8, rma.RemoteWrite)
		require.NoError(t, p.ab.Put(t.Context(), region.Key(), 0, make([]byte, 8)))
		p.nobodyDown()
	})
}

// countedKind counts dials.
type countedKind struct {
	rail.Kind
	mu sync.Mutex
	n  int
}

func (k *countedKind) Dial(ctx context.Context, local, remote string) (rail.Conn, error) {
	k.mu.Lock()
	k.n++
	k.mu.Unlock()
	return k.Kind.Dial(ctx, local, remote)
}

func (k *countedKind) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n
}

// Behind a NAT: b's own addresses lead nowhere, a reaches it through a forwarder only, and b cannot dial a's either.
func TestARailThroughAForwarder(t *testing.T) {
	f := newForwarder(t)
	g := newGround(t, rail.KindTCP, 1)
	nowhere := rail.Advertised("127.0.0.2:9")
	b := launch(t, g, []rail.Binding{rail.TCP("127.0.0.1:0", nowhere)})
	a := launch(t, g, []rail.Binding{rail.TCP("127.0.0.1:0", nowhere)}, func(c *Config) { c.Advertise = "nat.example:1" })
	f.lead(b.Listening()[0].Address)
	e := connectTo(t, a, f.address())
	region := b.register(t, 1<<20, rma.RemoteWrite)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	for range 3 {
		require.NoError(t, e.Put(ctx, region.Key(), 0, make([]byte, 1<<20)))
		before := e.Rails()[0].Generation
		f.Reset()
		eventually(t, "the rail is back", func() (bool, any) {
			r := e.Rails()
			return len(r) == 1 && r[0].Generation > before && r[0].State != rail.Down, r
		})
	}
	require.Equal(t, f.address(), e.Rails()[0].Remote)
	require.Empty(t, a.events.of(rail.RailNeverUp), "its device is known to be behind the forwarder: it is not dialed beside it")
	require.NoError(t, b.Route(a.Address()).TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("text")}), "the other way goes over the same rail")
	eventually(t, "it arrives", func() (bool, any) { return a.arrived("x") > 0 || b.peer(a.Address()).Stats().MessagesSent == 1, nil })
	require.Empty(t, a.downCauses())
}
