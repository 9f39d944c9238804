//go:build !linux || !amd64 || noverbs

package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAvailableSaysWhy(t *testing.T) { require.ErrorIs(t, Available(), ErrNotBuilt) }
