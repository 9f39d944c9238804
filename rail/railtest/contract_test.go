package railtest_test

import (
	"testing"

	"railyard/rail/railtest"
)

func TestContract(t *testing.T) {
	railtest.Contract(t, func(*testing.T) railtest.Fixture {
		return railtest.Fixture{
			Kind:    railtest.NewNetwork().Kind(),
			Bind:    "b:0",
			Local:   "a:1",
			Nowhere: "b:9",
		}
	})
}

// A small buffer makes every write meet a full network.
func TestContractSmallBuffer(t *testing.T) {
	railtest.Contract(t, func(*testing.T) railtest.Fixture {
		return railtest.Fixture{
			Kind:    railtest.NewNetwork(railtest.Buffer(50_000)).Kind(),
			Bind:    "b:0",
			Local:   "a:1",
			Nowhere: "b:9",
		}
	})
}
