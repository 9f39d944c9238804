package wire

import (
	"fmt"
	"testing"
)

func BenchmarkAppendChunk(b *testing.B) {
	buf := make([]byte, 0, HeaderSize)
	f := Chunk{Op: 1, Token: token, Region: 2, Base: 3, Total: 1 << 20, Size: 1 << 20}
	b.ReportAllocs()
	for b.Loop() {
		sink.n += len(f.Append(buf))
	}
}

func BenchmarkParseChunk(b *testing.B) {
	frame := (&Chunk{Op: 1, Token: token, Region: 2, Base: 3, Total: 1 << 20, Size: 1 << 20}).Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		h, _ := ParseHeader(frame)
		f, err := ParseChunk(h, frame)
		sink.n, sink.err = int(f.Size), err
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	for _, size := range []int{0, 64, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			buf := make([]byte, 0, MaxRecord)
			m := Message{Target: Ref{Slot: 300}, Sender: Ref{Slot: 2}, Type: Ref{Slot: 3}, Payload: make([]byte, size)}
			b.ReportAllocs()
			for b.Loop() {
				sink.n += len(AppendMessage(buf, &m))
			}
		})
	}
}

func BenchmarkNextRecord(b *testing.B) {
	for name, m := range map[string]*Message{
		"slots": {Target: Ref{Slot: 300}, Sender: Ref{Slot: 2}, Type: Ref{Slot: 3}, Payload: make([]byte, 64)},
		"inline": {
			Target: Ref{Name: "printer"}, Sender: Ref{Name: "10.0.0.1:7400/$1a"},
			Type: Ref{Name: "pkg.Type"}, Payload: make([]byte, 64),
		},
	} {
		b.Run(name, func(b *testing.B) {
			record := AppendMessage(nil, m)
			b.ReportAllocs()
			for b.Loop() {
				rec, n, err := NextRecord(record)
				sink.n, sink.err = n+len(rec.Payload), err
			}
		})
	}
}

func BenchmarkAck(b *testing.B) {
	for _, n := range []int{0, 16} {
		buf := make([]byte, 0, 4096)
		f := Ack{Count: 100, Refusals: refusals(n)}
		frame := f.Append(nil)
		b.Run(fmt.Sprintf("append/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink.n += len(f.Append(buf))
			}
		})
		b.Run(fmt.Sprintf("parse/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h, _ := ParseHeader(frame)
				got, err := ParseAck(h, frame, frame[HeaderSize:])
				sink.n, sink.err = got.Refusals.Len(), err
			}
		})
	}
}

func BenchmarkBeat(b *testing.B) {
	buf := make([]byte, 0, HeaderSize)
	b.ReportAllocs()
	for b.Loop() {
		frame := (&Beat{Seq: 1, Echo: 2, Held: 3, Seen: 4}).Append(buf)
		h, _ := ParseHeader(frame)
		f, err := ParseBeat(h, frame)
		sink.n, sink.err = int(f.Seq), err
	}
}

func BenchmarkBulkPieces(b *testing.B) {
	buf := make([]byte, 0, HeaderSize)
	b.Run("MessageChunk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			frame := (&MessageChunk{ID: 1, Total: 1 << 20, Size: 1 << 20}).Append(buf)
			h, _ := ParseHeader(frame)
			f, err := ParseMessageChunk(h, frame)
			sink.n, sink.err = int(f.Size), err
		}
	})
	b.Run("GetData", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			frame := (&GetData{Op: 1, Total: 1 << 20, Size: 1 << 20}).Append(buf)
			h, _ := ParseHeader(frame)
			f, err := ParseGetData(h, frame)
			sink.n, sink.err = int(f.Size), err
		}
	})
}
