package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// AppendDevices appends the payload of a message that tells of changed devices. It refuses what ParseDevices would refuse at
// the peer; the error wraps ErrMalformed.
func AppendDevices(b []byte, m *Devices) ([]byte, error) {
	if err := checkDevices(m); err != nil {
		return b, err
	}
	all, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
	if err != nil {
		return b, fmt.Errorf("wire: a list of devices does not encode: %w: %w", ErrMalformed, err)
	}
	return all, nil
}

// ParseDevices reads that payload. The error wraps ErrMalformed; nothing is allocated for more parts than may be.
func ParseDevices(b []byte) (*Devices, error) {
	if len(b) > MaxHandshake {
		return nil, fmt.Errorf("wire: a list of devices of %d bytes, at most %d are possible: %w", len(b), MaxHandshake, ErrMalformed)
	}
	parts := 0
	for at := 0; at < len(b); {
		_, _, n := protowire.ConsumeField(b[at:])
		if n < 0 {
			return nil, fmt.Errorf("wire: a list of devices has no valid field at byte %d: %w", at, ErrMalformed)
		}
		at += n
		if parts++; parts > maxParts {
			return nil, fmt.Errorf("wire: a list of devices has more than %d fields: %w", maxParts, ErrMalformed)
		}
	}
	m := &Devices{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("wire: a list of devices does not decode: %w: %w", ErrMalformed, err)
	}
	if err := checkDevices(m); err != nil {
		return nil, err
	}
	return m, nil
}

// MaxRails bounds the numbers of rails in one Devices.
const MaxRails = 256

func checkDevices(m *Devices) error {
	if len(m.GetDevices()) > MaxDevices || len(m.GetRails()) > MaxRails {
		return fmt.Errorf("wire: %d devices and %d rails, at most %d and %d are possible: %w",
			len(m.GetDevices()), len(m.GetRails()), MaxDevices, MaxRails, ErrMalformed)
	}
	for _, d := range m.GetDevices() {
		for _, s := range []string{d.GetKind(), d.GetAddress(), d.GetName()} {
			if len(s) > MaxName {
				return fmt.Errorf("wire: a device with a name of %d bytes, at most %d are possible: %w", len(s), MaxName, ErrMalformed)
			}
		}
	}
	for _, r := range m.GetRails() {
		if r > 1<<16-1 {
			return fmt.Errorf("wire: rail %d, at most %d is possible: %w", r, 1<<16-1, ErrMalformed)
		}
	}
	return nil
}
