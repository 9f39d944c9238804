package info

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// look reads what bounds rails on this host. What cannot be read is left out.
func look() facts {
	nodes, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*") // a pattern that is right never fails
	return facts{
		memlock: resource(unix.RLIMIT_MEMLOCK), files: resource(unix.RLIMIT_NOFILE),
		receive: setting("tcp_rmem"), send: setting("tcp_wmem"),
		congestion: setting("tcp_congestion_control"),
		cpus:       runtime.NumCPU(), nodes: max(1, len(nodes)),
	}
}

func resource(which int) string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(which, &limit); err != nil {
		return ""
	}
	if limit.Cur == unix.RLIM_INFINITY {
		return unlimited
	}
	return strconv.FormatUint(limit.Cur, 10)
}

func setting(name string) string { return readWord("/proc/sys/net/ipv4/" + name) }

func readWord(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// numaOf gives the NUMA node that a card is at; -1: it is at none, or does not say.
func numaOf(card string) int {
	n, err := strconv.Atoi(readWord(filepath.Join("/sys/class/net", card, "device/numa_node")))
	if err != nil {
		return -1
	}
	return n
}
