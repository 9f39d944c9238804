package verbs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sysfs is where the kernel describes its RDMA devices.
const sysfs = "/sys/class/infiniband"

// maxGIDs bounds the addresses that are looked at on one port.
const maxGIDs = 256

// GID is a port's address: an IPv6 address, or an IPv4 one mapped into it.
type GID [16]byte

// Port is one port of an RDMA device, as sysfs shows it.
type Port struct {
	Device string
	Port   int // from 1
	// Active: it carries traffic. State is the kernel's word for it ("ACTIVE", "DOWN", "INIT").
	Active bool
	State  string
	// Ethernet: RoCE, which needs a GID; else InfiniBand, which needs LID.
	Ethernet bool
	LID      uint16
	// Rate is in bits a second; 0: unknown.
	Rate uint64
	// NUMA is the node that the card is next to; -1: unknown, or all the same.
	NUMA int
	// GID is the address to use, at GIDIndex of the port's table; HasGID is false where there is none that will do.
	GID      GID
	GIDIndex int
	HasGID   bool
	// Netdev is the network card of that GID.
	Netdev string
}

// String is the port as a binding shows it.
func (p Port) String() string { return p.Device + "/" + strconv.Itoa(p.Port) }

// Usable is nil where a queue pair can be connected, as far as can be seen from here, and else wraps ErrPortDown or ErrNoGID.
func (p Port) Usable() error {
	switch {
	case !p.Active:
		return fmt.Errorf("%s is %s: %w", p, p.State, ErrPortDown)
	case p.Ethernet && !p.HasGID:
		return fmt.Errorf("%s: %w", p, ErrNoGID)
	}
	return nil
}

// Look lists the RDMA ports of this host by name. A host without any gives ErrNoDevice.
func Look() ([]Port, error) { return look(sysfs) }

// Find gives one port. The error wraps ErrNoDevice and names those that there are.
func Find(device string, port int) (Port, error) { return find(sysfs, device, port) }

func find(root, device string, port int) (Port, error) {
	ports, err := look(root)
	if err != nil {
		return Port{}, fmt.Errorf("%s/%d: %w", device, port, err)
	}
	names := make([]string, 0, len(ports))
	for _, p := range ports {
		if p.Device == device && p.Port == port {
			return p, nil
		}
		names = append(names, p.String())
	}
	return Port{}, fmt.Errorf("%s/%d is not one of %s: %w", device, port, strings.Join(names, ", "), ErrNoDevice)
}

func look(root string) ([]Port, error) {
	devices, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the RDMA devices cannot be listed (%w): %w", err, ErrNoDevice)
	}
	var ports []Port
	for _, d := range devices {
		entries, _ := os.ReadDir(filepath.Join(root, d.Name(), "ports")) // a device that is just leaving has none
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil {
				ports = append(ports, readPort(filepath.Join(root, d.Name()), d.Name(), n))
			}
		}
	}
	if len(ports) == 0 {
		return nil, ErrNoDevice
	}
	slices.SortFunc(ports, func(a, b Port) int {
		if c := strings.Compare(a.Device, b.Device); c != 0 {
			return c
		}
		return a.Port - b.Port
	})
	return ports, nil
}

// readPort collects what can be read; what cannot stays empty, which Usable judges.
func readPort(dir, device string, n int) Port {
	port := filepath.Join(dir, "ports", strconv.Itoa(n))
	p := Port{Device: device, Port: n, NUMA: -1, State: "unknown"}
	if _, name, ok := strings.Cut(read(port, "state"), ": "); ok { // "4: ACTIVE"
		p.State, p.Active = name, name == "ACTIVE"
	}
	p.Ethernet = read(port, "link_layer") == "Ethernet"
	if lid, err := strconv.ParseUint(read(port, "lid"), 0, 16); err == nil {
		p.LID = uint16(lid)
	}
	if fields := strings.Fields(read(port, "rate")); len(fields) > 1 { // "100 Gb/sec (4X EDR)"
		if gigabits, err := strconv.ParseFloat(fields[0], 64); err == nil && gigabits > 0 {
			p.Rate = uint64(gigabits * 1e9)
		}
	}
	if node, err := strconv.Atoi(read(dir, "device", "numa_node")); err == nil {
		p.NUMA = node
	}
	p.chooseGID(port)
	return p
}

// chooseGID takes the first routable RoCE v2 address, one mapped from IPv4 before others, and a link-local one only where there
// is no other: a peer on the same wire can reach it. On InfiniBand it is the first address there is, which need not be used.
func (p *Port) chooseGID(port string) {
	best := 0
	for i := range maxGIDs {
		index := strconv.Itoa(i)
		gid, ok := parseGID(read(port, "gids", index))
		if !ok {
			continue
		}
		if p.Ethernet && read(port, "gid_attrs", "types", index) != "RoCE v2" {
			continue
		}
		if r := gid.rank(); r > best {
			best = r
			p.GID, p.GIDIndex, p.HasGID = gid, i, true
			p.Netdev = read(port, "gid_attrs", "ndevs", index)
		}
	}
}

// rank is higher for an address that more peers can reach; 0: none.
func (g GID) rank() int {
	switch {
	case g == GID{}:
		return 0
	case g[0] == 0xfe && g[1]&0xc0 == 0x80:
		return 1
	case [12]byte(g[:12]) == [12]byte{10: 0xff, 11: 0xff}:
		return 3
	}
	return 2
}

func parseGID(text string) (GID, bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(raw) != len(GID{}) {
		return GID{}, false
	}
	return GID(raw), GID(raw) != GID{}
}

func read(path ...string) string {
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
