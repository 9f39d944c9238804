package wire

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// sink keeps results alive.
var sink struct {
	n   int
	err error
}

func TestHotFramesDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, MaxRecord+HeaderSize)
	refused := refusals(8)
	message := Message{
		Target: Ref{Slot: 1}, Sender: Ref{Name: "sender"}, Type: Ref{Slot: 2},
		Headers: []byte("h"), Payload: make([]byte, 64),
	}
	tests := []struct {
		name string
		run  func() error
	}{
		{"Chunk", func() error {
			b := (&Chunk{Op: 1, Token: token, Total: 8, Size: 8}).Append(buf)
			h, _ := ParseHeader(b)
			f, err := ParseChunk(h, b)
			sink.n += int(f.Size)
			return err
		}},
		{"MessageChunk", func() error {
			b := (&MessageChunk{ID: 1, Total: 8, Size: 8}).Append(buf)
			h, _ := ParseHeader(b)
			f, err := ParseMessageChunk(h, b)
			sink.n += int(f.Size)
			return err
		}},
		{"GetData", func() error {
			b := (&GetData{Op: 1, Total: 8, Size: 8}).Append(buf)
			h, _ := ParseHeader(b)
			f, err := ParseGetData(h, b)
			sink.n += int(f.Size)
			return err
		}},
		{"Placed", func() error {
			b := (&Placed{Op: 1, Total: 8, Size: 8}).Append(buf)
			h, _ := ParseHeader(b)
			f, err := ParsePlaced(h, b)
			sink.n += int(f.Size)
			return err
		}},
		{"Beat", func() error {
			b := (&Beat{Seq: 1}).Append(buf)
			h, _ := ParseHeader(b)
			f, err := ParseBeat(h, b)
			sink.n += int(f.Seq)
			return err
		}},
		{"Ack", func() error {
			b := (&Ack{Count: 8, Refusals: refused}).Append(buf)
			h, _ := ParseHeader(b)
			f, err := ParseAck(h, b, b[HeaderSize:])
			for i := range f.Refusals.Len() {
				sink.n += int(f.Refusals.At(i).Frame)
			}
			return err
		}},
		{"Batch", func() error {
			b := AppendBatchHeader(buf)
			b = AppendDefine(b, 1, "printer")
			b = AppendMessage(b, &message)
			b = AppendPlaceholder(b, &Placeholder{Target: Ref{Slot: 1}, ID: 4, Total: 1 << 20})
			PatchBatch(b, len(b)-HeaderSize, 2)
			h, _ := ParseHeader(b)
			if _, err := ParseBatch(h, b); err != nil {
				return err
			}
			for at := HeaderSize; at < len(b); {
				_, n, err := NextRecord(b[at:])
				if err != nil || n == 0 {
					return ErrMalformed
				}
				at += n
			}
			return nil
		}},
		{"cut record", func() error {
			b := AppendMessage(buf, &message)
			for end := range b {
				if _, n, err := NextRecord(b[:end]); err != nil || n != 0 {
					return ErrMalformed
				}
			}
			return nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.run())
			assert.Zero(t, testing.AllocsPerRun(100, func() { sink.err = tt.run() }))
			require.NoError(t, sink.err)
		})
	}
}

// The worst that 64 KiB of handshake can unfold to stays within a small multiple of them.
func TestHandshakeMemoryIsBounded(t *testing.T) {
	worst := map[string][]byte{}
	var devices, strings []byte
	for len(devices)+2 <= MaxHandshake {
		devices = append(devices, 0x92, 1, 0) // field 18, empty
	}
	for len(strings)+3 <= MaxHandshake-8 {
		strings = append(strings, 1<<3|2, 1, 'x')
	}
	worst["empty devices"] = devices[:len(devices)/3*3]
	var nested []byte
	nested = append(nested, 0x92, 1) // field 18
	nested = protowire.AppendVarint(nested, uint64(len(strings)))
	worst["one device, named again and again"] = append(nested, strings...)
	for name, body := range worst {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := decodeHandshake(KindHello, body, &Hello{})
			runtime.ReadMemStats(&after)
			assert.ErrorIs(t, err, ErrMalformed)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*MaxHandshake))
		})
	}
}
