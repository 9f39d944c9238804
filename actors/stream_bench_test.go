package actors

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"railyard/rma"
)

// BenchmarkStream is bulk through a stream, beside puts and a plain TCP connection: both ends in one process.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{32 << 10, 256 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("stream/%d", size), func(b *testing.B) {
			from, to := node(b), node(b)
			w, r := openStream(b, from, to)
			copyLoop(b, w, r, size)
		})
		b.Run(fmt.Sprintf("tcp/%d", size), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			got := make(chan net.Conn)
			go func() {
				c, err := l.Accept()
				if err != nil {
					panic(err)
				}
				got <- c
			}()
			w, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			copyLoop(b, w, <-got, size)
			_ = l.Close()
		})
	}
	b.Run("put/4194304", func(b *testing.B) {
		from, to := node(b), node(b)
		e, err := from.Connect(testContext(b), to.Address())
		if err != nil {
			b.Fatal(err)
		}
		region, err := to.Register(make([]byte, 16<<20), rma.RemoteWrite)
		if err != nil {
			b.Fatal(err)
		}
		data := make([]byte, 4<<20)
		b.SetBytes(int64(len(data)))
		var under []*rma.Op
		for b.Loop() {
			under = append(under, e.StartPut(region.Key(), uint64(len(under)%4)<<22, data))
			if len(under) == 4 {
				<-under[0].Done()
				under = under[1:]
			}
		}
		for _, op := range under {
			<-op.Done()
		}
	})
}

func copyLoop(b *testing.B, w, r net.Conn, size int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1<<20)
		for {
			if _, err := r.Read(buf); err != nil {
				if !errors.Is(err, io.EOF) {
					panic(err)
				}
				return
			}
		}
	}()
	data := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	<-done
	_ = r.Close()
}
