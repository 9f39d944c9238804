package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkDurableWrites are writes of 4 KiB at random places, each durable before the next of the same writer.
func BenchmarkDurableWrites(b *testing.B) {
	const size = 256 << 20
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := open(b, Config{Disk: Dir(b.TempDir()), Size: size})
			defer s.Close()
			var mu sync.Mutex
			sequence := uint64(0)
			data := content(Block, 1)
			write := func() error {
				mu.Lock()
				sequence++
				at := int64(sequence*0x9e3779b97f4a7c15>>20) % (size / Block) * Block
				mark, err := s.AppendMemory(b.Context(), record(sequence, at, data))
				mu.Unlock()
				if err != nil {
					return err
				}
				return s.Wait(b.Context(), mark)
			}
			b.SetBytes(Block)
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := w; i < b.N; i += writers {
						if err := write(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			require.EqualValues(b, b.N, sequence)
		})
	}
}
