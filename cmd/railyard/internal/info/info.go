// Package info is `railyard info`: what this host has, what a node would use of it, what not, and why.
//
// It is pure but for Look: devices in, text or JSON out.
package info

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"railyard/rail"
)

// Report is what is printed as JSON.
type Report struct {
	Devices []Device `json:"devices"`
	// Rails are the addresses that a node without bindings would use, one a rail.
	Rails []string `json:"rails"`
	// Notes say what holds for all devices.
	Notes []string `json:"notes"`
	// RDMA are the ports of RDMA devices, and NoVerbs says why none can carry a rail; empty: one may.
	RDMA    []Port `json:"rdma_ports"`
	NoVerbs string `json:"no_verbs"`
	// Limits are settings of this host that bound rails; a hint says where one is too low.
	Limits []Limit `json:"limits"`
}

// Device is one card.
type Device struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Driver    string   `json:"driver"`
	Up        bool     `json:"up"`
	SpeedBits uint64   `json:"speed_bits_per_s"` // 0: the card does not say
	MTU       int      `json:"mtu"`              // bytes; 0: unknown
	NUMA      int      `json:"numa_node"`        // -1: none, or unknown
	Addresses []string `json:"addresses"`
	RDMA      string   `json:"rdma"`
	Used      bool     `json:"used"`
	Why       string   `json:"why"`
}

// Look asks the host.
func Look() (Report, error) {
	devices, err := rail.Discover()
	if err != nil {
		return Report{}, fmt.Errorf("looking for network cards: %w", err)
	}
	r := New(devices, lookRDMA())
	for i := range r.Devices {
		d := &r.Devices[i]
		d.NUMA = numaOf(d.Name)
		if card, err := net.InterfaceByName(d.Name); err == nil { // it may have gone meanwhile
			d.MTU = card.MTU
		}
	}
	r.Limits = limits(look())
	return r, nil
}

// New makes the report of devices.
func New(devices []rail.Device, rdma RDMA) Report {
	r := Report{Devices: []Device{}, Rails: []string{}, Notes: []string{}, Limits: []Limit{},
		RDMA: rdma.ports(), NoVerbs: rdma.missing()}
	for _, d := range devices {
		row := Device{Name: d.Name, Kind: d.Kind, Driver: d.Driver, Up: d.Up, SpeedBits: d.Speed, Addresses: []string{},
			RDMA: d.RDMA, Why: d.Why, NUMA: -1}
		for _, a := range d.Addresses {
			row.Addresses = append(row.Addresses, a.String())
		}
		if b, ok := d.Binding(0); ok {
			row.Used = true
			r.Rails = append(r.Rails, strings.TrimSuffix(b.Address, ":0"))
		}
		r.Devices = append(r.Devices, row)
	}
	for _, trap := range traps(devices) {
		r.Notes = append(r.Notes, trap.Error())
	}
	if len(r.Rails) == 0 {
		r.Notes = append(r.Notes,
			"no card can be used: a node without bindings stays on loopback, where only this host reaches it")
	}
	if len(r.RDMA) > 0 {
		r.Notes = append(r.Notes, "rails over verbs are not built yet: cards with an RDMA device are used over TCP")
	}
	return r
}

// traps finds subnets that several of the cards in use share.
func traps(devices []rail.Device) []*rail.SharedSubnetError {
	var host []rail.LocalAddress
	var bindings []rail.Binding
	for _, d := range devices {
		if b, ok := d.Binding(0); ok {
			bindings = append(bindings, b)
			host = append(host, rail.LocalAddress{Card: d.Name, Prefix: d.Addresses[0]})
		}
	}
	return rail.SharedSubnets(host, bindings)
}

// narrowest and widest bound the width of the text, in columns.
const (
	narrowest = 40
	widest    = 120
	indent    = "    "
)

// Text gives the report as lines of at most so many columns.
func (r Report) Text(width int) string {
	width = min(max(width, narrowest), widest)
	rows := [][]string{{"card", "state", "speed", "mtu", "numa", "rdma", "rail"}}
	for _, d := range r.Devices {
		rows = append(rows, []string{d.Name, state(d), speed(d.SpeedBits), number(d.MTU > 0, d.MTU), number(d.NUMA >= 0, d.NUMA),
			orDash(d.RDMA), yesNo(d.Used)})
	}
	lines := align(rows)
	var b strings.Builder
	fmt.Fprintln(&b, lines[0])
	for i, d := range r.Devices {
		fmt.Fprintln(&b, lines[i+1])
		wrap(&b, strings.Join(d.Addresses, ", "), width)
		wrap(&b, d.Why, width)
	}
	fmt.Fprintln(&b)
	plain := func(text string) { wrapWith(&b, text, "", width) }
	plain(fmt.Sprintf("rails of a node without bindings: %d", len(r.Rails)))
	wrap(&b, strings.Join(r.Rails, ", "), width)
	for _, n := range r.Notes {
		plain(n)
	}
	r.rdmaText(&b, width)
	r.limitLines(&b, width)
	return b.String()
}

// align pads columns with blanks; the last one stays as it is.
func align(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row[:len(row)-1] {
			fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
		}
		lines = append(lines, b.String()+row[len(row)-1])
	}
	return lines
}

func wrap(b *strings.Builder, text string, width int) { wrapWith(b, text, indent, width) }

// wrapWith breaks text at blanks; a word that is longer than a line is broken anywhere.
func wrapWith(b *strings.Builder, text, indent string, width int) {
	room := width - len(indent)
	line := ""
	flush := func() {
		if line != "" {
			fmt.Fprintf(b, "%s%s\n", indent, line)
		}
		line = ""
	}
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > room {
			flush()
		}
		for len(word) > room {
			line, word = word[:room], word[room:]
			flush()
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	flush()
}

func state(d Device) string {
	if d.Up {
		return "up"
	}
	return "down"
}

// speed writes bits per second as cards are sold.
func speed(bits uint64) string {
	switch {
	case bits == 0:
		return "unknown"
	case bits >= 1e9:
		return fmt.Sprintf("%g Gbit/s", float64(bits)/1e9)
	}
	return fmt.Sprintf("%g Mbit/s", float64(bits)/1e6)
}

// number is a dash where it is not known.
func number(known bool, n int) string {
	if !known {
		return "-"
	}
	return strconv.Itoa(n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
