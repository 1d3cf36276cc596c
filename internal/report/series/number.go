package series

import (
	"math"
	"strconv"
)

const (
	// Significant digits in JSON. A chart's legend shows three.
	digits       = 5
	seriesDigits = 4
)

// Number is written to JSON with few digits, NaN and infinity as null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n), digits), nil }

// Values is a list of numbers.
type Values []float64

// MarshalJSON writes a list, never null.
func (s Values) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 6*len(s)+2), '[')
	for i, v := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, v, seriesDigits)
	}
	return append(b, ']'), nil
}

// Moments are whole seconds, written with all digits.
type Moments []float64

// MarshalJSON writes a list, never null.
func (m Moments) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 6*len(m)+2), '[')
	for i, v := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return append(b, ']'), nil
}

func appendNumber(b []byte, v float64, digits int) []byte {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case v == math.Trunc(v) && math.Abs(v) < math.Pow10(digits):
		return strconv.AppendInt(b, int64(v), 10)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		rounded = v
	}
	if a := math.Abs(rounded); a >= math.Pow10(digits) && a < 1e15 {
		return strconv.AppendInt(b, int64(rounded), 10)
	}
	return strconv.AppendFloat(b, rounded, 'g', -1, 64)
}
