package info

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"railyard/rail/verbs"
)

// RDMA is what this host has for rails over verbs.
type RDMA struct {
	// Library is nil where libibverbs can be opened, and else says what is missing, Devices likewise where no port was found.
	Library, Devices error
	Ports            []verbs.Port
}

// Port is one port of an RDMA device. The binding of its rail is rail.Verbs(Device, Port).
type Port struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	State  string `json:"state"`
	Link   string `json:"link"` // "RoCE" or "InfiniBand"
	// Address is that of its GID; empty: it has none.
	Address   string `json:"address"`
	Netdev    string `json:"netdev"`
	SpeedBits uint64 `json:"speed_bits_per_s"` // 0: unknown
	NUMA      int    `json:"numa"`             // -1: unknown, or all the same
	Usable    bool   `json:"usable"`
	Why       string `json:"why"`
}

// lookRDMA asks the host.
func lookRDMA() RDMA {
	ports, err := verbs.Look()
	return RDMA{Library: verbs.Available(), Devices: err, Ports: ports}
}

// ports makes the report's rows.
func (r RDMA) ports() []Port {
	rows := []Port{}
	for _, p := range r.Ports {
		row := Port{Device: p.Device, Port: p.Port, State: p.State, Link: "InfiniBand", Netdev: p.Netdev, SpeedBits: p.Rate,
			NUMA: p.NUMA, Usable: true}
		if p.Ethernet {
			row.Link = "RoCE"
		}
		if p.HasGID {
			row.Address = netip.AddrFrom16(p.GID).Unmap().String()
		}
		if err := errors.Join(p.Usable(), r.Library); err != nil {
			row.Usable, row.Why = false, strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		rows = append(rows, row)
	}
	return rows
}

// missing says why there is no rail over verbs at all; empty: there may be.
func (r RDMA) missing() string {
	switch {
	case r.Library != nil && errors.Is(r.Library, verbs.ErrNotBuilt):
		return r.Library.Error()
	case r.Devices != nil:
		if r.Library != nil {
			return fmt.Sprintf("%v; %v", r.Devices, r.Library)
		}
		return r.Devices.Error()
	case r.Library != nil:
		return r.Library.Error()
	}
	return ""
}

// rdmaText is the part of the text about RDMA ports.
func (r Report) rdmaText(b *strings.Builder, width int) {
	if len(r.RDMA) > 0 {
		rows := [][]string{{"rdma port", "state", "link", "speed", "card", "usable"}}
		for _, p := range r.RDMA {
			rows = append(rows, []string{p.Device + "/" + strconv.Itoa(p.Port), strings.ToLower(p.State), p.Link, speed(p.SpeedBits),
				orDash(p.Netdev), yesNo(p.Usable)})
		}
		lines := align(rows)
		fmt.Fprintf(b, "\n%s\n", lines[0])
		for i, p := range r.RDMA {
			fmt.Fprintln(b, lines[i+1])
			wrap(b, p.Address, width)
			wrap(b, p.Why, width)
		}
	}
	if r.NoVerbs != "" {
		fmt.Fprintln(b)
		wrapWith(b, "no rails over verbs: "+r.NoVerbs, "", width)
	}
}
