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

// member is one name and value of a compact JSON object, as they stand there: the name
// with its quotes.
type member struct{ name, value []byte }

// members splits a compact, valid JSON object.
func members(object []byte, into []member) []member {
	into = into[:0]
	for at := 1; at < len(object)-1; at++ { // behind "{" or ","
		colon := skip(object, at, ':')
		end := skip(object, colon+1, ',')
		into = append(into, member{object[at:colon], object[colon+1 : end]})
		at = end
	}
	return into
}

// skip finds the stop, or the end of the object, at this depth and outside of strings.
func skip(b []byte, at int, stop byte) int {
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

// join is the object of members.
func join(list []member) []byte {
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

// normalObject is a JSON object without spaces, each of its names once (the last one
// counts) and spelt in one way, so that equal names are equal bytes.
func normalObject(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: the value is not UTF-8", ErrInvalid)
	}
	var compact bytes.Buffer
	compact.Grow(len(text))
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("%w: the value is no JSON: %w", ErrInvalid, err)
	}
	object := compact.Bytes()
	if len(object) == 0 || object[0] != '{' {
		return nil, fmt.Errorf("%w: the value is JSON, but no object", ErrInvalid)
	}
	list := members(object, make([]member, 0, 16))
	plain := true
	for i, m := range list {
		if bytes.IndexByte(m.name, '\\') >= 0 {
			plain = false
			name, err := normalName(m.name)
			if err != nil {
				return nil, err
			}
			list[i].name = name
		}
	}
	unique := list[:0:len(list)]
	for _, m := range list {
		if i := find(unique, m.name); i >= 0 {
			plain = false
			unique[i].value = m.value
			continue
		}
		unique = append(unique, m)
	}
	if plain {
		return object, nil
	}
	return join(unique), nil
}

// normalName spells a quoted name without needless escapes.
func normalName(quoted []byte) ([]byte, error) {
	var name string
	if err := json.Unmarshal(quoted, &name); err != nil {
		return nil, fmt.Errorf("%w: a name in the value: %w", ErrInvalid, err)
	}
	return quote(name), nil
}

// quote is a name as JSON.
func quote(name string) []byte {
	text, _ := JSON(name) // a string always encodes
	return text
}

func find(list []member, name []byte) int {
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

// mergeObjects sets the members of changes in a row; null removes one.
func mergeObjects(row, changes []byte) []byte {
	list := members(row, make([]member, 0, 16))
	for _, c := range members(changes, make([]member, 0, 16)) {
		i := find(list, c.name)
		switch null := string(c.value) == "null"; {
		case i < 0 && !null:
			list = append(list, c)
		case i >= 0 && null:
			list = slices.Delete(list, i, i+1)
		case i >= 0:
			list[i].value = c.value
		}
	}
	return join(list)
}

// addToObject adds whole numbers to members of a row: false when one is none, or leaves
// the range of 64 bits.
func addToObject(row, amounts []byte) ([]byte, bool) {
	list := members(row, make([]member, 0, 16))
	for _, a := range members(amounts, make([]member, 0, 4)) {
		by, err := strconv.ParseInt(string(a.value), 10, 64)
		if err != nil {
			return nil, false
		}
		i := find(list, a.name)
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
	return join(list), true
}
