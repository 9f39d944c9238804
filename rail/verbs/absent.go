//go:build !linux || !amd64 || noverbs

package verbs

// Available gives ErrNotBuilt.
func Available() error { return ErrNotBuilt }
