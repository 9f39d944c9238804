package info

import (
	"fmt"
	"strconv"
	"strings"
)

// Limit is one setting of the kernel that bounds what rails can do.
type Limit struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Hint says what to do; empty: the value will do.
	Hint string `json:"hint"`
}

// facts are what was read of the kernel; empty: it could not be.
type facts struct {
	memlock, files string // bytes and a count, or "unlimited"
	receive, send  string // tcp_rmem and tcp_wmem: least, usual, most
	congestion     string // the algorithm in use
	cpus, nodes    int
}

const (
	unlimited   = "unlimited"
	fewBytes    = 64 << 20 // of locked memory: less is soon used up by registered regions
	fewFiles    = 4096     // descriptors: a rail takes one, a handshake another
	smallBuffer = 4 << 20  // bytes of a socket: less slows a path of 1 GB/s and 4 ms
)

// limits judges what was read.
func limits(f facts) []Limit {
	list := []Limit{
		{"processors", strconv.Itoa(f.cpus), ""},
		{"NUMA nodes", strconv.Itoa(f.nodes), ""},
		{"locked memory", inBytes(f.memlock), below(f.memlock, fewBytes,
			"RDMA cards lock registered memory: raise it with `ulimit -l unlimited`, or LimitMEMLOCK=infinity in a systemd unit")},
		{"open files", orUnknown(f.files), below(f.files, fewFiles,
			"each rail takes one: raise it with `ulimit -n 65536`, or LimitNOFILE=65536 in a systemd unit")},
		{"receive buffer of TCP, most", inBytes(last(f.receive)), below(last(f.receive), smallBuffer,
			"it bounds the rate of long paths: sysctl -w net.ipv4.tcp_rmem=\"4096 131072 33554432\"")},
		{"send buffer of TCP, most", inBytes(last(f.send)), below(last(f.send), smallBuffer,
			"it bounds the rate of long paths: sysctl -w net.ipv4.tcp_wmem=\"4096 131072 33554432\"")},
	}
	congestion := Limit{Name: "congestion control of TCP", Value: orUnknown(f.congestion)}
	if f.congestion == "bbr" {
		congestion.Hint = "cubic was 40 % faster between near hosts: sysctl -w net.ipv4.tcp_congestion_control=cubic"
	}
	return append(list, congestion)
}

func orUnknown(value string) string {
	if value == "" {
		return "unknown"
	}
	return value
}

// last gives the last word.
func last(words string) string {
	list := strings.Fields(words)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// below gives the hint where a value is known and less than that.
func below(value string, least uint64, hint string) string {
	if n, err := strconv.ParseUint(value, 10, 64); err != nil || n >= least {
		return ""
	}
	return hint
}

// inBytes writes a number of bytes for people.
func inBytes(value string) string {
	n, err := strconv.ParseUint(value, 10, 64)
	switch {
	case err != nil:
		return orUnknown(value)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// limitLines gives the limits as lines of the report.
func (r Report) limitLines(b *strings.Builder, width int) {
	if len(r.Limits) == 0 {
		return
	}
	fmt.Fprintln(b)
	rows := [][]string{{"this host", ""}}
	for _, l := range r.Limits {
		rows = append(rows, []string{l.Name, l.Value})
	}
	lines := align(rows)
	fmt.Fprintln(b, strings.TrimRight(lines[0], " "))
	for i, l := range r.Limits {
		fmt.Fprintln(b, lines[i+1])
		wrap(b, l.Hint, width)
	}
}
