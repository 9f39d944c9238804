package actors

import (
	"fmt"

	"railyard/rail"
)

// discover gives a rail for every usable card of this host.
func discover() ([]rail.Binding, error) {
	devices, err := rail.Discover()
	if err != nil {
		return nil, fmt.Errorf("%w: Rails is empty: %w", ErrConfig, err)
	}
	return bindingsOf(devices), nil
}

// bindingsOf gives one rail a usable card, at a port that the system chooses. A host that has none
// still gets its nodes together: over loopback.
func bindingsOf(devices []rail.Device) []rail.Binding {
	var bindings []rail.Binding
	for _, d := range devices {
		if b, ok := d.Binding(0); ok {
			bindings = append(bindings, b)
		}
	}
	if len(bindings) == 0 {
		return []rail.Binding{rail.TCP("127.0.0.1:0")}
	}
	return bindings
}
