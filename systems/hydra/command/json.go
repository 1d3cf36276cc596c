package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// EncodeJSON marshals without HTML escaping, which would write each <, > and & as six bytes.
func EncodeJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// member is a name, with quotes, and its value in a compact JSON object.
type member struct{ name, value []byte }

func splitMembers(object []byte, into []member) []member {
	into = into[:0]
	for at := 1; at < len(object)-1; at++ { // after "{" or ","
		colon := skipValue(object, at, ':')
		end := skipValue(object, colon+1, ',')
		into = append(into, member{object[at:colon], object[colon+1 : end]})
		at = end
	}
	return into
}

// skipValue returns the position of stop, or of the object's end, at this depth and outside of strings.
func skipValue(b []byte, at int, stop byte) int {
	depth, quoted := 0, false
	for ; at < len(b); at++ {
		c := b[at]
		switch {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && (c == stop || c == '}'):
			return at
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
	}
	return at
}

func joinMembers(list []member) []byte {
	size := 2
	for _, m := range list {
		size += len(m.name) + len(m.value) + 2
	}
	out := append(make([]byte, 0, size), '{')
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.name...), ':'), m.value...)
	}
	return append(out, '}')
}

// normalizeObject returns compact JSON with unique names (the last one counts) in one spelling: equal names have equal bytes.
func normalizeObject(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: the value is not UTF-8", ErrInvalid)
	}
	var compact bytes.Buffer
	compact.Grow(len(text))
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("%w: the value is not JSON: %w", ErrInvalid, err)
	}
	object := compact.Bytes()
	if len(object) == 0 || object[0] != '{' {
		return nil, fmt.Errorf("%w: the value is not a JSON object", ErrInvalid)
	}
	list := splitMembers(object, make([]member, 0, 16))
	plain := true
	for i, m := range list {
		if bytes.IndexByte(m.name, '\\') >= 0 {
			plain = false
			name, err := normalizeName(m.name)
			if err != nil {
				return nil, err
			}
			list[i].name = name
		}
	}
	unique := list[:0:len(list)]
	for _, m := range list {
		if i := findMember(unique, m.name); i >= 0 {
			plain = false
			unique[i].value = m.value
			continue
		}
		unique = append(unique, m)
	}
	if plain {
		return object, nil
	}
	return joinMembers(unique), nil
}

func normalizeName(quoted []byte) ([]byte, error) {
	var name string
	if err := json.Unmarshal(quoted, &name); err != nil {
		return nil, fmt.Errorf("%w: a name in the value: %w", ErrInvalid, err)
	}
	return quoteName(name), nil
}

func quoteName(name string) []byte {
	text, _ := EncodeJSON(name) // a string always encodes
	return text
}

func findMember(list []member, name []byte) int {
	if len(list) > 32 {
		return slices.IndexFunc(list, func(m member) bool { return bytes.Equal(m.name, name) })
	}
	for i := range list {
		if string(list[i].name) == string(name) {
			return i
		}
	}
	return -1
}

// mergeObjects sets the members of changes in row; null removes a member.
func mergeObjects(row, changes []byte) []byte {
	list := splitMembers(row, make([]member, 0, 16))
	for _, c := range splitMembers(changes, make([]member, 0, 16)) {
		i := findMember(list, c.name)
		switch null := string(c.value) == "null"; {
		case i < 0 && !null:
			list = append(list, c)
		case i >= 0 && null:
			list = slices.Delete(list, i, i+1)
		case i >= 0:
			list[i].value = c.value
		}
	}
	return joinMembers(list)
}

// addToObject adds integers to members of a row. It returns false for a value that is not an integer, or an overflow.
func addToObject(row, amounts []byte) ([]byte, bool) {
	list := splitMembers(row, make([]member, 0, 16))
	for _, a := range splitMembers(amounts, make([]member, 0, 4)) {
		by, err := strconv.ParseInt(string(a.value), 10, 64)
		if err != nil {
			return nil, false
		}
		i := findMember(list, a.name)
		if i < 0 {
			list = append(list, a)
			continue
		}
		have, err := strconv.ParseInt(string(list[i].value), 10, 64)
		if err != nil || by > 0 && have > math.MaxInt64-by || by < 0 && have < math.MinInt64-by {
			return nil, false
		}
		list[i].value = strconv.AppendInt(nil, have+by, 10)
	}
	return joinMembers(list), true
}

func isNumber(v []byte) bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

// decimal is an exact JSON number: 0.DIGITS times 10 to the power of exponent. Zero has no digits.
type decimal struct {
	negative bool
	digits   []byte // without zeros at either end
	exponent int64
}

// maxExponent bounds exact exponents. Numbers beyond it compare only as larger, or nearer to 0, than
// numbers within it. The value of a check never exceeds it (Check.normalize); a row's may.
const maxExponent = math.MaxInt64 / 4

// parseDecimal parses a valid JSON number; exact is false if its exponent is out of range.
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

func parsePower(text []byte) (power int64, exact bool) {
	if len(text) == 0 {
		return 0, true
	}
	power, err := strconv.ParseInt(string(text), 10, 64) // saturates
	if err != nil || power > maxExponent || power < -maxExponent {
		return min(max(power, -2*maxExponent), 2*maxExponent), false
	}
	return power, true
}

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
