package unit

import (
	"strconv"
	"strings"
	"time"
)

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

// String is a text that ParseDuration reads back, without the zeros of
// time.Duration ("1m" where that writes "1m0s") and with "us" for microseconds.
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

// String is a text that ParseBandwidth reads back, "unlimited" for 0.
func (b Bandwidth) String() string {
	if b == 0 {
		return "unlimited"
	}
	for _, u := range bitUnits {
		if n := int64(b); n >= u.size {
			if exact := decimal(n, u.size); exact != "" {
				return exact + u.name
			}
		}
	}
	return strconv.FormatInt(int64(b), 10) + "bit"
}

// String is a text that ParseBytes reads back, in the largest unit that is exact.
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

// String is a percentage.
func (f Fraction) String() string {
	return strconv.FormatFloat(float64(f)*100, 'g', 12, 64) + "%"
}

// decimal writes n/size with at most three decimals, "" when that would round.
func decimal(n, size int64) string {
	if size >= 1000 && n%(size/1000) != 0 {
		return ""
	}
	return strconv.FormatFloat(float64(n)/float64(size), 'f', -1, 64)
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (b Bandwidth) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (f Fraction) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err == nil {
		*d = Duration(v)
	}
	return err
}

// UnmarshalText implements encoding.TextUnmarshaler with ParseBandwidth.
func (b *Bandwidth) UnmarshalText(text []byte) error {
	v, err := ParseBandwidth(string(text))
	if err == nil {
		*b = Bandwidth(v)
	}
	return err
}

// UnmarshalText implements encoding.TextUnmarshaler with ParseBytes.
func (b *Bytes) UnmarshalText(text []byte) error {
	v, err := ParseBytes(string(text))
	if err == nil {
		*b = Bytes(v)
	}
	return err
}

// UnmarshalText implements encoding.TextUnmarshaler with ParseFraction.
func (f *Fraction) UnmarshalText(text []byte) error {
	v, err := ParseFraction(string(text))
	if err == nil {
		*f = Fraction(v)
	}
	return err
}

// Duration is d as the standard library's type.
func (d Duration) Duration() time.Duration { return time.Duration(d) }
