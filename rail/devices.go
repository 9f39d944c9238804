package rail

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/Mellanox/rdmamap"
	"github.com/vishvananda/netlink"
)

// sysfsNet is where the kernel describes its network cards.
const sysfsNet = "/sys/class/net"

// Device is a local network card, and whether a rail can use it.
type Device struct {
	Name string
	// Kind is what the kernel calls it: "device" for hardware, "veth", "bond", "bridge" …; empty where unknown.
	Kind string
	// Driver is the kernel module of hardware.
	Driver string
	// Addresses are those that a peer could reach, the ones to bind first.
	Addresses []netip.Prefix
	// Up: switched on, and the cable is in.
	Up bool
	// Speed is in bits a second; 0: the card does not say.
	Speed uint64
	// RDMA names the RMA-capable device of the same card; empty: none.
	RDMA string
	// Usable: a rail will be made of it unless bindings are given. Why says why not, or what is odd about it.
	Usable bool
	Why    string
}

// Binding makes the tcp binding of a usable card, at its first address; ok is false where it has none. Port 0: the
// system chooses.
func (d Device) Binding(port uint16) (b Binding, ok bool) {
	if !d.Usable || len(d.Addresses) == 0 {
		return Binding{}, false
	}
	b = TCP(netip.AddrPortFrom(d.Addresses[0].Addr(), port).String())
	b.Name = d.Name
	return b, true
}

// card is what was read about one interface; the judgement about it is pure.
type card struct {
	name, kind, driver, master string
	flags                      net.Flags
	addresses                  []netip.Prefix
	speed                      uint64
	rdma                       string
}

// Discover lists this host's network cards, the usable ones first, then by name. It needs no privileges. What
// cannot be read about a card is left out; the error says that the cards could not be listed at all.
func Discover() ([]Device, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("this host's network cards cannot be listed (name them in Config.Rails): %w", err)
	}
	links := askLinks()
	devices := make([]Device, 0, len(interfaces))
	for _, ifi := range interfaces {
		c := readCard(sysfsNet, ifi, links[ifi.Name].kind)
		if c.master == "" {
			c.master = links[ifi.Name].master
		}
		devices = append(devices, c.device())
	}
	slices.SortFunc(devices, func(a, b Device) int {
		if a.Usable != b.Usable {
			if a.Usable {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return devices, nil
}

// told is what netlink tells of an interface.
type told struct{ kind, master string }

// askLinks asks netlink what each interface is, and part of what. Without netlink nothing is known, and sysfs has to do: it shows
// the namespace that it was mounted in, which need not be ours.
func askLinks() map[string]told {
	links, _ := netlink.LinkList() // a list that was interrupted by a change is still better than none
	names := make(map[int]string, len(links))
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	list := make(map[string]told, len(links))
	for _, link := range links {
		list[link.Attrs().Name] = told{kind: link.Type(), master: names[link.Attrs().MasterIndex]}
	}
	return list
}

// readCard collects what the system tells of one interface. Unreadable facts stay empty.
func readCard(sysfs string, ifi net.Interface, kind string) card {
	dir := filepath.Join(sysfs, ifi.Name)
	c := card{
		name: ifi.Name, kind: kind, flags: ifi.Flags,
		driver: linkBase(filepath.Join(dir, "device", "driver")),
		master: linkBase(filepath.Join(dir, "master")),
		speed:  readSpeed(filepath.Join(dir, "speed")),
		rdma:   rdmaOf(ifi.Name),
	}
	if c.kind == "" {
		c.kind = sysfsKind(dir)
	}
	if addresses, err := ifi.Addrs(); err == nil {
		c.addresses = reachable(addresses)
	}
	return c
}

// reachable keeps the addresses that another host could dial, IPv4 first: peers pair them by subnet.
func reachable(addresses []net.Addr) []netip.Prefix {
	var kept []netip.Prefix
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := p.Addr(); ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast() {
			kept = append(kept, p)
		}
	}
	slices.SortStableFunc(kept, func(a, b netip.Prefix) int {
		return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen())
	})
	return kept
}

func linkBase(path string) string {
	target, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// readSpeed gives bits a second; the kernel tells megabits, or -1, or an error.
func readSpeed(path string) uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	megabits, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if err != nil || megabits <= 0 {
		return 0
	}
	return uint64(megabits) * 1_000_000
}

// sysfsKind tells hardware and the plainest virtual kinds apart.
func sysfsKind(dir string) string {
	for entry, kind := range map[string]string{
		"device": "device", "bridge": "bridge", "bonding": "bond", "tun_flags": "tuntap",
	} {
		if _, err := os.Stat(filepath.Join(dir, entry)); err == nil {
			return kind
		}
	}
	return ""
}

// rdmaOf gives the RDMA device of a network card. Errors mean that there is none, and so does a panic over
// hardware that the library does not expect.
func rdmaOf(name string) (device string) {
	defer func() {
		if recover() != nil {
			device = ""
		}
	}()
	device, err := rdmamap.GetRdmaDeviceForNetdevice(name)
	if err != nil {
		return ""
	}
	return device
}

// cardKinds are the kinds of interface behind which there is a card or a cable, if only a virtual one to another host or
// container. All others lead to this host itself or through somebody else's encapsulation.
var cardKinds = []string{"device", "veth", "bond", "vlan", "macvlan", "ipvlan", "ipoib", "vf", "netvsc"}

const whyLoopback = "loopback: it reaches this host only"

// device judges a card.
func (c card) device() Device {
	d := Device{
		Name: c.name, Kind: c.kind, Driver: c.driver, Addresses: c.addresses, Speed: c.speed, RDMA: c.rdma,
		Up: c.flags&net.FlagUp != 0 && c.flags&net.FlagRunning != 0,
	}
	d.Usable, d.Why = c.judge()
	return d
}

func (c card) judge() (usable bool, why string) {
	switch {
	case c.flags&net.FlagLoopback != 0:
		return false, whyLoopback
	case c.master != "":
		return false, "part of " + c.master + ", which is used in its place if it can be"
	case c.kind == "bridge":
		return false, "a bridge (containers, virtual machines): this host's own ports are behind it"
	case !slices.Contains(cardKinds, c.kind):
		return false, "a virtual device (" + orUnknown(c.kind) + "), not a card; name its address in a binding to use it"
	case c.flags&net.FlagUp == 0:
		return false, "switched off: ip link set " + c.name + " up"
	case len(c.addresses) == 0:
		return false, "has no address that a peer could reach"
	case c.flags&net.FlagRunning == 0:
		return true, "no carrier now; its rail comes up when the cable is in"
	}
	return true, ""
}

func orUnknown(kind string) string {
	if kind == "" {
		return "of unknown kind"
	}
	return kind
}
