package rail

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Kinds that a binding may name without the node having injected others.
const (
	KindTCP   = "tcp"
	KindVerbs = "verbs"
)

// ErrBinding is wrapped by every error of Binding.Validate and ValidateBindings.
var ErrBinding = errors.New("rail binding refused")

// Binding says which local device one rail uses and how peers reach it.
//
// The zero value is not valid; build one with TCP or Verbs, or fill the fields and call Validate.
type Binding struct {
	// Kind is the transport's name: "tcp", "verbs", or that of an injected Kind.
	Kind string
	// Address is where the rail listens and from where it dials: "ip:port" for tcp (port 0: the system
	// chooses), the kind's own notation for others. Empty for verbs. Only ":port" where Name says which card's.
	Address string
	// Advertise is the address that peers are told to dial instead of Address: that of a forwarder or a
	// NAT. Empty: the address in force.
	Advertise string
	// Name is shown beside the address in logs and dashboards: the card's name. It may be empty.
	Name string
	// Device and Port name an RMA-capable port ("mlx5_0", 1). Verbs only.
	Device string
	Port   int
}

// BindingOption changes a binding that TCP makes.
type BindingOption func(*Binding)

// Advertised makes peers dial address ("host:port") in place of the binding's own: a forwarder or NAT.
func Advertised(address string) BindingOption {
	return func(b *Binding) { b.Advertise = address }
}

// TCP binds a rail to the card that has the address ("10.0.0.1:7400", "[fd00::1]:7400"; port 0 or none: the
// system chooses). The result is checked by Validate, not here.
func TCP(address string, opts ...BindingOption) Binding {
	b := Binding{Kind: KindTCP, Address: withPort(address)}
	for _, opt := range opts {
		opt(&b)
	}
	return b
}

// Card binds a rail to a card by its name ("eth1"), at whatever address the card has (the first one); port 0: the system
// chooses. The card need not be there, or have an address, when the node starts: the rail comes when both are.
func Card(name string, port uint16, opts ...BindingOption) Binding {
	b := Binding{Kind: KindTCP, Name: name, Address: ":" + strconv.Itoa(int(port))}
	for _, opt := range opts {
		opt(&b)
	}
	return b
}

// Follows tells whether the binding names a card, and takes the address that the card has.
func (b Binding) Follows() bool {
	return b.Kind == KindTCP && b.Name != "" && strings.HasPrefix(b.Address, ":")
}

// Verbs binds a rail to an RDMA port: the device's name as the system shows it, ports counted from 1.
func Verbs(device string, port int) Binding {
	return Binding{Kind: KindVerbs, Device: device, Port: port}
}

// withPort adds ":0" to a bare IP address and leaves everything else as it is, for Validate to judge.
func withPort(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return netip.AddrPortFrom(ip, 0).String()
	}
	return address
}

// String names the binding as logs and Status show it: the address, or device/port.
func (b Binding) String() string {
	if b.Kind == KindVerbs {
		return b.Device + "/" + strconv.Itoa(b.Port)
	}
	if b.Follows() {
		return b.Name + b.Address
	}
	return b.Address
}

// Validate checks the fields that the binding's kind uses. kinds names injected kinds beside tcp and verbs; their
// addresses are theirs to judge. The error wraps ErrBinding and names the field and its value.
func (b Binding) Validate(kinds ...string) error {
	switch {
	case b.Kind == KindTCP:
		return b.validateTCP()
	case b.Kind == KindVerbs:
		return b.validateVerbs()
	case b.Kind != "" && slices.Contains(kinds, b.Kind):
		if b.Address == "" {
			return refuse("Address", b.Address, "a "+b.Kind+" rail needs one")
		}
		return nil
	default:
		known := append([]string{KindTCP, KindVerbs}, kinds...)
		return refuse("Kind", b.Kind, "use one of "+strings.Join(known, ", "))
	}
}

