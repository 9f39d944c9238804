package actors

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// BenchmarkSend is one-way messages through two nodes of one process: both ends' work together.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 32 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			from, to := node(b), node(b)
			want := make(chan int, 1)
			got, target := 0, -1
			done := make(chan struct{}, 1)
			_, err := to.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.BytesValue); !ok {
					return
				}
				got++
				select {
				case target = <-want:
				default:
				}
				if got == target {
					done <- struct{}{}
				}
			}), "sink")
			if err != nil {
				b.Fatal(err)
			}
			m := wrapperspb.Bytes(make([]byte, size))
			pid := to.at("sink")
			from.sys.Root.Send(pid, m)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			sent := 1
			for b.Loop() {
				from.sys.Root.Send(pid, m)
				sent++
			}
			want <- sent + 1
			from.sys.Root.Send(pid, m)
			<-done
		})
	}
}

// BenchmarkRequest is one future at a time.
func BenchmarkRequest(b *testing.B) {
	from, to := node(b), node(b)
	to.echo(b, "echo")
	pid := to.at("echo")
	m := wrapperspb.Bytes(make([]byte, 64))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := from.sys.Root.RequestFuture(pid, m, patience).Result(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPrepare is what the sender itself does for each message before the session.
func BenchmarkPrepare(b *testing.B) {
	from, to := node(b), node(b)
	p := from.peer(to.Address()).process("x")
	l := letterOf(&actor.MessageEnvelope{Message: wrapperspb.Bytes(make([]byte, 64)), Sender: from.at("me")})
	b.ReportAllocs()
	for b.Loop() {
		o := takeOutgoing()
		if err := p.prepare(o, l); err != nil {
			b.Fatal(err)
		}
		o.free()
	}
}
