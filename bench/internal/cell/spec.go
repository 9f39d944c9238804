package cell

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"railyard/internal/certs"
)

// Load is what is measured.
type Load string

const (
	// Put writes to the server's memory; of a contender that has no memory to write to, it is one stream that the server reads
	// into a fixed place, round and round.
	Put Load = "put"
	// Get reads from the server's memory.
	Get Load = "get"
	// Ping sends one message there and back at a time.
	Ping Load = "ping"
	// Messages sends one way, from Senders senders to as many sinks.
	Messages Load = "messages"
	// Idle does nothing: what connections cost that nobody uses.
	Idle Load = "idle"
)

// Spec is one load. It can be compared, and its zero fields say nothing special.
type Spec struct {
	Load    Load  `json:"load"`
	Size    int64 `json:"size"`             // bytes of an operation or message
	Window  int   `json:"window,omitempty"` // of each sender: operations or messages under way
	Senders int   `json:"senders,omitempty"`
	Rails   int   `json:"rails,omitempty"`
	TLS     bool  `json:"tls,omitempty"`
	Beside  int64 `json:"beside,omitempty"` // bytes of puts that go on beside pings; 0: none
	Procs   int   `json:"procs,omitempty"`  // GOMAXPROCS of both processes; 0: all processors

	// What there is besides, and not used while the load runs.
	Crowd   int `json:"crowd,omitempty"`   // nodes in the server's process, each connected by two rails
	Regions int `json:"regions,omitempty"` // regions that the server has registered
	Targets int `json:"targets,omitempty"` // actors of the server that were sent a message before
}

// regionSize is the least memory that puts go round in, and that streams are read into.
const regionSize = 64 << 20

// Region is how many bytes of memory the server has for puts and gets.
func (s Spec) Region() int64 {
	size := max(s.Size, s.Beside)
	return max(regionSize/size*size, size)
}

// AckEach is after how many messages a sink tells its sender, where the contender leaves it to the application to hold senders back.
func (s Spec) AckEach() int { return max(1, s.Window/8) }

// String is short and for people.
func (s Spec) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Load, Bytes(s.Size))
	for _, part := range []struct {
		n      int
		format string
	}{{s.Window, ", window %d"}, {s.Senders, ", %d senders"}, {s.Rails, ", rails %d"}, {s.Procs, ", GOMAXPROCS %d"},
		{s.Crowd, ", %d nodes idle"}, {s.Regions, ", %d regions"}, {s.Targets, ", %d PIDs used"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, part.format, part.n)
		}
	}
	if s.TLS {
		b.WriteString(", TLS")
	}
	if s.Beside > 0 {
		fmt.Fprintf(&b, ", beside puts of %s", Bytes(s.Beside))
	}
	return b.String()
}

// Bytes writes a size as people say it.
func Bytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// Reach is how the driver reaches the server: what the server has said.
type Reach struct {
	Address string   `json:"address"`
	Key     []byte   `json:"key,omitempty"`   // of the server's memory
	Crowd   []string `json:"crowd,omitempty"` // addresses of its idle nodes
}

// Papers are certificates in PEM form, for loads over TLS.
type Papers struct {
	Authority []byte `json:"authority"`
	Cert      []byte `json:"cert"` // of 127.0.0.1
	Key       []byte `json:"key"`
}

// Pair reads them.
func (p *Papers) Pair() (tls.Certificate, *x509.CertPool, error) {
	pool := x509.NewCertPool()
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return cert, nil, fmt.Errorf("the certificate of this end: %w", err)
	}
	if !pool.AppendCertsFromPEM(p.Authority) {
		return cert, nil, errors.New("the authority's certificate cannot be read")
	}
	return cert, pool, nil
}

// NewPapers makes certificates that are good for a day.
func NewPapers() (*Papers, error) {
	authority, err := certs.New("railyard bench")
	if err != nil {
		return nil, err
	}
	leaf, err := authority.Issue(certs.Request{Names: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	return &Papers{Authority: authority.PEM(), Cert: leaf.CertPEM, Key: leaf.Key}, nil
}

// Setup is what a side is started with.
type Setup struct {
	Spec   Spec    `json:"spec"`
	Peer   Reach   `json:"peer"` // of the driver
	Papers *Papers `json:"papers,omitempty"`

	Tally *Tally `json:"-"`
}
