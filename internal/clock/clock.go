// Package clock gives a time that two processes of one host agree about, and that nobody sets.
package clock

import "time"

// Stamp puts a time that this process took on the shared clock.
func Stamp(t time.Time) time.Duration { return Now() - time.Since(t) }
