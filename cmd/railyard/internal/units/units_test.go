package units

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"8": 8, "8B": 8, "1kB": 1000, "64KiB": 65536, "4MiB": 4 << 20, "1.5MiB": 3 << 19, "2GiB": 2 << 30,
	} {
		got, err := Size(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-4", "4 MiB", "4XiB", "0", "1.5", "1e9", "1..2", "99999999GiB", "NaN", "Inf"} {
		_, err := Size(text)
		assert.ErrorIs(t, err, ErrUnit, text)
	}
}

func TestRate(t *testing.T) {
	got, err := Rate("10MB/s")
	require.NoError(t, err)
	assert.InDelta(t, 1e7, got, 0)
	for _, text := range []string{"10MB", "/s", "0/s", "x/s", "10MB/sec"} {
		_, err := Rate(text)
		assert.ErrorIs(t, err, ErrUnit, text)
	}
}

func TestWriting(t *testing.T) {
	for n, want := range map[int64]string{5: "5B", 1024: "1KiB", 1025: "1025B", 4 << 20: "4MiB", 1 << 30: "1GiB"} {
		assert.Equal(t, want, Bytes(n))
	}
	assert.InDelta(t, 1.5, Millis(1534*time.Microsecond), 1e-9)
	assert.InDelta(t, 1.2, Mega(1234567), 1e-9)
}
