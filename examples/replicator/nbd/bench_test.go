package nbd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkWrites has so many writes of 4 KiB in flight, over a socket, to memory.
func BenchmarkWrites(b *testing.B) {
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			_, address := serving(b, Config{Exports: []Export{{Device: NewMemory(64 << 20)}}})
			c := connected(b, address, false)
			message := append(requestBytes(request{command: cmdWrite, length: 4096}), make([]byte, 4096)...)
			b.ReportAllocs()
			b.SetBytes(4096)
			send := func(i uint64) {
				order.PutUint64(message[16:], i*0x9e3779b97f4a7c15>>38&^4095) // scattered over the device
				_, err := c.conn.Write(message)
				require.NoError(b, err)
			}
			for i := range depth {
				send(uint64(i))
			}
			for i := uint64(0); b.Loop(); i++ {
				c.reply(0)
				send(i)
			}
			for range depth {
				c.reply(0)
			}
		})
	}
}
