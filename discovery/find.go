package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Finder says where nodes are.
type Finder interface {
	// Find gives addresses ("host:port") that Node.Connect takes. This node's own may be among them, and several of one node.
	Find(ctx context.Context) ([]string, error)
}

// Changing is a Finder that knows when to be asked again.
type Changing interface {
	Finder
	// Changed has an element when Find would give something else. It is never closed.
	Changed() <-chan struct{}
}

// ErrNoName: a DNS finder without a name.
var ErrNoName = errors.New("a DNS finder needs a name to look up: set DNS.Name")

// Static is a list that does not change.
func Static(addresses ...string) Finder { return static(slices.Clone(addresses)) }

type static []string

func (s static) Find(context.Context) ([]string, error) { return slices.Clone(s), nil }

// DNS finds the nodes behind a name, one address each or several.
type DNS struct {
	// Name is looked up each time.
	Name string
	// Port is that of the nodes, for names with address records (A, AAAA). 0: the name has SRV records, as in
	// "_railyard._tcp.example.org", which say host and port.
	Port uint16
	// Resolver is asked. Nil: the system's.
	Resolver *net.Resolver
}

// Find implements Finder.
func (d DNS) Find(ctx context.Context) ([]string, error) {
	if d.Name == "" {
		return nil, ErrNoName
	}
	r := d.Resolver
	if r == nil {
		r = net.DefaultResolver
	}
	var found []string
	if d.Port == 0 {
		_, records, err := r.LookupSRV(ctx, "", "", d.Name)
		if err != nil {
			return nil, fmt.Errorf("looking for nodes by the SRV records of %q: %w", d.Name, err)
		}
		for _, s := range records {
			found = append(found, net.JoinHostPort(strings.TrimSuffix(s.Target, "."), strconv.Itoa(int(s.Port))))
		}
		return found, nil
	}
	hosts, err := r.LookupHost(ctx, d.Name)
	if err != nil {
		return nil, fmt.Errorf("looking for nodes by the addresses of %q: %w", d.Name, err)
	}
	for _, h := range hosts {
		found = append(found, net.JoinHostPort(h, strconv.Itoa(int(d.Port))))
	}
	return found, nil
}
