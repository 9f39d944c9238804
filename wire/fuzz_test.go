package wire

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
)

// mustBeMalformed fails unless err is the typed error that every parser gives.
func mustBeMalformed(t *testing.T, err error) {
	t.Helper()
	var typed *Error
	if !errors.As(err, &typed) || !errors.Is(err, ErrMalformed) || typed.Reason == "" {
		t.Fatalf("not a typed error: %v", err)
	}
}

// FuzzHeader: a header that is accepted is within its kind's limits and encodes to the same first
// bytes.
func FuzzHeader(f *testing.F) {
	for _, b := range samples() {
		f.Add(b[:HeaderSize])
	}
	for _, k := range handshakeKinds {
		f.Add(sized(k, 100))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			mustBeMalformed(t, err)
			return
		}
		if l := layouts[h.Kind]; h.Body > l.max || h.Body < l.min || h.Flags&^l.flags != 0 {
			t.Fatalf("accepted %+v", h)
		}
		again, _ := appendHeader(nil, h)
		if !bytes.Equal(again[:fields], b[:fields]) {
			t.Fatalf("%x encodes again as %x", b[:fields], again[:fields])
		}
	})
}

// FuzzBatchRecord: a record that is accepted encodes to the same bytes; each part of it asks for
// more; none is waited for beyond its bound.
func FuzzBatchRecord(f *testing.F) {
	for _, b := range records() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, n, err := NextRecord(b)
		switch {
		case err != nil:
			mustBeMalformed(t, err)
			return
		case n == 0:
			if len(b) >= MaxRecord {
				t.Fatalf("%d bytes are not enough for a record", len(b))
			}
			return
		}
		if again := appendRecord(nil, rec); !bytes.Equal(again, b[:n]) {
			t.Fatalf("%x encodes again as %x", b[:n], again)
		}
		for _, cut := range []int{n - 1, n / 2, n / 3, 1, 0} {
			if cut == n {
				continue
			}
			if _, m, err := NextRecord(b[:cut]); m != 0 || err != nil {
				t.Fatalf("%d of %d bytes give %d, %v", cut, n, m, err)
			}
		}
	})
}

// FuzzControl: every kind but the handshake's. A frame that is accepted encodes to the same bytes,
// but for unused bytes of the kinds with payload; so its lists are no longer than its body.
func FuzzControl(f *testing.F) {
	for _, b := range samples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, h, bare, err := reencode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("not a typed error: %v", err)
			}
			return
		}
		end := HeaderSize
		if !bare {
			end += int(h.Body)
		}
		b = append([]byte(nil), b...)
		if h.Kind == KindBatch {
			copy(b[10:HeaderSize], make([]byte, HeaderSize)) // unused, and not looked at
		}
		if h.Kind == KindMessageChunk || h.Kind == KindGetData {
			copy(b[32:HeaderSize], make([]byte, HeaderSize))
		}
		if !bytes.Equal(out, b[:end]) {
			t.Fatalf("%v: %x encodes again as %x", h.Kind, b[:end], out)
		}
	})
}

// FuzzHandshake: what is accepted is valid to send, and says the same when it is read again;
// nothing behind it is read.
func FuzzHandshake(f *testing.F) {
	for i, k := range handshakeKinds {
		b, err := AppendHandshake(nil, k, handshake(k))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		k := handshakeKinds[int(which)%len(handshakeKinds)]
		m := newHandshake(k)
		r := bytes.NewReader(b)
		if err := ReadHandshake(r, k, m); err != nil {
			return
		}
		h, _ := ParseHeader(b)
		if used := len(b) - r.Len(); used != HeaderSize+int(h.Body) {
			t.Fatalf("%d bytes read of a frame of %d", used, HeaderSize+int(h.Body))
		}
		again, err := AppendHandshake(nil, k, m)
		if err != nil {
			t.Fatalf("accepted, but not to be sent: %v", err)
		}
		if len(again) > HeaderSize+int(h.Body) {
			t.Fatalf("%d bytes grow to %d", HeaderSize+int(h.Body), len(again))
		}
		second := newHandshake(k)
		if err := ReadHandshake(bytes.NewReader(again), k, second); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(m, second) {
			t.Fatalf("%v\nreads again as\n%v", m, second)
		}
	})
}
