package actors

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	const limit = 100
	c := newCache[string, int](limit)
	c.put("used", -1)
	for i := range 100 * limit {
		require.Equal(t, i, c.put(strconv.Itoa(i), i))
		v, ok := c.get("used")
		require.True(t, ok, "after %d", i)
		require.Equal(t, -1, v)
	}
	held := 0
	for i := range 100 * limit {
		if _, ok := c.young.Load().values.Load(strconv.Itoa(i)); ok {
			held++
		}
		if _, ok := c.old.Load().values.Load(strconv.Itoa(i)); ok {
			held++
		}
	}
	require.LessOrEqual(t, held, 2*limit)
	require.Equal(t, -1, c.put("used", 7), "the first value stays")
}

func TestCacheUnderManyGoroutines(t *testing.T) {
	c := newCache[int, int](64)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 5000 {
				k := (i * (g + 1)) % 300
				if v, ok := c.get(k); ok && v != k {
					t.Errorf("%d holds %d", k, v)
				}
				c.put(k, k)
			}
		})
	}
	all.Wait()
}

func BenchmarkCacheHit(b *testing.B) {
	c := newCache[string, int](64)
	c.put("a name of usual length", 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.get("a name of usual length"); !ok {
			b.Fatal("lost")
		}
	}
}
