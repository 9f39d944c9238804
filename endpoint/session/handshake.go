package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"railyard/wire"
)

// The proofs of a handshake. The acceptor speaks first:
//
//	acceptor                       dialer
//	   Challenge(nonce A) ────────────►
//	   ◄──── Hello(A, nonce D, proof)      nothing changes before A has come back (rule 8)
//	   Answer(D, proof) ──────────────►
//	   ◄──────────────── Confirm(proof)    only now may the acceptor send data (rule 7)
//
// Each proof is an HMAC-SHA256 by the session's key over its role, both nonces, both nodes and incarnations, session, epoch,
// rail, generation, and what the frame itself says of limits and fenced generations.

// Key derives a session's key from the nodes' shared secret, or from the random token of the first hello where
// there is none.
func Key(secret, token, session []byte) []byte {
	root := secret
	if len(root) == 0 {
		root = token
	}
	mac := hmac.New(sha256.New, root)
	mac.Write([]byte("railyard session key 1"))
	writeField(mac, session)
	return mac.Sum(nil)
}

// Bind makes of a session's key one for the proofs of a single encrypted connection: exporter is a secret of that connection, which
// both ends have and nobody between them. So a proof is worth nothing on another connection.
func Bind(key, exporter []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("railyard connection key 1"))
	writeField(mac, exporter)
	return mac.Sum(nil)
}

// HelloProof is the dialer's first proof.
func HelloProof(key []byte, ch *wire.Challenge, h *wire.Hello) []byte {
	mac := transcript(key, "hello", ch.GetNonce(), h)
	writeNumber(mac, h.GetWindow())
	writeNumber(mac, h.GetMaxMessage())
	writeFenced(mac, h.GetFenced())
	return mac.Sum(nil)
}

// AnswerProof is the acceptor's proof.
func AnswerProof(key []byte, ch *wire.Challenge, h *wire.Hello, a *wire.Answer) []byte {
	mac := transcript(key, "answer", ch.GetNonce(), h)
	writeNumber(mac, uint64(a.GetCode()))
	writeField(mac, []byte(a.GetNode()))
	writeField(mac, a.GetIncarnation())
	writeNumber(mac, a.GetWindow())
	writeNumber(mac, a.GetMaxMessage())
	writeFenced(mac, a.GetFenced())
	writeNumber(mac, a.GetSerial())
	writeField(mac, []byte(a.GetDevice()))
	for _, d := range a.GetDevices() {
		writeField(mac, []byte(d.GetKind()))
		writeField(mac, []byte(d.GetAddress()))
	}
	return mac.Sum(nil)
}

// ConfirmProof is the dialer's second proof.
func ConfirmProof(key []byte, ch *wire.Challenge, h *wire.Hello, c *wire.Confirm) []byte {
	mac := transcript(key, "confirm", ch.GetNonce(), h)
	writeFenced(mac, c.GetFenced())
	return mac.Sum(nil)
}

// SameProof compares in constant time.
func SameProof(a, b []byte) bool { return hmac.Equal(a, b) }

func transcript(key []byte, role string, challenge []byte, h *wire.Hello) hash.Hash {
	mac := hmac.New(sha256.New, key)
	first := uint64(0)
	if h.GetFirst() {
		first = 1
	}
	for _, f := range [][]byte{[]byte(role), challenge, h.GetNonce(), []byte(h.GetNode()), h.GetIncarnation(),
		[]byte(h.GetTarget()), h.GetTargetIncarnation(), h.GetSession()} {
		writeField(mac, f)
	}
	for _, n := range []uint64{h.GetEpoch(), first, uint64(h.GetRail()), h.GetGeneration()} {
		writeNumber(mac, n)
	}
	return mac
}

func writeField(h hash.Hash, b []byte) {
	writeNumber(h, uint64(len(b)))
	h.Write(b)
}

func writeNumber(h hash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

func writeFenced(h hash.Hash, list []*wire.Fenced) {
	writeNumber(h, uint64(len(list)))
	for _, f := range list {
		flags := uint64(0)
		for i, set := range []bool{f.GetHaveYours(), f.GetRejected(), f.GetDone()} {
			if set {
				flags |= 1 << i
			}
		}
		for _, n := range []uint64{uint64(f.GetRail()), f.GetGeneration(), f.GetCount(), flags} {
			writeNumber(h, n)
		}
		writeField(h, f.GetRefusals())
	}
}
