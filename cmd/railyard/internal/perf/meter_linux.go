package perf

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railyard/rail"
)

// meter reads from the kernel how many bytes have come in over each rail's sockets. It sees what came up to 10 ms before a
// socket died.
//
// Invariant: a rail's total never goes down; last holds the sockets that were there at the last reading.
type meter struct {
	rails  []netip.AddrPort
	totals []uint64
	last   map[socket]uint64
}

// socket names one connection.
type socket struct {
	local, remote netip.AddrPort
	cookie        [2]uint32
}

// newMeter measures the rails with these bindings; those whose port the system chose stay at 0.
func newMeter(rails []rail.Binding) *meter {
	m := &meter{totals: make([]uint64, len(rails)), last: map[socket]uint64{}}
	for _, b := range rails {
		address, err := netip.ParseAddrPort(b.Address)
		if err != nil {
			address = netip.AddrPort{}
		}
		m.rails = append(m.rails, address)
	}
	return m
}

// read gives the totals now. The slice is the meter's.
func (m *meter) read() []uint64 {
	now := make(map[socket]uint64, len(m.last))
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found, _ := netlink.SocketDiagTCPInfo(family) // an interrupted list is still a list
		for _, f := range found {
			if f.InetDiagMsg == nil || f.TCPInfo == nil || f.TCPInfo.State == uint8(unix.BPF_TCP_LISTEN) {
				continue
			}
			m.take(now, f)
		}
	}
	m.last = now
	return m.totals
}

func (m *meter) take(now map[socket]uint64, f *netlink.InetDiagTCPInfoResp) {
	id := f.InetDiagMsg.ID
	local, ok := netip.AddrFromSlice(id.Source)
	if !ok {
		return
	}
	remote, _ := netip.AddrFromSlice(id.Destination)
	s := socket{
		local:  netip.AddrPortFrom(local.Unmap(), id.SourcePort),
		remote: netip.AddrPortFrom(remote.Unmap(), id.DestinationPort),
		cookie: id.Cookie,
	}
	for i, r := range m.rails {
		if r != s.local {
			continue
		}
		n := f.TCPInfo.Bytes_received
		now[s] = n
		if before := m.last[s]; n > before {
			m.totals[i] += n - before
		}
	}
}
