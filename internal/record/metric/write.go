package metric

import (
	"math"
	"strconv"
)

// Write writes a figure as people write its unit: "250 ms", "99.95 %", "1,234 ops/s" without
// the separators.
func (u Unit) Write(v float64) string {
	switch u {
	case Time:
		switch a := math.Abs(v); {
		case v == 0:
			return "0 s"
		case a < 1e-3:
			return digits(v*1e6) + " us"
		case a < 1:
			return digits(v*1e3) + " ms"
		}
		return digits(v) + " s"
	case Share:
		return strconv.FormatFloat(v*100, 'g', 6, 64) + " %"
	case Bytes:
		for _, s := range []struct {
			size float64
			name string
		}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
			if math.Abs(v) >= s.size {
				return digits(v/s.size) + " " + s.name
			}
		}
		return digits(v) + " B"
	case Rate:
		return digits(v) + " ops/s"
	case Cores:
		return digits(v) + " cores"
	}
	return digits(v)
}

// digits writes four digits that count; whole numbers have all of theirs.
func digits(v float64) string {
	if math.Abs(v) >= 1000 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
