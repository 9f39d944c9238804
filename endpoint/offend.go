package endpoint

import (
	"crypto/tls"
	"errors"
	"time"

	"railyard/rail"
	"railyard/wire"
)

// This file: hosts whose callers fail again and again. What they say costs a greeting, a parser and a proof each time, or a TLS handshake.

const (
	// A host may fail failuresAtOnce times, and once more every failureEvery; beyond that its calls are not greeted.
	failuresAtOnce = 100
	failureEvery   = 200 * time.Millisecond
	// maxOffenders bounds the hosts that are remembered.
	maxOffenders = 4096
)

// offenders are the hosts that have failed of late. One at which a peer has been proved is never kept out for what its neighbors do:
// many nodes may call from one address.
//
// Owner: Manager.mu. Invariant: at most maxOffenders of each.
type offenders struct {
	by     map[string]offender
	proven map[string]bool
}

// offender has room for so many more failures, as time at failureEvery each; room grows with time.
type offender struct{ room, at time.Duration }

func newOffenders() offenders {
	return offenders{by: make(map[string]offender), proven: make(map[string]bool)}
}

func (o offender) roomAt(now time.Duration) time.Duration {
	return min(o.room+now-o.at, failuresAtOnce*failureEvery)
}

// barred tells whether a host has failed too often.
func (o *offenders) barred(host string, now time.Duration) bool {
	f, known := o.by[host]
	return known && !o.proven[host] && f.roomAt(now) < failureEvery
}

// fail notes that a caller of the host was none that belongs here.
func (o *offenders) fail(host string, now time.Duration) {
	f, known := o.by[host]
	if !known {
		if len(o.by) >= maxOffenders && !o.forgive(now) {
			return // that many strangers at once: the places (guests) bound what they cost
		}
		f = offender{room: failuresAtOnce * failureEvery, at: now}
	}
	o.by[host] = offender{room: max(f.roomAt(now)-failureEvery, 0), at: now}
}

// forgive forgets the hosts that may fail as often as any other again; false: there is none.
func (o *offenders) forgive(now time.Duration) bool {
	before := len(o.by)
	for host, f := range o.by {
		if f.roomAt(now) == failuresAtOnce*failureEvery {
			delete(o.by, host)
		}
	}
	return len(o.by) < before
}

// prove notes that a peer calls from the host.
func (o *offenders) prove(host string) {
	if len(o.proven) >= maxOffenders {
		clear(o.proven) // they prove themselves again with their next rail
	}
	o.proven[host] = true
	delete(o.by, host)
}

// offends tells whether a handshake failed in a way in which no peer's does: paths break, and peers meet nodes that are busy or closing.
func offends(err error) bool {
	var refused *RefusedError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	if errors.As(err, &refused) {
		return refused.stranger()
	}
	return errors.Is(err, wire.ErrMalformed) || errors.Is(err, errNoEcho) || errors.As(err, &record) ||
		errors.As(err, &certificate) || errors.As(err, &alert)
}

// judgeCaller takes note of how a handshake has ended.
func (m *Manager) judgeCaller(conn rail.Conn, err error) {
	host := hostOf(conn.RemoteAddr())
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.offenders.prove(host)
	case offends(err):
		m.offenders.fail(host, m.now())
	}
}
