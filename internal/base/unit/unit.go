// Package unit parses and formats quantities with units: "40ms", "100mbit", "4GiB", "1%". It rejects a number without a
// unit where the unit is ambiguous.
//
// The types are for files and flags: they implement encoding.TextUnmarshaler and TextMarshaler. The Parse functions
// return the plain types that the rest of the program computes with.
package unit

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Errors of the Parse functions. They are wrapped with the input.
var (
	// ErrSyntax: not a number followed by a unit.
	ErrSyntax = errors.New("not a quantity")
	// ErrUnit: the unit is missing or is not one of this quantity.
	ErrUnit = errors.New("wrong unit")
	// ErrRange: negative, not finite, or too large.
	ErrRange = errors.New("out of range")
)

// Duration is a non-negative time span: "40ms", "1m30s", "0s".
type Duration time.Duration

// Bandwidth in bit/s with decimal prefixes: "100mbit", "1.5gbit"; 0 is "unlimited".
type Bandwidth int64

// Bytes is an amount of memory or data: "4GiB" is 2^32, "4GB" is 4*10^9.
type Bytes int64

// Fraction is from 0 to 1: "1%" or "0.01".
type Fraction float64

// ErrNoBandwidth is returned for a bandwidth of 0.
var ErrNoBandwidth = fmt.Errorf("%w: a bandwidth of 0 carries nothing "+
	"(write unlimited for no limit, or a loss of 100%% for a link that carries nothing)", ErrRange)

var (
	_ encoding.TextUnmarshaler = (*Duration)(nil)
	_ encoding.TextUnmarshaler = (*Bandwidth)(nil)
	_ encoding.TextUnmarshaler = (*Bytes)(nil)
	_ encoding.TextUnmarshaler = (*Fraction)(nil)
)

// minutes matches the unit "min", which time.ParseDuration does not accept.
var minutes = regexp.MustCompile(`min(\d|$)`)

// ParseDuration parses a time span with a unit: ns, us, ms, s, m or min, h.
func ParseDuration(s string) (time.Duration, error) {
	const example = "40ms, 2s or 1m30s"
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if n == 0 {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: %q has no unit (write %sms or %ss)", ErrUnit, s, s, s)
	}
	d, err := time.ParseDuration(minutes.ReplaceAllString(strings.ReplaceAll(s, " ", ""), "m$1"))
	if err != nil {
		return 0, fmt.Errorf("%w: invalid duration %q (write %s)", ErrSyntax, s, example)
	}
	if d < 0 {
		return 0, fmt.Errorf("%w: the duration %q is negative", ErrRange, s)
	}
	return d, nil
}

