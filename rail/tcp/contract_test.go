package tcp_test

import (
	"testing"

	"railyard/rail/railtest"
	"railyard/rail/tcp"
)

func loopback(*testing.T) railtest.Fixture {
	return railtest.Fixture{Kind: tcp.New(tcp.Config{}), Bind: "127.0.0.1:0", Local: "127.0.0.1", Nowhere: "127.0.0.1:1"}
}

func TestContract(t *testing.T) { railtest.Contract(t, loopback) }

func TestContractIPv6(t *testing.T) {
	railtest.Contract(t, func(*testing.T) railtest.Fixture {
		return railtest.Fixture{
			Kind:    tcp.New(tcp.Config{Congestion: tcp.KeepSystem, NotSent: -1}),
			Bind:    "[::1]:0",
			Local:   "[::1]:0",
			Nowhere: "[::1]:1",
		}
	})
}
