package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
)

// Side is one of the two hosts.
type Side int

// The hosts.
const (
	A Side = iota
	B
)

// String gives its letter.
func (s Side) String() string { return string(rune('a' + s)) }

// Other is the host at the other end.
func (s Side) Other() Side { return 1 - s }

// MaxRails bounds the rails of a lab.
const MaxRails = 16

// Options of a lab. The zero value of a field is named beside it.
type Options struct {
	// Rails between the hosts (2).
	Rails int
	// Rates are the rails' in bits a second, the last one that of all further ones; none, or 0: not shaped.
	Rates []int64
	// Delay of a packet on its way, in one direction; above 0 the rails are wires in user space (0).
	Delay time.Duration
	// MTU of the cards (1500).
	MTU int
}

func (o Options) rate(i int) int64 {
	if len(o.Rates) == 0 {
		return 0
	}
	return o.Rates[min(i, len(o.Rates)-1)]
}

// ErrOptions is wrapped by the errors about Options and cuts that make no sense.
var ErrOptions = errors.New("lab: not possible")

func (o Options) filled() (Options, error) {
	if o.Rails == 0 {
		o.Rails = 2
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.Rails < 1 || o.Rails > MaxRails {
		return o, fmt.Errorf("%w: %d rails; 1 to %d are", ErrOptions, o.Rails, MaxRails)
	}
	if o.Delay < 0 || o.MTU < 1280 || o.MTU > 65535 {
		return o, fmt.Errorf("%w: a delay of %v and an MTU of %d; from 0 and from 1280 to 65535 are", ErrOptions, o.Delay, o.MTU)
	}
	return o, nil
}

// Lab is two hosts and the rails between them. Its methods may be called from any goroutine, those for one rail one at
// a time.
type Lab struct {
	options Options
	hosts   [2]*host
	wires   []*wire
	// undo are the steps that heal each rail. Owner: whoever cuts and heals that rail.
	undo [][]func() error

	mu        sync.Mutex
	processes []*Process // Owner: mu
	closed    bool       // Owner: mu
}

// New makes a lab. The error wraps ErrOptions, or is the kernel's.
func New(o Options) (_ *Lab, err error) {
	if o, err = o.filled(); err != nil {
		return nil, err
	}
	l := &Lab{options: o, undo: make([][]func() error, o.Rails)}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for s := range l.hosts {
		if l.hosts[s], err = newHost(); err != nil {
			return nil, err
		}
	}
	for i := range o.Rails {
		if err := l.lay(i); err != nil {
			return nil, err
		}
	}
	for _, h := range l.hosts {
		if err := h.prepareFilters(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// lay makes rail i.
func (l *Lab) lay(i int) error {
	if l.options.Delay > 0 {
		w, err := newWire(l.hosts, cardName(i), l.options.Delay)
		if err != nil {
			return err
		}
		l.wires = append(l.wires, w)
	} else {
		if err := l.Cable(cardName(i)); err != nil {
			return err
		}
	}
	for s, h := range l.hosts {
		if err := h.card(i, l.Address(Side(s), i).String()+"/24"); err != nil {
			return err
		}
		if rate := l.options.rate(i); rate > 0 {
			if err := h.shape(i, rate); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cable makes a card of this name on each host, and a cable between them. They have no address, and are switched off.
func (l *Lab) Cable(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, l.options.MTU
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(l.hosts[B].space)}
	if err := l.hosts[A].links.LinkAdd(pair); err != nil {
		return fmt.Errorf("lab: no cable for the cards %s: %w", name, err)
	}
	return nil
}

// Rails is how many there are.
func (l *Lab) Rails() int { return l.options.Rails }

// Address is that of a host's card of rail i.
func (l *Lab) Address(s Side, i int) netip.Addr { return CardAddress(s, i) }

// CardAddress is the same for every lab.
func CardAddress(s Side, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(i), 1 + byte(s)})
}

// Do runs f on a thread of the host: what sockets it opens are that host's. f must not wait for another call of Do.
func (l *Lab) Do(s Side, f func() error) error { return l.hosts[s].do(f) }

// Received is how many bytes the host's card of rail i has taken in, headers included.
func (l *Lab) Received(s Side, i int) (uint64, error) {
	card, err := l.hosts[s].links.LinkByIndex(l.hosts[s].cards[i].Attrs().Index)
	if err != nil || card.Attrs().Statistics == nil {
		return 0, fmt.Errorf("lab: rail %d does not tell what it received at host %s: %w", i, s, err)
	}
	return card.Attrs().Statistics.RxBytes, nil
}

// Close heals what flaps, ends the processes, and lets the namespaces go. Once is enough.
func (l *Lab) Close() error {
	l.mu.Lock()
	processes, over := l.processes, l.closed
	l.closed, l.processes = true, nil
	l.mu.Unlock()
	if over {
		return nil
	}
	var all []error
	for _, p := range processes {
		p.Kill()
	}
	for i := range l.undo {
		if _, err := l.Heal(i); err != nil {
			all = append(all, err)
		}
	}
	for _, w := range l.wires {
		w.close()
	}
	for _, h := range l.hosts {
		if h != nil {
			all = append(all, h.close())
		}
	}
	return errors.Join(all...)
}