// ParseBandwidth parses bits per second: bit, kbit, mbit, gbit, tbit in any case, with or without "/s". "unlimited" is 0.
// A bandwidth of 0 is an error: such a link is down.
func ParseBandwidth(s string) (int64, error) {
	const example = "500kbit, 100mbit or 1gbit"
	s = strings.TrimSpace(s)
	if strings.EqualFold(s, "unlimited") {
		return 0, nil
	}
	n, u, err := splitUnit(s, "bandwidth", example)
	if err != nil {
		return 0, err
	}
	scales := map[string]float64{"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
	scale, ok := scales[strings.TrimSuffix(strings.ToLower(u), "/s")]
	switch {
	case !ok && strings.HasSuffix(strings.ToLower(u), "bps"):
		return 0, fmt.Errorf("%w: %q may mean bits or bytes (tc reads bytes); write %s", ErrUnit, s, example)
	case !ok:
		return 0, unknownUnit(s, u, "bandwidth", example)
	case n == 0:
		return 0, ErrNoBandwidth
	}
	v, err := roundToInt(n*scale, s)
	if err == nil && v == 0 {
		err = fmt.Errorf("%w: the bandwidth %q is less than one bit per second", ErrRange, s)
	}
	return v, err
}

// ParseBytes parses an amount of bytes: B, kB, MB, GB, TB are powers of 1000, KiB, MiB,
// GiB, TiB powers of 1024.
func ParseBytes(s string) (int64, error) {
	const example = "64KiB, 512MiB or 4GiB"
	n, u, err := splitUnit(strings.TrimSpace(s), "size", example)
	if err != nil {
		return 0, err
	}
	for _, x := range byteUnits {
		if strings.EqualFold(u, x.name) {
			return roundToInt(n*float64(x.size), s)
		}
	}
	return 0, unknownUnit(s, u, "size", example)
}

// ParseFraction parses a share of one as a percentage ("1%") or a number ("0.01").
func ParseFraction(s string) (float64, error) {
	t, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
	if err != nil {
		return 0, fmt.Errorf("%w: invalid share %q (write 1%% or 0.01)", ErrSyntax, s)
	}
	if percent {
		f /= 100
	}
	if !(f >= 0 && f <= 1) { // NaN too
		if f > 1 && f <= 100 && !percent {
			return 0, fmt.Errorf("%w: the share %q is above 1 (for percent write %s%%)", ErrRange, s, t)
		}
		return 0, fmt.Errorf("%w: the share %q is not between 0 and 1 (0%% and 100%%)", ErrRange, s)
	}
	return f, nil
}

// splitUnit splits "1.5gbit" into 1.5 and "gbit".
func splitUnit(s, what, example string) (float64, string, error) {
	i := strings.LastIndexAny(s, "0123456789.") + 1
	n, err := strconv.ParseFloat(strings.TrimSpace(s[:i]), 64)
	u := strings.TrimSpace(s[i:])
	switch {
	case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
		return 0, "", fmt.Errorf("%w: invalid %s %q (write %s)", ErrSyntax, what, s, example)
	case n < 0:
		return 0, "", fmt.Errorf("%w: the %s %q is negative", ErrRange, what, s)
	case u == "" && n != 0:
		return 0, "", fmt.Errorf("%w: %q has no unit (write %s)", ErrUnit, s, example)
	case u == "":
		u = "B"
		if what == "bandwidth" {
			u = "bit"
		}
	}
	return n, u, nil
}

func roundToInt(f float64, s string) (int64, error) {
	if f >= math.MaxInt64 {
		return 0, fmt.Errorf("%w: %q is too large", ErrRange, s)
	}
	return int64(math.Round(f)), nil
}

func unknownUnit(s, u, what, example string) error {
	return fmt.Errorf("%w: %q: unknown unit %q of %s (write %s)", ErrUnit, s, u, what, example)
}

var byteUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

var bitUnits = []struct {
	name string
	size int64
}{{"tbit", 1e12}, {"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// String returns a text that ParseDuration accepts: "1m" instead of the "1m0s" of time.Duration, and "us" for microseconds.
func (d Duration) String() string {
	s := strings.Replace(time.Duration(d).String(), "µs", "us", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// String returns a text that ParseBandwidth accepts, "unlimited" for 0.
func (b Bandwidth) String() string {
	if b == 0 {
		return "unlimited"
	}
	for _, u := range bitUnits {
		if n := int64(b); n >= u.size {
			if exact := formatDecimal(n, u.size); exact != "" {
				return exact + u.name
			}
		}
	}
	return strconv.FormatInt(int64(b), 10) + "bit"
}

// String returns a text that ParseBytes accepts, in the largest exact unit.
func (b Bytes) String() string {
	if b == 0 {
		return "0B"
	}
	for _, u := range byteUnits {
		if int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// String returns a percentage.
func (f Fraction) String() string {
	return strconv.FormatFloat(float64(f)*100, 'g', 12, 64) + "%"
}

// formatDecimal formats n/size with at most three decimals. It returns "" if that would round.
func formatDecimal(n, size int64) string {
	if size >= 1000 && n%(size/1000) != 0 {
		return ""
	}
	return strconv.FormatFloat(float64(n)/float64(size), 'f', -1, 64)
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (b Bandwidth) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (f Fraction) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err == nil {
		*d = Duration(v)
	}
	return err
}

func (b *Bandwidth) UnmarshalText(text []byte) error {
	v, err := ParseBandwidth(string(text))
	if err == nil {
		*b = Bandwidth(v)
	}
	return err
}

func (b *Bytes) UnmarshalText(text []byte) error {
	v, err := ParseBytes(string(text))
	if err == nil {
		*b = Bytes(v)
	}
	return err
}

func (f *Fraction) UnmarshalText(text []byte) error {
	v, err := ParseFraction(string(text))
	if err == nil {
		*f = Fraction(v)
	}
	return err
}

func (d Duration) Duration() time.Duration { return time.Duration(d) }
