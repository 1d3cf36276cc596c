package unit

import (
	"errors"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	duration := func(s string) (float64, error) { d, err := ParseDuration(s); return d.Seconds(), err }
	bandwidth := func(s string) (float64, error) { n, err := ParseBandwidth(s); return float64(n), err }
	bytes := func(s string) (float64, error) { n, err := ParseBytes(s); return float64(n), err }
	tests := []struct {
		name  string
		parse func(string) (float64, error)
		text  string
		want  float64
		err   error
	}{
		{"duration", duration, "40ms", 0.04, nil},
		{"duration", duration, "1m30s", 90, nil},
		{"duration", duration, " 2 s ", 2, nil},
		{"duration", duration, "0", 0, nil},
		{"duration", duration, "40", 0, ErrUnit},
		{"duration", duration, "40min", 2400, nil},
		{"duration", duration, "1h30min", 5400, nil},
		{"duration", duration, "40mins", 0, ErrSyntax},
		{"duration", duration, "", 0, ErrSyntax},
		{"duration", duration, "-1ms", 0, ErrRange},
		{"bandwidth", bandwidth, "100mbit", 1e8, nil},
		{"bandwidth", bandwidth, "1.5 Gbit/s", 1.5e9, nil},
		{"bandwidth", bandwidth, "64kbit", 64e3, nil},
		{"bandwidth", bandwidth, "unlimited", 0, nil},
		{"bandwidth", bandwidth, "0", 0, ErrRange},
		{"bandwidth", bandwidth, "0mbit", 0, ErrRange},
		{"bandwidth", bandwidth, "0.1bit", 0, ErrRange},
		{"bandwidth", bandwidth, "-5mbit", 0, ErrRange},
		{"bandwidth", bandwidth, "100", 0, ErrUnit},
		{"bandwidth", bandwidth, "100mbps", 0, ErrUnit},
		{"bandwidth", bandwidth, "100MB", 0, ErrUnit},
		{"bandwidth", bandwidth, "fast", 0, ErrSyntax},
		{"bandwidth", bandwidth, "1e30gbit", 0, ErrRange},
		{"bytes", bytes, "4GiB", 1 << 32, nil},
		{"bytes", bytes, "4 gib", 1 << 32, nil},
		{"bytes", bytes, "1.5kB", 1500, nil},
		{"bytes", bytes, "0", 0, nil},
		{"bytes", bytes, "4G", 0, ErrUnit},
		{"bytes", bytes, "4", 0, ErrUnit},
		{"bytes", bytes, "-4GiB", 0, ErrRange},
		{"bytes", bytes, "GiB", 0, ErrSyntax},
		{"fraction", ParseFraction, "1%", 0.01, nil},
		{"fraction", ParseFraction, "0.01", 0.01, nil},
		{"fraction", ParseFraction, "100 %", 1, nil},
		{"fraction", ParseFraction, "5", 0, ErrRange},
		{"fraction", ParseFraction, "101%", 0, ErrRange},
		{"fraction", ParseFraction, "-1%", 0, ErrRange},
		{"fraction", ParseFraction, "NaN", 0, ErrRange},
		{"fraction", ParseFraction, "few", 0, ErrSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.text, func(t *testing.T) {
			got, err := tt.parse(tt.text)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err == nil && got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestString(t *testing.T) {
	tests := []struct {
		v    interface{ String() string }
		want string
	}{
		{Duration(0), "0s"}, {Duration(40 * time.Millisecond), "40ms"}, {Duration(2 * time.Minute), "2m"},
		{Duration(time.Hour), "1h"}, {Duration(90 * time.Second), "1m30s"}, {Duration(time.Hour + time.Second), "1h0m1s"},
		{Duration(10 * time.Minute), "10m"}, {Duration(10 * time.Hour), "10h"},
		{Bandwidth(0), "unlimited"}, {Bandwidth(1e8), "100mbit"}, {Bandwidth(15e8), "1.5gbit"}, {Bandwidth(1234567), "1234.567kbit"}, {Bandwidth(7), "7bit"},
		{Bytes(0), "0B"}, {Bytes(1 << 32), "4GiB"}, {Bytes(1500), "1500B"}, {Bytes(5e6), "5MB"},
		{Fraction(0.05), "5%"}, {Fraction(0.0035), "0.35%"}, {Fraction(1), "100%"},
	}
	for _, tt := range tests {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("%#v: got %q, want %q", tt.v, got, tt.want)
		}
	}
}

// Formatting a parsed quantity gives a text that parses to the same quantity.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"40ms", "1h0m1s", "100mbit", "1.5gbit", "4GiB", "1500B", "1%", "0.33", "unlimited"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, d2 Duration
		if d.UnmarshalText([]byte(s)) == nil {
			if err := d2.UnmarshalText([]byte(d.String())); err != nil || d != d2 {
				t.Errorf("duration %q: %v then %v: %v", s, d, d2, err)
			}
		}
		var w, w2 Bandwidth
		if w.UnmarshalText([]byte(s)) == nil {
			if err := w2.UnmarshalText([]byte(w.String())); err != nil || w != w2 && w < 1<<53 {
				t.Errorf("bandwidth %q: %v then %v: %v", s, w, w2, err)
			}
		}
		var b, b2 Bytes
		if b.UnmarshalText([]byte(s)) == nil {
			if err := b2.UnmarshalText([]byte(b.String())); err != nil || b != b2 && b < 1<<53 {
				t.Errorf("bytes %q: %v then %v: %v", s, b, b2, err)
			}
		}
	})
}
