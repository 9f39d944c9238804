package session

import (
	"errors"
	"fmt"
	"time"
)

// Config is what both halves of a session are made with. The zero value of a field is its default.
type Config struct {
	// Opener is true at the end that opened the session: it dials the rails.
	Opener bool
	// Window is how many bytes of messages the peer may have under way to us, until they are
	// consumed (default 64 MiB, and never less than 5/4 of MaxMessage).
	Window uint64
	// PeerWindow is what the peer grants us at the start; from the handshake.
	PeerWindow uint64
	// MaxMessage is the largest message that we take, in bytes (default 64 MiB).
	MaxMessage uint64
	// PeerMaxMessage is what the peer takes; from the handshake.
	PeerMaxMessage uint64
	// MaxOpen bounds the open operations (default 262144), and with them the target's tables.
	MaxOpen int
	// PeerMaxOpen bounds what we keep of the peer's operations, which are as many as its own MaxOpen (default: ours). It is
	// not in the handshake: nodes with different settings set it to MaxOpenLimit.
	PeerMaxOpen int
	// MaxChunk and MinChunk bound the bytes of one chunk (default 1 MiB and 64 KiB).
	MaxChunk, MinChunk int
	// LaneBulk bounds the bulk bytes in flight on one lane (default 4 MiB).
	LaneBulk int
	// AckDelay is how long the acknowledgement of a message may wait for company (default 2 ms).
	AckDelay time.Duration
	// WitnessWait is how long a suspect lane may still show life once another one has answered (default 20 ms).
	WitnessWait time.Duration
	// ResendEvery is how often unanswered state (Retired, Cancel) is said again (default 50 ms).
	ResendEvery time.Duration
}

// ErrConfig reports a session configuration that cannot work.
var ErrConfig = errors.New("session: bad configuration")

// MessageOverhead is what a message costs of a window besides its payload and headers, in bytes.
const MessageOverhead = 64

// MaxOpenLimit is the most that MaxOpen can be: a peer that goes beyond it breaks the protocol.
const MaxOpenLimit = 1 << 20

// maxWritePlan is how many bytes one write call is planned for.
const maxWritePlan = 2 << 20

// smallOp is the largest operation whose bytes are copied behind their header instead of being written from where they are.
const smallOp = 2 << 10

// receiveBuffer holds what arrives between bulk payloads; the largest inline record fits twice.
const receiveBuffer = 80 << 10

// segmentSize is how many bytes of messages are put into one batch before the next one begins.
const segmentSize = 48 << 10

// WithDefaults returns the configuration with every zero replaced, or an error that names the field.
func (c Config) WithDefaults() (Config, error) {
	def := func(v *uint64, d uint64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MaxMessage, 64<<20)
	// A grant is said again once an eighth of the window is free, so seven eighths must hold the largest message.
	def(&c.Window, 64<<20)
	if need := c.MaxMessage + c.MaxMessage/4 + 128<<10; c.Window < need {
		c.Window = need
	}
	def(&c.PeerMaxMessage, c.MaxMessage)
	def(&c.PeerWindow, c.Window)
	if c.MaxOpen == 0 {
		c.MaxOpen = 1 << 18
	}
	if c.PeerMaxOpen == 0 {
		c.PeerMaxOpen = c.MaxOpen
	}
	if c.MaxChunk == 0 {
		c.MaxChunk = 1 << 20
	}
	if c.MinChunk == 0 {
		c.MinChunk = 64 << 10
	}
	if c.LaneBulk == 0 {
		c.LaneBulk = 4 << 20
	}
	if c.AckDelay == 0 {
		c.AckDelay = 2 * time.Millisecond
	}
	if c.WitnessWait == 0 {
		c.WitnessWait = 20 * time.Millisecond
	}
	if c.ResendEvery == 0 {
		c.ResendEvery = 50 * time.Millisecond
	}
	switch {
	case c.MaxOpen < 0 || c.MaxOpen > MaxOpenLimit:
		return c, fmt.Errorf("%w: MaxOpen is %d; from 1 to %d are possible", ErrConfig, c.MaxOpen, MaxOpenLimit)
	case c.MinChunk < smallOp || c.MaxChunk < c.MinChunk:
		return c, fmt.Errorf("%w: chunks of %d to %d bytes; MinChunk must be at least %d and at most MaxChunk",
			ErrConfig, c.MinChunk, c.MaxChunk, smallOp)
	case c.MaxChunk > 1<<20:
		return c, fmt.Errorf("%w: MaxChunk is %d; at most %d", ErrConfig, c.MaxChunk, 1<<20)
	case c.LaneBulk < c.MinChunk:
		return c, fmt.Errorf("%w: LaneBulk is %d; it must hold at least one chunk of %d", ErrConfig, c.LaneBulk, c.MinChunk)
	}
	return c, nil
}
