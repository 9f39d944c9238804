package demo

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asSecond makes this binary node b.
const asSecond = "as-second"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asSecond {
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestPortsThatWereTakenMeanwhileAreLookedForAgain(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	looked := 0
	find := func(times int) func(int) ([]string, error) {
		return func(n int) ([]string, error) {
			ports, err := freePorts(n)
			if looked++; looked <= times {
				ports[n-1] = taken.Addr().String()
			}
			return ports, err
		}
	}
	begin := func(times int) (*run, error) {
		r := &run{options: Options{Rails: 2, Second: []string{asSecond}, Err: os.Stderr}}
		near := setup{Name: "a", OtherName: "b", Secret: make([]byte, 32), Pairs: 1, Outage: outageLimit}
		far := near
		return r, r.second(t.Context(), &near, &far, find(times))
	}
	r, err := begin(2)
	require.NoError(t, err)
	assert.Equal(t, 3, looked)
	assert.Len(t, r.cables, 2)
	assert.NotContains(t, r.targets, taken.Addr().String())
	require.NoError(t, r.close())

	looked = 0
	r, err = begin(lays)
	assert.ErrorContains(t, err, "in use")
	assert.Equal(t, lays, looked, "and no more")
	require.NoError(t, r.close())
}
