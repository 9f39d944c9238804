package nbd

import (
	"crypto/tls"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"
)

// Export is a device under a name.
type Export struct {
	Name        string // at most 4096 bytes; the first export is also the one without a name
	Description string // for people; at most 4096 bytes
	Device      Device
	ReadOnly    bool

	// MultiConn says that several connections may write at a time. It is right only where a flush on one covers what was answered on
	// all. Without it, a connection that writes ends every older one that has written.
	MultiConn bool

	MinBlock  int // bytes; requests are multiples of it. A power of two up to 65536; 0: 1
	Preferred int // bytes; what clients should use. A power of two from max(512, MinBlock) up to MaxPayload; 0: 4096
}

// Config is what a Server needs to know. Zero means the default.
type Config struct {
	Exports []Export // at least one; names differ

	TLS        *tls.Config // nil: no TLS. Certificates, and what is asked of clients, are its
	RequireTLS bool        // nothing is told or served without it

	MaxPayload  int           // bytes of one read or write; a power of two from 64 KiB to 1 GiB; 0: 32 MiB
	Requests    int           // at a time on one connection; 0: 64
	Bytes       int           // of their payloads; at least MaxPayload; 0: twice MaxPayload
	Connections int           // at a time, also such as still shake hands; 0: 64
	Handshake   time.Duration // how long it may take; 0: 10 s
	Grace       time.Duration // what requests in flight have when the client disconnects or the server stops; 0: 10 s

	Log *zap.Logger // nil: none
}

// Bounds of MaxPayload, in bytes. The lower one is what the protocol's common clients send without being told.
const (
	leastPayload = 64 << 10
	mostPayload  = 1 << 30
)

// complete gives the configuration with its defaults, or says which value is wrong.
func (cfg Config) complete() (Config, error) {
	cfg.MaxPayload = def(cfg.MaxPayload, 32<<20)
	cfg.Requests = def(cfg.Requests, 64)
	cfg.Bytes = def(cfg.Bytes, 2*cfg.MaxPayload)
	cfg.Connections = def(cfg.Connections, 64)
	cfg.Handshake = def(cfg.Handshake, 10*time.Second)
	cfg.Grace = def(cfg.Grace, 10*time.Second)
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	switch {
	case !isPower(cfg.MaxPayload) || cfg.MaxPayload < leastPayload || cfg.MaxPayload > mostPayload:
		return cfg, fmt.Errorf("nbd: MaxPayload is %d bytes; a power of two from %d to %d is needed",
			cfg.MaxPayload, leastPayload, mostPayload)
	case cfg.Bytes < cfg.MaxPayload:
		return cfg, fmt.Errorf("nbd: Bytes is %d; the largest request alone may have %d (MaxPayload)", cfg.Bytes, cfg.MaxPayload)
	case cfg.Requests < 1 || cfg.Connections < 1:
		return cfg, fmt.Errorf("nbd: %d requests on each of %d connections; at least one of each is needed", cfg.Requests, cfg.Connections)
	case cfg.Handshake < 0 || cfg.Grace < 0:
		return cfg, fmt.Errorf("nbd: Handshake is %v and Grace %v; a time cannot be negative", cfg.Handshake, cfg.Grace)
	case cfg.RequireTLS && cfg.TLS == nil:
		return cfg, fmt.Errorf("nbd: RequireTLS needs TLS with a certificate")
	case len(cfg.Exports) == 0:
		return cfg, fmt.Errorf("nbd: no export to serve")
	}
	exports := make([]Export, 0, len(cfg.Exports))
	names := make(map[string]bool)
	for _, e := range cfg.Exports {
		e, err := e.complete(cfg.MaxPayload)
		if err != nil {
			return cfg, err
		}
		if names[e.Name] {
			return cfg, fmt.Errorf("nbd: two exports are called %q", e.Name)
		}
		names[e.Name] = true
		exports = append(exports, e)
	}
	cfg.Exports = exports
	return cfg, nil
}

func (e Export) complete(maxPayload int) (Export, error) {
	e.MinBlock = def(e.MinBlock, 1)
	e.Preferred = def(e.Preferred, max(4096, e.MinBlock))
	switch {
	case e.Device == nil:
		return e, fmt.Errorf("nbd: the export %q has no device", e.Name)
	case len(e.Name) > longestString || len(e.Description) > longestString:
		return e, fmt.Errorf("nbd: an export's name has %d bytes and its description %d; at most %d each",
			len(e.Name), len(e.Description), longestString)
	case !isPower(e.MinBlock) || e.MinBlock > largestMinimum:
		return e, fmt.Errorf("nbd: MinBlock of the export %q is %d; a power of two up to %d is needed", e.Name, e.MinBlock, largestMinimum)
	case !isPower(e.Preferred) || e.Preferred < max(blockSizeEveryoneHas, e.MinBlock) || e.Preferred > maxPayload:
		return e, fmt.Errorf("nbd: Preferred of the export %q is %d; a power of two from %d to %d is needed",
			e.Name, e.Preferred, max(blockSizeEveryoneHas, e.MinBlock), maxPayload)
	}
	if size := e.Device.Size(); size < 0 || size > math.MaxInt64-mostPayload*4 || size%int64(e.MinBlock) != 0 {
		return e, fmt.Errorf("nbd: the export %q has %d bytes; a multiple of %d is needed", e.Name, size, e.MinBlock)
	}
	return e, nil
}

// flags are what clients are told about the export.
func (e *Export) flags(structured bool) uint16 {
	f := exportHasFlags | exportFlush | exportFUA | exportCache
	if e.ReadOnly {
		f |= exportReadOnly
	} else {
		f |= exportTrim | exportWriteZeroes
	}
	if structured {
		f |= exportDF // a read is always answered in one piece
	}
	if e.MultiConn || e.ReadOnly {
		f |= exportMultiConn
	}
	return f
}

func def[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

func isPower(n int) bool { return n > 0 && n&(n-1) == 0 }
