// Package units reads and writes sizes, rates and times the way people write them in flags and
// scripts. It is pure: the same text gives the same number.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrUnit is wrapped by every error of this package.
var ErrUnit = errors.New("not a quantity")

// factors maps a suffix to its number of bytes. Decimal and binary prefixes mean what they say:
// 1 MB is 10^6 bytes, 1 MiB is 2^20.
var factors = map[string]float64{
	"": 1, "B": 1,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// Size reads a number of bytes such as "8", "64KiB" or "4MiB". At least 1 byte, below 2^53.
func Size(text string) (int64, error) {
	v, err := quantity(text)
	if err != nil {
		return 0, err
	}
	if v < 1 || v >= 1<<53 || v != math.Trunc(v) {
		return 0, fmt.Errorf("%w: size %q must be a whole number of bytes from 1 on", ErrUnit, text)
	}
	return int64(v), nil
}

// Rate reads bytes per second such as "10MB/s".
func Rate(text string) (float64, error) {
	amount, ok := strings.CutSuffix(text, "/s")
	if !ok {
		return 0, fmt.Errorf("%w: rate %q must end in /s, as 10MB/s does", ErrUnit, text)
	}
	v, err := quantity(amount)
	if err != nil {
		return 0, err
	}
	if v < 1 || v > 1e15 {
		return 0, fmt.Errorf("%w: rate %q must be at least 1B/s", ErrUnit, text)
	}
	return v, nil
}

func quantity(text string) (float64, error) {
	cut := len(text)
	for cut > 0 && !isDigit(text[cut-1]) {
		cut--
	}
	number, suffix := text[:cut], text[cut:]
	factor, known := factors[suffix]
	if number == "" || !known {
		return 0, fmt.Errorf("%w: %q must be a number with B, kB, MB, GB, KiB, MiB or GiB", ErrUnit, text)
	}
	for i := range len(number) {
		if !isDigit(number[i]) && number[i] != '.' {
			return 0, fmt.Errorf("%w: %q in %q is not a plain number", ErrUnit, number, text)
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q in %q cannot be read", ErrUnit, number, text)
	}
	return v * factor, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Bytes writes a number of bytes in the largest binary unit that keeps it short.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}

// Millis gives a duration in milliseconds, rounded to a tenth.
func Millis(d time.Duration) float64 {
	return math.Round(float64(d)/1e5) / 10
}

// Mega gives n in millions, rounded to a tenth.
func Mega(n float64) float64 { return math.Round(n/1e5) / 10 }
