package actors

import (
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/protowire"

	"railyard/endpoint"
	"railyard/endpoint/session"
)

// This file: how the sender's node learns that a message was refused where it arrived. A notice is a message of the framework,
// which waits for no room: where there is none, only the receiver has reported the refusal.

const (
	noticeTarget = reservedPrefix + "refused"
	noticeType   = "railyard.Refused"
	// maxReason bounds the words of a notice, in bytes.
	maxReason = 512
)

// RefusedError is the cause of a MessageUndelivered for a message that arrived at its peer and was refused there. It wraps
// ErrUnknownType, ErrBadPayload, ErrBadHeaders, ErrReserved or ErrNotAllowed, where it is one of these.
type RefusedError struct {
	// Peer is the address of the node that refused it, Reason what that node says.
	Peer, Reason string
	kind         error
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("refused by %s: %q", e.Peer, e.Reason) }

// Unwrap gives the kind of refusal, nil where this node knows none.
func (e *RefusedError) Unwrap() error { return e.kind }

// refusals are the kinds of refusal; a notice has their number here, counted from 1. It only ever grows at its end.
var refusals = []error{ErrUnknownType, ErrBadPayload, ErrBadHeaders, ErrReserved, ErrNotAllowed}

// notice says what was refused, and why.
type notice struct {
	target, typeName string
	size             uint64
	kind             uint64
	reason           string
}

var errBadNotice = errors.New("the notice of a refusal does not decode: the peer speaks another version")

func (r *notice) append(b []byte) []byte {
	b = protowire.AppendString(b, r.target)
	b = protowire.AppendString(b, r.typeName)
	b = protowire.AppendVarint(b, r.size)
	b = protowire.AppendVarint(b, r.kind)
	return protowire.AppendString(b, r.reason)
}

func parseNotice(b []byte) (r notice, err error) {
	for _, field := range []any{&r.target, &r.typeName, &r.size, &r.kind, &r.reason} {
		n := 0
		switch field := field.(type) {
		case *string:
			*field, n = protowire.ConsumeString(b)
		case *uint64:
			*field, n = protowire.ConsumeVarint(b)
		}
		if n < 0 {
			return notice{}, errBadNotice
		}
		b = b[n:]
	}
	return r, nil
}

// tellRefused lets the peer's node know. It waits for nothing.
func (n *Node) tellRefused(from *endpoint.Endpoint, d *session.Delivery, cause error) {
	if d.Target == nil || d.Type == nil {
		return
	}
	r := notice{target: d.Target.S, typeName: d.Type.S, size: uint64(len(d.Payload)), reason: cause.Error()}
	if len(r.reason) > maxReason {
		r.reason = r.reason[:maxReason]
	}
	r.reason = strings.ToValidUTF8(r.reason, "")
	for i, kind := range refusals {
		if errors.Is(cause, kind) {
			r.kind = uint64(i) + 1
		}
	}
	// Without room or a peer there is nobody to tell.
	_ = n.peer(from.Address()).route.TrySend(&endpoint.Outgoing{
		Target: endpoint.NewRefOnce(noticeTarget), Type: endpoint.NewRefOnce(noticeType), Payload: r.append(nil)})
}

// refusedThere makes a dead letter of what a peer has refused. Its sender, if it has one, hears of it from the peer.
func (n *Node) refusedThere(from *endpoint.Endpoint, payload []byte) error {
	r, err := parseNotice(payload)
	if err != nil {
		return err
	}
	cause := &RefusedError{Peer: from.Address(), Reason: r.reason}
	if i := r.kind - 1; i < uint64(len(refusals)) {
		cause.kind = refusals[i]
	}
	n.undelivered(actor.NewPID(from.Address(), r.target),
		letter{message: &Undecoded{Type: r.typeName, Size: int(min(r.size, maxMaxMessage)), Cause: cause}}, cause)
	return nil
}
