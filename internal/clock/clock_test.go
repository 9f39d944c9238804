package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestClockAndStamps(t *testing.T) {
	before := Now()
	at := time.Now()
	after := Now()
	assert.LessOrEqual(t, before, after)
	stamp := Stamp(at)
	assert.InDelta(t, float64(before), float64(stamp), float64(5*time.Second))
	assert.Less(t, Stamp(at.Add(-time.Minute)), before)
}
