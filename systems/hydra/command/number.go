package command

import (
	"bytes"
	"math"
	"strconv"
)

// isNumber tells whether a JSON value is a number.
func isNumber(v []byte) bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

// decimal is a JSON number, exactly: 0.DIGITS times 10 to the power of exponent. Zero has no digits.
type decimal struct {
	negative bool
	digits   []byte // without zeros at either end
	exponent int64
}

// maxExponent is the largest that is exact. With a larger one a number is only larger, or nearer to 0, than those with a
// smaller one: the value of a check has none (Check.normalize), a row may.
const maxExponent = math.MaxInt64 / 4

// parseDecimal reads a valid JSON number; exact is false where its exponent is out of bounds.
func parseDecimal(text []byte) (d decimal, exact bool) {
	text, d.negative = bytes.CutPrefix(text, []byte("-"))
	var power []byte
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		text, power = text[:i], text[i+1:]
	}
	whole, fraction, _ := bytes.Cut(text, []byte("."))
	digits := append(append(make([]byte, 0, len(text)), whole...), fraction...)
	d.digits = bytes.TrimLeft(digits, "0")
	d.exponent = int64(len(whole)) - int64(len(digits)-len(d.digits))
	if d.digits = bytes.TrimRight(d.digits, "0"); len(d.digits) == 0 {
		return decimal{}, true
	}
	e, exact := parsePower(power)
	d.exponent += e
	return d, exact
}

// parsePower reads the text behind an "e", "" for 0.
func parsePower(text []byte) (power int64, exact bool) {
	if len(text) == 0 {
		return 0, true
	}
	power, err := strconv.ParseInt(string(text), 10, 64) // which saturates
	if err != nil || power > maxExponent || power < -maxExponent {
		return min(max(power, -2*maxExponent), 2*maxExponent), false
	}
	return power, true
}

// compareNumbers orders two JSON numbers exactly.
func compareNumbers(a, b []byte) int {
	x, err := strconv.ParseInt(string(a), 10, 64)
	if err == nil {
		var y int64
		if y, err = strconv.ParseInt(string(b), 10, 64); err == nil {
			return sign(x < y, x > y)
		}
	}
	d, _ := parseDecimal(a)
	e, _ := parseDecimal(b)
	return d.compare(e)
}

func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() {
		return sign(d.sign() < e.sign(), d.sign() > e.sign())
	}
	if len(d.digits) == 0 {
		return 0
	}
	order := sign(d.exponent < e.exponent, d.exponent > e.exponent)
	if order == 0 {
		order = bytes.Compare(d.digits, e.digits)
	}
	if d.negative {
		return -order
	}
	return order
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}
