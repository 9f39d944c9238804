package load

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAPaceOfNothingRests(t *testing.T) {
	s := &Side{config: Config{Putters: 4}, pace: Pace{1, 4e6}}
	perByte, ok := s.interval(t.Context())
	assert.True(t, ok)
	assert.InDelta(t, float64(time.Second)/1e6, perByte, 1e-6)
	s.SetPace(Pace{-5, -1})
	assert.Equal(t, Pace{}, s.Pace(), "less than nothing is nothing")
	ctx, cancel := context.WithTimeout(t.Context(), 3*restNap)
	defer cancel()
	_, ok = s.interval(ctx)
	assert.False(t, ok, "it waits until it is to end")
	begun := make(chan bool)
	go func() {
		_, ok := s.interval(t.Context())
		begun <- ok
	}()
	s.SetPace(Pace{0, 1})
	assert.True(t, <-begun, "it goes on with the next pace")
}