func (b Binding) validateTCP() error {
	if b.Follows() {
		return b.validateCard()
	}
	ap, err := netip.ParseAddrPort(b.Address)
	if err != nil {
		return refuse("Address", b.Address, `want "ip:port" of a local card, such as "10.0.0.1:7400": `+err.Error())
	}
	if ap.Addr().IsUnspecified() {
		return refuse("Address", b.Address,
			"a rail is one card: give that card's own address, and one binding for each card; no bindings at all "+
				"means every usable card")
	}
	if ap.Addr().IsMulticast() {
		return refuse("Address", b.Address, "a multicast address cannot carry a rail: give the card's own")
	}
	if b.Device != "" || b.Port != 0 {
		return refuse("Device", b.String(), "only verbs rails name a device and port; tcp rails name an address")
	}
	if b.Advertise == "" {
		return nil
	}
	return validateAdvertise(b.Advertise)
}

func (b Binding) validateCard() error {
	if strings.ContainsAny(b.Name, "/ ") {
		return refuse("Name", b.Name, `want a card's name such as "eth1"; "railyard info" lists them`)
	}
	if _, err := strconv.ParseUint(b.Address[1:], 10, 16); err != nil {
		return refuse("Address", b.Address, `a card by its name takes ":port" alone, 0 to 65535`)
	}
	if b.Device != "" || b.Port != 0 {
		return refuse("Device", b.Device, "only verbs rails name an RDMA device; a card's name belongs in Name")
	}
	if b.Advertise == "" {
		return nil
	}
	return validateAdvertise(b.Advertise)
}

// validateAdvertise accepts host names, unlike Address: the peer resolves it, and a forwarder may well have one.
func validateAdvertise(address string) error {
	colon := strings.LastIndexByte(address, ':')
	if colon <= 0 {
		return refuse("Advertise", address, `want "host:port" as peers should dial it`)
	}
	host, port := strings.Trim(address[:colon], "[]"), address[colon+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return refuse("Advertise", address, "peers need a port from 1 to 65535 to dial")
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return refuse("Advertise", address, "peers cannot dial an unspecified address: give the one they reach")
	}
	if strings.ContainsAny(host, " /") || host == "" {
		return refuse("Advertise", address, "the host part is not a name or an address")
	}
	return nil
}

func (b Binding) validateVerbs() error {
	if b.Device == "" || strings.ContainsAny(b.Device, "/ ") {
		return refuse("Device", b.Device, `want an RDMA device's name such as "mlx5_0"; "railyard info" lists them`)
	}
	if b.Port < 1 || b.Port > 254 {
		return refuse("Port", strconv.Itoa(b.Port), "ports of an RDMA device count from 1 to 254")
	}
	if b.Address != "" {
		return refuse("Address", b.Address, "a verbs rail is named by Device and Port alone")
	}
	return nil
}

// ValidateBindings checks each binding and that no two are the same rail. kinds is as for Validate.
func ValidateBindings(bindings []Binding, kinds ...string) error {
	seen := make(map[string]int, len(bindings))
	for i, b := range bindings {
		if err := b.Validate(kinds...); err != nil {
			return fmt.Errorf("rail %d: %w", i, err)
		}
		identity, fixed := b.identity()
		if !fixed {
			continue
		}
		if first, twice := seen[identity]; twice {
			return fmt.Errorf("%w: rails %d and %d both use %s: give each rail its own card or port",
				ErrBinding, first, i, b)
		}
		seen[identity] = i
	}
	return nil
}

// identity gives what makes a rail unique on its node; fixed is false where the system chooses a port, since
// two such bindings never collide.
func (b Binding) identity() (name string, fixed bool) {
	if b.Kind != KindTCP {
		return b.Kind + " " + b.String(), true
	}
	if b.Follows() {
		return b.Kind + " card " + b.Name, true
	}
	ap, err := netip.ParseAddrPort(b.Address)
	if err != nil {
		return b.Kind + " " + b.Address, true
	}
	unmapped := netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	return b.Kind + " " + unmapped.String(), ap.Port() != 0
}

func refuse(field, value, advice string) error {
	return fmt.Errorf("%w: %s is %q: %s", ErrBinding, field, value, advice)
}
