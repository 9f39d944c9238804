package session

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

// seeded is a source of tokens that is the same in every run.
type seeded struct{ *rand.Rand }

func (e seeded) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e.Uint32())
	}
	return len(b), nil
}

func newTable() *rma.Table { return rma.NewTable(seeded{rand.New(rand.NewPCG(1, 2))}, 0) }

// two is both ends of a session on one lane whose wire is a copy in memory. Nothing in it allocates once it runs.
type two struct {
	tb      testing.TB
	now     time.Duration
	s       [2]*Session
	g       [2]*Generation
	plan    rma.Gather
	scatter rma.Scatter
	wire    []byte
	effects []Effect
	done    int
}

func newTwo(tb testing.TB, regions *rma.Table) *two {
	tb.Helper()
	p := &two{tb: tb, now: time.Second}
	for i, table := range []*rma.Table{newTable(), regions} {
		s, err := New(Config{Opener: i == 0}, table)
		require.NoError(tb, err)
		p.s[i] = s
		p.g[i] = s.Lane(0).Attach(p.now, 3, nil)
	}
	p.settle()
	return p
}

// settle carries out effects and moves bytes until nothing is left to do.
func (p *two) settle() {
	for moved := true; moved; {
		moved = false
		for i := range p.s {
			p.carryOut(i)
			moved = p.move(i) || moved
			p.carryOut(1 - i)
		}
	}
}

func (p *two) carryOut(i int) {
	p.effects = p.s[i].Effects(p.effects)
	for k := range p.effects {
		switch fx := &p.effects[k]; fx.Kind {
		case Offered:
			p.s[i].Accept(p.now, fx.Gen, fx.Op)
		case Completed:
			p.done++
		default:
		}
	}
}

// move carries one plan of side i over.
func (p *two) move(i int) bool {
	p.now += time.Microsecond
	if !p.g[i].token || !p.g[i].Fill(p.now, &p.plan) {
		return false
	}
	p.wire = p.wire[:0]
	for _, b := range p.plan.Bufs {
		p.wire = append(p.wire, b...)
	}
	if err := p.g[i].Wrote(p.now, &p.plan, len(p.wire)); err != nil {
		p.tb.Fatal(err)
	}
	to := p.g[1-i]
	for at := 0; at < len(p.wire); {
		if err := to.Want(p.now, &p.scatter); err != nil {
			p.tb.Fatal(err)
		}
		n := copy(p.scatter.First, p.wire[at:])
		n += copy(p.scatter.Then, p.wire[at+n:])
		at += n
		ds, err := to.Got(p.now, &p.scatter, n)
		for err == nil && len(ds) > 0 {
			for k := range ds {
				p.s[1-i].Consumed(p.now, ds[k].Cost)
			}
			ds, err = to.Delivered(p.now)
		}
		if err != nil {
			p.tb.Fatal(err)
		}
	}
	return true
}

// BenchmarkPut is a put of that many bytes, from Start to its completion, both ends and the copies included.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		b.Run(byteCount(size), func(b *testing.B) {
			regions := newTable()
			region, err := regions.Register(make([]byte, size), rma.RemoteWrite)
			require.NoError(b, err)
			p, data, key := newTwo(b, regions), make([]byte, size), region.Key()
			ops := make([]Op, 16)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for i := range ops {
					ops[i] = Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: data}
					p.s[0].Start(p.now, &ops[i])
				}
				p.settle()
			}
			require.NotZero(b, p.done)
		})
	}
}

// BenchmarkMessages is 64 messages of 64 bytes in one go.
func BenchmarkMessages(b *testing.B) {
	p := newTwo(b, newTable())
	m := Message{Target: p.s[0].Intern("target"), Type: p.s[0].Intern("type"), Payload: make([]byte, 64)}
	b.ReportAllocs()
	for b.Loop() {
		for range 64 {
			if err := p.s[0].Send(p.now, &m); err != nil {
				b.Fatal(err)
			}
		}
		p.settle()
	}
}

// BenchmarkFill is the writer's half alone: one plan of chunks, taken as a whole.
func BenchmarkFill(b *testing.B) {
	p := newTwo(b, newTable())
	g := p.g[0]
	data := make([]byte, 1<<20)
	ack := wire.Ack{}
	b.ReportAllocs()
	for b.Loop() {
		op := &Op{Kind: Put, Region: 1, Data: data}
		p.s[0].Start(p.now, op)
		p.carryOut(0)
		for g.Fill(p.now, &p.plan) {
			if err := g.Wrote(p.now, &p.plan, p.plan.Size()); err != nil {
				b.Fatal(err)
			}
		}
		p.now += time.Millisecond
		ack.Count = g.sent
		if err := g.ackIn(ack); err != nil {
			b.Fatal(err)
		}
		p.carryOut(0)
	}
}

func byteCount(n int) string {
	switch {
	case n >= 1<<20:
		return "1MiB"
	case n >= 1<<10:
		return "64KiB"
	default:
		return "64B"
	}
}
